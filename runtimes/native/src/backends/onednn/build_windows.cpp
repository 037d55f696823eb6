#include "backends/onednn/builder.hpp"

#include <algorithm>

namespace parapipe {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;

const auto kInference = prop_kind::forward_inference;

memory::dims two(const Integers &values, std::size_t from = 0) {
    return {values[from], values[from + 1]};
}

/// What lies between elements of a dilated kernel, as the library counts.
memory::dims gaps(const Integers &dilations) {
    return {dilations[0] - 1, dilations[1] - 1};
}

void set_weights(const Builder &builder, PrimitiveKernel &kernel, const memory::desc &source, const memory::desc &wanted,
                 const memory::desc &bias) {
    kernel.set_constant(DNNL_ARG_WEIGHTS, packed(builder.constant(1), source, wanted));
    if (builder.has(2)) {
        kernel.set_constant(DNNL_ARG_BIAS, packed(builder.constant(2), bias, bias));
    }
}

std::unique_ptr<Kernel> convolution(const Builder &builder) {
    const auto &a = builder.attributes();
    const auto group = a.integer("group");
    auto weights = builder.shape(1);
    if (group > 1) {
        weights.front() /= group;
        weights.insert(weights.begin(), group);
    }
    const auto bias = builder.has(2) ? dense_desc({builder.shape()[1]}) : memory::desc();
    dnnl::post_ops sum;
    if (builder.has(3)) {
        sum.append_binary(algorithm::binary_add, builder.desc(builder.input(3)));
    }
    const dnnl::convolution_forward::primitive_desc description(
        Bench::engine(), kInference, algorithm::convolution_direct, builder.desc(builder.input(0)), any_layout(weights), bias,
        builder.output_desc(), two(a.integers("strides")), gaps(a.integers("dilations")), two(a.integers("pads")),
        two(a.integers("pads"), 2), builder.fused(sum), true);
    if (!is_fast(description)) {
        return nullptr;
    }
    auto kernel = builder.kernel_of_one<dnnl::convolution_forward>(description);
    memory::dims strides(weights.size(), 1);
    for (std::size_t axis = weights.size() - 1; axis-- > 0;) {
        strides[axis] = strides[axis + 1] * weights[axis + 1];
    }
    set_weights(builder, *kernel, {weights, memory::data_type::f32, strides}, description.weights_desc(), bias);
    if (builder.has(3)) {
        kernel->set_tensor(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, builder.input(3), builder.desc(builder.input(3)));
    }
    return kernel;
}

std::unique_ptr<Kernel> transposed_convolution(const Builder &builder) {
    const auto &a = builder.attributes();
    const auto &shape = builder.shape(1);  // [C, M, kH, kW], and the library wants [M, C, kH, kW]
    const Shape weights{shape[1], shape[0], shape[2], shape[3]};
    const auto area = shape[2] * shape[3];
    const memory::desc source(weights, memory::data_type::f32, {area, area * shape[1], shape[3], 1});
    const auto bias = builder.has(2) ? dense_desc({builder.shape()[1]}) : memory::desc();
    const dnnl::deconvolution_forward::primitive_desc description(
        Bench::engine(), kInference, algorithm::deconvolution_direct, builder.desc(builder.input(0)), any_layout(weights),
        bias, builder.output_desc(), two(a.integers("strides")), {0, 0}, two(a.integers("pads")), two(a.integers("pads"), 2),
        builder.fused(), true);
    if (!is_fast(description)) {
        return nullptr;
    }
    auto kernel = builder.kernel_of_one<dnnl::deconvolution_forward>(description);
    set_weights(builder, *kernel, source, description.weights_desc(), bias);
    return kernel;
}

std::unique_ptr<Kernel> pool(const Builder &builder) {
    const auto &a = builder.attributes();
    const auto &type = builder.op().type;
    const bool whole = type == "GlobalAveragePool" || type == "GlobalMaxPool";
    memory::dims kernel{builder.shape(0)[2], builder.shape(0)[3]};
    memory::dims strides{1, 1};
    memory::dims begins{0, 0};
    memory::dims ends{0, 0};
    auto kind = type == "MaxPool" || type == "GlobalMaxPool" ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding;
    if (!whole) {
        kernel = two(a.integers("kernel_shape"));
        strides = two(a.integers("strides"));
        begins = two(a.integers("pads"));
        ends = two(a.integers("pads"), 2);
        for (std::size_t axis = 0; axis < 2 && a.integer("ceil_mode") == 1; ++axis) {
            const auto reached = (builder.shape()[2 + axis] - 1) * strides[axis] + kernel[axis];
            ends[axis] = std::max<std::int64_t>(reached - builder.shape(0)[2 + axis] - begins[axis], 0);
        }
        if (type == "AveragePool" && a.integer("count_include_pad") == 1) {
            kind = algorithm::pooling_avg_include_padding;
        }
    }
    const dnnl::pooling_forward::primitive_desc description(Bench::engine(), kInference, kind, builder.desc(builder.input(0)),
                                                            builder.output_desc(), strides, kernel, {0, 0}, begins, ends,
                                                            builder.fused(), true);
    return is_fast(description) ? builder.kernel_of_one<dnnl::pooling_forward>(description) : nullptr;
}

std::unique_ptr<Kernel> local_response(const Builder &builder) {
    const auto &a = builder.attributes();
    if (builder.op().activation) {
        return nullptr;
    }
    const dnnl::lrn_forward::primitive_desc description(
        Bench::engine(), kInference, algorithm::lrn_across_channels, builder.desc(builder.input(0)), builder.output_desc(),
        a.integer("size"), static_cast<float>(a.number("alpha")), static_cast<float>(a.number("beta")),
        static_cast<float>(a.number("bias")), builder.fused(), true);
    return is_fast(description) ? builder.kernel_of_one<dnnl::lrn_forward>(description) : nullptr;
}

/// The library's elements are those at (i + 0.5) · size / new size - 0.5: of the nearest, ours only where an
/// image grows by a whole number.
std::unique_ptr<Kernel> resize(const Builder &builder) {
    const auto &a = builder.attributes();
    const bool nearest = a.text("mode") == "nearest";
    const bool grows = builder.shape()[2] % builder.shape(0)[2] == 0 && builder.shape()[3] % builder.shape(0)[3] == 0;
    if (nearest ? !grows : a.text("coordinates") != "half_pixel") {
        return nullptr;
    }
    const dnnl::resampling_forward::primitive_desc description(
        Bench::engine(), kInference, nearest ? algorithm::resampling_nearest : algorithm::resampling_linear,
        builder.desc(builder.input(0)), builder.output_desc(), builder.fused(), true);
    return is_fast(description) ? builder.kernel_of_one<dnnl::resampling_forward>(description) : nullptr;
}

std::unique_ptr<Kernel> normalise(const Builder &builder) {
    using dnnl::normalization_flags;
    if (builder.op().activation && builder.op().activation->type != "Relu") {
        return nullptr;  // the library applies no other one on the way
    }
    const auto flags = normalization_flags::use_global_stats | normalization_flags::use_scale | normalization_flags::use_shift;
    const dnnl::batch_normalization_forward::primitive_desc description(
        Bench::engine(), kInference, builder.desc(builder.input(0)), builder.output_desc(),
        static_cast<float>(builder.attributes().number("epsilon")), flags, builder.fused(), true);
    if (!is_fast(description)) {
        return nullptr;
    }
    auto kernel = builder.kernel_of_one<dnnl::batch_normalization_forward>(description);
    const auto channels = dense_desc({builder.shape(0)[1]});
    constexpr std::pair<int, std::size_t> arguments[] = {
        {DNNL_ARG_SCALE, 1}, {DNNL_ARG_SHIFT, 2}, {DNNL_ARG_MEAN, 3}, {DNNL_ARG_VARIANCE, 4}};
    for (const auto &[argument, position] : arguments) {
        kernel->set_constant(argument, packed(builder.constant(position), channels, channels));
    }
    return kernel;
}

}  // namespace

std::vector<BuildOfType> window_builds() {
    return {{"Conv", convolution},
            {"ConvTranspose", transposed_convolution},
            {"MaxPool", pool},
            {"AveragePool", pool},
            {"GlobalAveragePool", pool},
            {"GlobalMaxPool", pool},
            {"LRN", local_response},
            {"Resize", resize},
            {"BatchNormalization", normalise}};
}

}  // namespace parapipe
