#include "backends/onednn/builder.hpp"

#include <algorithm>
#include <numeric>

namespace parapipe {
namespace {

using dnnl::memory;
using dnnl::prop_kind;

/// A fully connected layer. An image that goes into it without a Flatten keeps its layout: the weights take it.
std::unique_ptr<Kernel> general_product(const Builder &builder) {
    const auto rows = builder.shape()[0];
    const auto width = builder.shape()[1];
    const TensorId x = builder.input(0);
    const auto &read = builder.shape(0);
    const bool dense = is_dense(builder.layout(x));
    const Shape flat{rows, static_cast<std::int64_t>(elements_of(read)) / rows};
    if (!dense && read[0] != rows) {
        return nullptr;
    }
    auto weights = dense ? flat : read;
    weights[0] = width;
    const bool transposed = builder.attributes().integer("transB") == 1;
    if (!transposed && !dense) {
        return nullptr;
    }
    const auto source = transposed ? dense_desc(weights) : memory::desc(weights, memory::data_type::f32, {1, width});
    const auto bias = builder.has(2) ? dense_desc({width}) : memory::desc();
    const dnnl::inner_product_forward::primitive_desc description(
        Bench::engine(), prop_kind::forward_inference, dense ? dense_desc(flat) : builder.desc(x), any_layout(weights), bias,
        builder.output_desc(), builder.fused(), true);
    if (!is_fast(description)) {
        return nullptr;
    }
    auto kernel = builder.kernel_of_one<dnnl::inner_product_forward>(description);
    kernel->set_constant(DNNL_ARG_WEIGHTS, packed(builder.constant(1), source, description.weights_desc()));
    if (builder.has(2)) {
        kernel->set_constant(DNNL_ARG_BIAS, packed(builder.constant(2), bias, bias));
    }
    return kernel;
}

/// A shape with ones in front, up to a number of dimensions.
Shape filled(const Shape &shape, std::size_t rank) {
    Shape wide(rank - shape.size(), 1);
    wide.insert(wide.end(), shape.begin(), shape.end());
    return wide;
}

std::unique_ptr<Kernel> product(const Builder &builder) {
    const TensorId a = builder.input(0);
    const TensorId b = builder.input(1);
    const bool constant = builder.tensor(b).constant();
    if (!is_dense(builder.layout(a)) || !is_dense(builder.layout(b)) || !is_dense(builder.layout(builder.op().output))) {
        return nullptr;
    }
    auto left = builder.shape(0);
    auto right = builder.shape(1);
    auto made = builder.shape();
    if (right.size() == 2) {  // one matrix for all rows
        const auto depth = left.back();
        left = {static_cast<std::int64_t>(elements_of(left)) / depth, depth};
        made = {left[0], right[1]};
    } else {
        const auto rank = made.size();
        left = filled(left, rank);
        right = filled(right, rank);
    }
    const dnnl::matmul::primitive_desc description(Bench::engine(), dense_desc(left),
                                                   constant ? any_layout(right) : dense_desc(right), dense_desc(made),
                                                   builder.fused(), true);
    if (!is_fast(description)) {
        return nullptr;
    }
    auto kernel = builder.kernel_of_one<dnnl::matmul>(description);
    if (constant) {
        kernel->set_constant(DNNL_ARG_WEIGHTS, packed(builder.constant(1), dense_desc(right), description.weights_desc()));
    } else {
        kernel->set_tensor(DNNL_ARG_WEIGHTS, b, description.weights_desc());
    }
    return kernel;
}

std::unique_ptr<Kernel> softmax(const Builder &builder) {
    const auto kind =
        builder.op().type == "Softmax" ? dnnl::algorithm::softmax_accurate : dnnl::algorithm::softmax_log;
    const auto axis = static_cast<int>(builder.shape().size()) - 1;
    const dnnl::softmax_forward::primitive_desc description(Bench::engine(), prop_kind::forward_inference, kind,
                                                            builder.desc(builder.input(0)), builder.output_desc(), axis,
                                                            builder.fused(), true);
    return is_fast(description) ? builder.kernel_of_one<dnnl::softmax_forward>(description) : nullptr;
}

std::unique_ptr<Kernel> mean(const Builder &builder) {
    const TensorId x = builder.input(0);
    auto made = builder.shape(0);
    for (const auto axis : builder.attributes().integers("axes")) {
        made[static_cast<std::size_t>(axis)] = 1;
    }
    if (!is_dense(builder.layout(builder.op().output))) {
        return nullptr;
    }
    const dnnl::reduction::primitive_desc description(Bench::engine(), dnnl::algorithm::reduction_mean, builder.desc(x),
                                                      dense_desc(made), 0.0F, 0.0F, builder.fused(), true);
    return is_fast(description) ? builder.kernel_of_one<dnnl::reduction>(description) : nullptr;
}

/// Elements that only move between two layouts of the same extents.
std::unique_ptr<Kernel> moved(const Builder &builder, const memory::desc &from, const memory::desc &to) {
    const dnnl::reorder::primitive_desc description(Bench::engine(), from, Bench::engine(), to, builder.fused(), true);
    if (!is_fast(description)) {
        return nullptr;
    }
    auto kernel = builder.kernel<dnnl::reorder>(description);
    kernel->set_tensor(DNNL_ARG_FROM, builder.input(0), from);
    kernel->set_tensor(DNNL_ARG_TO, builder.op().output, to);
    return kernel;
}

std::unique_ptr<Kernel> transpose(const Builder &builder) {
    const auto &perm = builder.attributes().integers("perm");
    const auto there = builder.layout(builder.input(0));
    const auto skipped = kMostDimensions - perm.size();
    auto turned = builder.layout(builder.op().output);
    for (std::size_t axis = 0; axis < perm.size(); ++axis) {
        turned.strides[skipped + axis] = there.strides[skipped + static_cast<std::size_t>(perm[axis])];
    }
    return moved(builder, desc_of(builder.shape(), turned), builder.output_desc());
}

}  // namespace

std::vector<BuildOfType> matrix_builds() {
    return {{"Gemm", general_product}, {"MatMul", product},  {"Softmax", softmax},
            {"LogSoftmax", softmax},   {"ReduceMean", mean}, {"Transpose", transpose}};
}

}  // namespace parapipe
