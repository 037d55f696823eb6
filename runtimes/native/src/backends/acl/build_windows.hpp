#pragma once

#include "backends/acl/builder.hpp"

#include <arm_compute/core/KernelDescriptors.h>

namespace parapipe {

inline arm_compute::PadStrideInfo acl_pads_and_strides(const Attributes &attributes, bool ceil_mode = false) {
    const auto at = [&attributes](const char *name, std::size_t i) {
        return static_cast<unsigned>(attributes.integers(name)[i]);
    };
    return {at("strides", 1), at("strides", 0), at("pads", 1), at("pads", 3), at("pads", 0), at("pads", 2),
            ceil_mode ? arm_compute::DimensionRoundingType::CEIL : arm_compute::DimensionRoundingType::FLOOR};
}

template <class Api>
void build_convolution(Builder<Api> &b) {
    const auto &w = b.shape_of(1);
    const auto &dilations = b.op.attributes.integers("dilations");
    const arm_compute::Size2D dilation(static_cast<std::size_t>(dilations[1]), static_cast<std::size_t>(dilations[0]));
    const auto pads = acl_pads_and_strides(b.op.attributes);
    const auto *bias_shape = b.has(2) ? &b.shape_of(2) : nullptr;
    const auto channels = b.shape_of(0)[1];
    if (b.op.attributes.integer("group") > 1) {
        auto *weights = b.constant(1, {1, w[0], w[2], w[3]});
        auto *bias = bias_shape ? b.constant(2, *bias_shape) : nullptr;
        b.template add<typename Api::DepthwiseConvolution>(b.input(0), weights, bias, b.output(), pads,
                                                           static_cast<unsigned>(w[0] / channels),
                                                           b.take_activation(), dilation);
    } else {
        auto *weights = b.constant(1, w);
        auto *bias = bias_shape ? b.constant(2, *bias_shape) : nullptr;
        b.template add<typename Api::Convolution>(b.input(0), weights, bias, b.output(), pads,
                                                  arm_compute::WeightsInfo(), dilation, b.take_activation());
    }
}

template <class Api>
void build_transposed_convolution(Builder<Api> &b) {
    auto *weights = b.constant(1, b.shape_of(1), {1, 0, 2, 3});
    auto *bias = b.has(2) ? b.constant(2, b.shape_of(2)) : nullptr;
    b.template add<typename Api::Deconvolution>(b.input(0), weights, bias, b.output(),
                                                acl_pads_and_strides(b.op.attributes));
}

template <class Api>
void build_pool(Builder<Api> &b) {
    const auto &a = b.op.attributes;
    const bool largest = b.op.type == "MaxPool";
    const auto &kernel = a.integers("kernel_shape");
    const arm_compute::PoolingLayerInfo info(
        largest ? arm_compute::PoolingType::MAX : arm_compute::PoolingType::AVG,
        arm_compute::Size2D(static_cast<std::size_t>(kernel[1]), static_cast<std::size_t>(kernel[0])),
        arm_compute::DataLayout::NCHW, acl_pads_and_strides(a, a.integer("ceil_mode") == 1),
        largest || a.integer("count_include_pad") == 0);
    b.template add<typename Api::Pooling>(b.input(0), b.output(), info);
}

template <class Api>
void build_global_pool(Builder<Api> &b) {
    const arm_compute::PoolingLayerInfo info(
        b.op.type == "GlobalMaxPool" ? arm_compute::PoolingType::MAX : arm_compute::PoolingType::AVG,
        arm_compute::DataLayout::NCHW);
    b.template add<typename Api::Pooling>(b.input(0), b.output(), info);
}

template <class Api>
void build_local_response(Builder<Api> &b) {
    const auto &a = b.op.attributes;
    const auto number = [&a](const char *name) { return static_cast<float>(a.number(name)); };
    const arm_compute::NormalizationLayerInfo info(arm_compute::NormType::CROSS_MAP,
                                                   static_cast<std::uint32_t>(a.integer("size")), number("alpha"),
                                                   number("beta"), number("bias"));
    b.template add<typename Api::Normalization>(b.input(0), b.output(), info);
}

template <class Api>
void build_batch_normalization(Builder<Api> &b) {
    auto *scale = b.constant(1, b.shape_of(1));
    auto *shift = b.constant(2, b.shape_of(2));
    auto *mean = b.constant(3, b.shape_of(3));
    auto *variance = b.constant(4, b.shape_of(4));
    // It applies no other ones.
    const bool fuses = b.op.activation && (b.op.activation->type == "Relu" || b.op.activation->type == "Clip");
    const auto activation = fuses ? b.take_activation() : arm_compute::ActivationLayerInfo();
    auto image = b.shape_of(0);
    image.insert(image.begin() + 2, kMostDimensions - image.size(), 1);
    const bool reshapes = image != b.shape_of(0);
    auto *input = reshapes ? b.temporary(image) : b.input(0);
    auto *output = reshapes ? b.temporary(image) : b.output();
    if (reshapes) {
        b.template add<typename Api::Reshape>(b.input(0), input);
    }
    b.template add<typename Api::BatchNormalization>(input, output, mean, variance, shift, scale,
                                                     static_cast<float>(b.op.attributes.number("epsilon")),
                                                     activation);
    if (reshapes) {
        b.template add<typename Api::Reshape>(output, b.output());
    }
}

template <class Api>
void build_resize(Builder<Api> &b) {
    const auto &a = b.op.attributes;
    const auto policy = a.text("mode") == "linear" ? arm_compute::InterpolationPolicy::BILINEAR
                                                   : arm_compute::InterpolationPolicy::NEAREST_NEIGHBOR;
    const auto sampling = a.text("coordinates") == "half_pixel" ? arm_compute::SamplingPolicy::CENTER
                                                                : arm_compute::SamplingPolicy::TOP_LEFT;
    // Without padding it takes no NCHW.
    b.template add<typename Api::Scale>(
        b.input(0), b.output(),
        arm_compute::ScaleKernelInfo(policy, arm_compute::BorderMode::REPLICATE, arm_compute::PixelValue(), sampling,
                                     true, a.text("coordinates") == "align_corners"));
}

template <class Api>
Builds<Api> window_builds() {
    return {{"Conv", build_convolution<Api>},
            {"ConvTranspose", build_transposed_convolution<Api>},
            {"MaxPool", build_pool<Api>},
            {"AveragePool", build_pool<Api>},
            {"GlobalAveragePool", build_global_pool<Api>},
            {"GlobalMaxPool", build_global_pool<Api>},
            {"LRN", build_local_response<Api>},
            {"BatchNormalization", build_batch_normalization<Api>},
            {"Resize", build_resize<Api>}};
}

}  // namespace parapipe
