#include "backends/xnnpack/builder.hpp"

#include <algorithm>
#include <cmath>

namespace parapipe::xnnpack {
namespace {

/// Axes of weights of a convolution, [M, C, kH, kW], as the library wants them: channels innermost.
constexpr std::array<std::size_t, kMostDimensions> kChannelsLast{0, 2, 3, 1};
constexpr std::array<std::size_t, kMostDimensions> kTransposed{1, 2, 3, 0};

/// An image in memory, pixel by pixel.
struct Image {
    std::size_t batch = 0;
    std::size_t height = 0;
    std::size_t width = 0;
    std::size_t channels = 0;
    std::size_t stride = 0;
};

std::optional<Image> image_of(const Builder &builder, TensorId tensor) {
    const auto &shape = builder.tensor(tensor).shape;
    const auto rows = rows_of(builder.layout(tensor), Order::nhwc);
    return rows ? std::optional<Image>({size(shape[0]), size(shape[2]), size(shape[3]), rows->channels, rows->stride})
                : std::nullopt;
}

struct Window {
    std::uint32_t height = 1;
    std::uint32_t width = 1;
    std::uint32_t row_step = 1;
    std::uint32_t column_step = 1;
    std::uint32_t top = 0;
    std::uint32_t right = 0;
    std::uint32_t bottom = 0;
    std::uint32_t left = 0;
};

Window window_of(const Attributes &attributes, std::int64_t height, std::int64_t width) {
    const auto &strides = attributes.integers("strides");
    const auto &pads = attributes.integers("pads");
    return {small(height),  small(width),   small(strides[0]), small(strides[1]),
            small(pads[0]), small(pads[3]), small(pads[2]),    small(pads[1])};
}

/// Whether the library computes groups of so few channels one by one, as products of matrices: it has kernels for
/// all channels at once for one to one, and 25 elements at most.
bool is_slow(std::size_t groups, std::size_t read, std::size_t made, std::size_t area) {
    constexpr std::size_t kMostElements = 25;
    constexpr std::size_t kFewChannels = 4;
    const bool single = read == 1 && made == 1 && area <= kMostElements;
    return groups > 1 && !single && made < kFewChannels;
}

/// A convolution of an image, whatever operator it serves.
std::unique_ptr<Kernel> convolved(const Builder &builder, const Window &window, const Integers &dilations,
                                  std::size_t groups, const float *weights, const float *bias) {
    const auto from = image_of(builder, builder.input(0));
    const auto to = image_of(builder, builder.op().output);
    if (!from || !to) {
        return nullptr;
    }
    const auto bounds = builder.bounds();
    auto function = created(xnn_create_convolution2d_nhwc_f32, window.top, window.right, window.bottom, window.left,
                            window.height, window.width, window.row_step, window.column_step, small(dilations[0]),
                            small(dilations[1]), static_cast<std::uint32_t>(groups), from->channels / groups,
                            to->channels / groups, from->stride, to->stride, weights, bias, bounds.least, bounds.most, 0U);
    auto kernel = builder.kernel(
        std::move(function),
        [image = *from, x = builder.place(builder.input(0)), y = builder.place(builder.op().output)](auto *op, auto *pool) {
            return xnn_setup_convolution2d_nhwc_f32(op, image.batch, image.height, image.width, x(), y(), pool);
        },
        true);
    if (kernel && is_slow(groups, from->channels / groups, to->channels / groups, window.height * window.width)) {
        kernel->mark_slow();
    }
    return kernel;
}

std::unique_ptr<Kernel> convolution(const Builder &builder) {
    if (builder.has(3)) {  // it has none that adds a tensor
        return nullptr;
    }
    const auto &a = builder.attributes();
    const auto &shape = builder.shape(1);
    const auto weights = builder.constant_in(1, shape, kChannelsLast);
    return convolved(builder, window_of(a, shape[2], shape[3]), a.integers("dilations"), size(a.integer("group")),
                     weights.data(), builder.has(2) ? builder.constant(2) : nullptr);
}

std::unique_ptr<Kernel> transposed_convolution(const Builder &builder) {
    const auto from = image_of(builder, builder.input(0));
    const auto to = image_of(builder, builder.op().output);
    if (!from || !to) {
        return nullptr;
    }
    const auto &shape = builder.shape(1);
    const auto window = window_of(builder.attributes(), shape[2], shape[3]);
    const auto weights = builder.constant_in(1, shape, kTransposed);
    const auto bounds = builder.bounds();
    auto function = created(xnn_create_deconvolution2d_nhwc_f32, window.top, window.right, window.bottom, window.left,
                            window.height, window.width, window.row_step, window.column_step, 1U, 1U, 1U, from->channels,
                            to->channels, from->stride, to->stride, weights.data(),
                            builder.has(2) ? builder.constant(2) : nullptr, bounds.least, bounds.most, 0U);
    return builder.kernel(
        std::move(function),
        [image = *from, x = builder.place(builder.input(0)), y = builder.place(builder.op().output)](auto *op, auto *pool) {
            return xnn_setup_deconvolution2d_nhwc_f32(op, image.batch, image.height, image.width, 0, 0, x(), y(), pool);
        },
        true);
}

std::unique_ptr<Kernel> largest(const Builder &builder, const Window &window) {
    const auto from = image_of(builder, builder.input(0));
    const auto to = image_of(builder, builder.op().output);
    if (!from || !to || window.height * window.width == 1) {  // the library has no pool of one element
        return nullptr;
    }
    const auto bounds = builder.bounds();
    auto function = created(xnn_create_max_pooling2d_nhwc_f32, window.top, window.right, window.bottom, window.left,
                            window.height, window.width, window.row_step, window.column_step, 1U, 1U, from->channels,
                            from->stride, to->stride, bounds.least, bounds.most, 0U);
    return builder.kernel(
        std::move(function),
        [image = *from, x = builder.place(builder.input(0)), y = builder.place(builder.op().output)](auto *op, auto *pool) {
            return xnn_setup_max_pooling2d_nhwc_f32(op, image.batch, image.height, image.width, x(), y(), pool);
        },
        true);
}

/// The library leaves padding out; where it counts, a convolution with equal weights computes the same.
std::unique_ptr<Kernel> average(const Builder &builder, const Window &window) {
    const bool padded = window.top + window.right + window.bottom + window.left > 0;
    const auto from = image_of(builder, builder.input(0));
    const auto to = image_of(builder, builder.op().output);
    const auto area = window.height * window.width;
    if (!from || !to || area == 1) {
        return nullptr;
    }
    if (padded && builder.attributes().integer("count_include_pad") == 1) {
        const std::vector<float> weights(from->channels * area, 1.0F / static_cast<float>(area));
        return convolved(builder, window, {1, 1}, from->channels, weights.data(), nullptr);
    }
    const auto bounds = builder.bounds();
    auto function = created(xnn_create_average_pooling2d_nhwc_f32, window.top, window.right, window.bottom, window.left,
                            window.height, window.width, window.row_step, window.column_step, from->channels,
                            from->stride, to->stride, bounds.least, bounds.most, 0U);
    return builder.kernel(
        std::move(function),
        [image = *from, x = builder.place(builder.input(0)), y = builder.place(builder.op().output)](auto *op, auto *pool) {
            return xnn_setup_average_pooling2d_nhwc_f32(op, image.batch, image.height, image.width, x(), y(), pool);
        },
        true);
}

std::unique_ptr<Kernel> pool(const Builder &builder) {
    const auto &a = builder.attributes();
    const auto &kernel = a.integers("kernel_shape");
    auto window = window_of(a, kernel[0], kernel[1]);
    if (a.integer("ceil_mode") == 1) {
        const auto reached = [&](std::size_t axis) {
            const auto end = (builder.shape()[2 + axis] - 1) * a.integers("strides")[axis] + kernel[axis];
            return small(std::max<std::int64_t>(end - builder.shape(0)[2 + axis] - a.integers("pads")[axis], 0));
        };
        window.bottom = reached(0);
        window.right = reached(1);
    }
    return builder.op().type == "MaxPool" ? largest(builder, window) : average(builder, window);
}

std::unique_ptr<Kernel> largest_of_all(const Builder &builder) {
    Window window;
    window.height = small(builder.shape(0)[2]);
    window.width = small(builder.shape(0)[3]);
    return largest(builder, window);
}

std::unique_ptr<Kernel> average_of_all(const Builder &builder) {
    const auto from = image_of(builder, builder.input(0));
    const auto to = builder.rows(builder.op().output);
    if (!from || !to) {
        return nullptr;
    }
    const auto bounds = builder.bounds();
    auto function = created(xnn_create_global_average_pooling_nwc_f32, from->channels, from->stride, to->stride, bounds.least,
                            bounds.most, 0U);
    return builder.kernel(
        std::move(function),
        [image = *from, x = builder.place(builder.input(0)), y = builder.place(builder.op().output)](auto *op, auto *pool) {
            return xnn_setup_global_average_pooling_nwc_f32(op, image.batch, image.height * image.width, x(), y(), pool);
        },
        true);
}

std::unique_ptr<Kernel> resize(const Builder &builder) {
    const auto &a = builder.attributes();
    const auto from = image_of(builder, builder.input(0));
    const auto to = image_of(builder, builder.op().output);
    if (!from || !to || a.text("mode") != "linear") {
        return nullptr;
    }
    const auto &coordinates = a.text("coordinates");
    const auto flags = coordinates == "align_corners" ? XNN_FLAG_ALIGN_CORNERS
                       : coordinates == "asymmetric"  ? XNN_FLAG_TENSORFLOW_LEGACY_MODE
                                                      : 0;
    auto function = created(xnn_create_resize_bilinear2d_nhwc_f32, from->channels, from->stride, to->stride,
                            static_cast<std::uint32_t>(flags));
    return builder.kernel(
        std::move(function),
        [image = *from, made = *to, x = builder.place(builder.input(0)), y = builder.place(builder.op().output)](auto *op,
                                                                                                                auto *pool) {
            return xnn_setup_resize_bilinear2d_nhwc_f32(op, image.batch, image.height, image.width, made.height, made.width,
                                                        x(), y(), pool);
        },
        false);
}

/// A factor and a summand for each channel: a convolution of single pixels, a channel at a time.
std::unique_ptr<Kernel> normalise(const Builder &builder) {
    const auto from = builder.rows(builder.input(0));
    const auto to = builder.rows(builder.op().output);
    const auto rank = builder.shape().size();
    if (!from || !to || builder.innermost(builder.input(0)) != kMostDimensions - rank + 1 ||
        builder.innermost(builder.op().output) != kMostDimensions - rank + 1) {
        return nullptr;
    }
    const auto channels = from->channels;
    std::vector<float> factors(channels);
    std::vector<float> summands(channels);
    for (std::size_t c = 0; c < channels; ++c) {
        factors[c] = builder.constant(1)[c] /
                     std::sqrt(builder.constant(4)[c] + static_cast<float>(builder.attributes().number("epsilon")));
        summands[c] = builder.constant(2)[c] - builder.constant(3)[c] * factors[c];
    }
    const auto bounds = builder.bounds();
    auto function = created(xnn_create_convolution2d_nhwc_f32, 0U, 0U, 0U, 0U, 1U, 1U, 1U, 1U, 1U, 1U,
                            static_cast<std::uint32_t>(channels), std::size_t{1}, std::size_t{1}, from->stride, to->stride,
                            static_cast<const float *>(factors.data()), static_cast<const float *>(summands.data()),
                            bounds.least, bounds.most, 0U);
    return builder.kernel(
        std::move(function),
        [count = from->count, x = builder.place(builder.input(0)), y = builder.place(builder.op().output)](auto *op,
                                                                                                          auto *pool) {
            return xnn_setup_convolution2d_nhwc_f32(op, 1, count, 1, x(), y(), pool);
        },
        true);
}

}  // namespace

std::vector<BuildOfType> window_builds() {
    return {{"Conv", convolution},
            {"ConvTranspose", transposed_convolution},
            {"MaxPool", pool},
            {"AveragePool", pool},
            {"GlobalAveragePool", average_of_all},
            {"GlobalMaxPool", largest_of_all},
            {"Resize", resize},
            {"BatchNormalization", normalise}};
}

}  // namespace parapipe::xnnpack
