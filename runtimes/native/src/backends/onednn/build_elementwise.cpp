#include "backends/onednn/builder.hpp"

#include <algorithm>
#include <map>

namespace parapipe {
namespace {

using dnnl::algorithm;

std::unique_ptr<Kernel> unary(const Builder &builder) {
    const auto eltwise = eltwise_of(builder.op().type, builder.attributes());
    if (!eltwise) {
        return nullptr;
    }
    const dnnl::eltwise_forward::primitive_desc description(Bench::engine(), dnnl::prop_kind::forward_inference,
                                                            eltwise->algorithm, builder.desc(builder.input(0)),
                                                            builder.output_desc(), eltwise->alpha, eltwise->beta,
                                                            builder.fused(), true);
    return is_fast(description) ? builder.kernel_of_one<dnnl::eltwise_forward>(description) : nullptr;
}

/// How an operand lies among the output's dimensions: ones in front of its own.
dnnl::memory::desc operand_desc(const Builder &builder, std::size_t position) {
    const auto rank = builder.shape().size();
    Shape shape(rank - builder.shape(position).size(), 1);
    shape.insert(shape.end(), builder.shape(position).begin(), builder.shape(position).end());
    return desc_of(shape, builder.layout(builder.input(position)));
}

std::unique_ptr<Kernel> binary(const Builder &builder) {
    static const std::map<std::string, algorithm> kinds = {
        {"Add", algorithm::binary_add}, {"Sub", algorithm::binary_sub}, {"Mul", algorithm::binary_mul},
        {"Div", algorithm::binary_div}, {"Max", algorithm::binary_max}, {"Min", algorithm::binary_min}};
    std::size_t first = 0;
    std::size_t second = 1;
    if (builder.shape(0) != builder.shape()) {  // the library broadcasts the second one only
        std::swap(first, second);
        const auto &type = builder.op().type;
        if (builder.shape(1) != builder.shape() || type == "Sub" || type == "Div") {
            return nullptr;
        }
    }
    const auto output = builder.output_desc();
    const auto as_it_lies = operand_desc(builder, first);
    const bool constant = builder.tensor(builder.input(first)).constant();
    auto wanted = operand_desc(builder, second);
    if (builder.tensor(builder.input(second)).constant() && builder.shape(second) == builder.shape()) {
        wanted = output;
    }
    const dnnl::binary::primitive_desc description(Bench::engine(), kinds.at(builder.op().type),
                                                   constant ? output : as_it_lies, wanted, output, builder.fused(), true);
    if (!is_fast(description)) {
        return nullptr;
    }
    auto kernel = builder.kernel<dnnl::binary>(description);
    for (const auto &[argument, position, desc] :
         {std::tuple(DNNL_ARG_SRC_0, first, constant ? output : as_it_lies), std::tuple(DNNL_ARG_SRC_1, second, wanted)}) {
        if (builder.tensor(builder.input(position)).constant()) {
            kernel->set_constant(argument, packed(builder.constant(position), operand_desc(builder, position), desc));
        } else {
            kernel->set_tensor(argument, builder.input(position), desc);
        }
    }
    kernel->set_tensor(DNNL_ARG_DST, builder.op().output, output);
    return kernel;
}

}  // namespace

std::vector<BuildOfType> elementwise_builds() {
    std::vector<BuildOfType> builds;
    for (const char *type : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
        builds.push_back({type, binary});
    }
    for (const char *type : {"Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Abs", "Sqrt", "LeakyRelu", "Elu",
                             "Clip", "Exp", "Log", "Neg"}) {
        builds.push_back({type, unary});
    }
    return builds;
}

}  // namespace parapipe
