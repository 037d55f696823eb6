#include "backends/host/loops.hpp"
#include "backends/host/room.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace parapipe {
namespace {

/// A window over height and width.
struct Window {
    std::array<std::int64_t, 2> kernel{1, 1};
    std::array<std::int64_t, 2> strides{1, 1};
    std::array<std::int64_t, 2> dilations{1, 1};
    std::array<std::int64_t, 2> begins{0, 0};
    std::array<std::int64_t, 2> ends{0, 0};
};

Window window_of(const Attributes &attributes) {
    Window window;
    for (std::size_t axis = 0; axis < 2; ++axis) {
        window.strides[axis] = attributes.integers("strides")[axis];
        window.begins[axis] = attributes.integers("pads")[axis];
        window.ends[axis] = attributes.integers("pads")[axis + 2];
    }
    return window;
}

/// Calls a function with each element under a window that lies in the tensor, and its place in the window.
template <class Function>
void for_each_under(const Window &window, const Elements &x, std::size_t h, std::size_t w, Function function) {
    for (std::int64_t i = 0; i < window.kernel[0]; ++i) {
        const auto row = static_cast<std::int64_t>(h) * window.strides[0] - window.begins[0] + i * window.dilations[0];
        if (row < 0 || row >= static_cast<std::int64_t>(x.extents[2])) {
            continue;
        }
        for (std::int64_t j = 0; j < window.kernel[1]; ++j) {
            const auto column = static_cast<std::int64_t>(w) * window.strides[1] - window.begins[1] + j * window.dilations[1];
            if (column >= 0 && column < static_cast<std::int64_t>(x.extents[3])) {
                function(static_cast<std::size_t>(row), static_cast<std::size_t>(column),
                         static_cast<std::size_t>(i * window.kernel[1] + j));
            }
        }
    }
}

void convolution(const LoopCall &call) {
    const auto &x = call.inputs[0];
    const auto &shape = call.shapes[1];
    auto window = window_of(call.op.attributes);
    window.kernel = {shape[2], shape[3]};
    window.dilations = {call.op.attributes.integers("dilations")[0], call.op.attributes.integers("dilations")[1]};
    const auto group = static_cast<std::size_t>(call.op.attributes.integer("group"));
    const auto depth = static_cast<std::size_t>(shape[1]);
    const auto made = call.output.extents[1] / group;
    const auto area = static_cast<std::size_t>(shape[2] * shape[3]);
    for_each_position(call.output.extents, call.order, [&](const auto &at) {
        const float *weights = call.inputs[1].data + at[1] * depth * area;
        const auto first = at[1] / made * depth;
        float sum = call.has(2) ? call.inputs[2].data[at[1]] : 0;
        for_each_under(window, x, at[2], at[3], [&](std::size_t h, std::size_t w, std::size_t k) {
            for (std::size_t c = 0; c < depth; ++c) {
                sum += *x.at(at[0], first + c, h, w) * weights[c * area + k];
            }
        });
        sum += call.has(3) ? *call.inputs[3].at(at[0], at[1], at[2], at[3]) : 0;
        *call.output.at(at[0], at[1], at[2], at[3]) = sum;
    });
}

void transposed_convolution(const LoopCall &call) {
    const auto &x = call.inputs[0];
    const auto &shape = call.shapes[1];
    const auto window = window_of(call.op.attributes);
    const auto kernel_h = shape[2];
    const auto kernel_w = shape[3];
    const auto &out = call.output;
    for_each_position(out.extents, call.order, [&](const auto &at) {
        *out.at(at[0], at[1], at[2], at[3]) = call.has(2) ? call.inputs[2].data[at[1]] : 0;
    });
    const auto made = out.extents[1];
    for_each_position(x.extents, Order::nhwc, [&](const auto &at) {
        const float value = *x.at(at[0], at[1], at[2], at[3]);
        for (std::int64_t i = 0; i < kernel_h; ++i) {
            const auto row = static_cast<std::int64_t>(at[2]) * window.strides[0] - window.begins[0] + i;
            if (row < 0 || row >= static_cast<std::int64_t>(out.extents[2])) {
                continue;
            }
            for (std::int64_t j = 0; j < kernel_w; ++j) {
                const auto column = static_cast<std::int64_t>(at[3]) * window.strides[1] - window.begins[1] + j;
                if (column < 0 || column >= static_cast<std::int64_t>(out.extents[3])) {
                    continue;
                }
                for (std::size_t c = 0; c < made; ++c) {
                    const auto weight = ((at[1] * made + c) * static_cast<std::size_t>(kernel_h) + static_cast<std::size_t>(i)) *
                                            static_cast<std::size_t>(kernel_w) + static_cast<std::size_t>(j);
                    *out.at(at[0], c, static_cast<std::size_t>(row), static_cast<std::size_t>(column)) +=
                        value * call.inputs[1].data[weight];
                }
            }
        }
    });
}

Window pool_window(const LoopCall &call) {
    if (call.op.type == "GlobalAveragePool" || call.op.type == "GlobalMaxPool") {
        Window window;
        window.kernel = {call.shapes[0][2], call.shapes[0][3]};
        return window;
    }
    auto window = window_of(call.op.attributes);
    window.kernel = {call.op.attributes.integers("kernel_shape")[0], call.op.attributes.integers("kernel_shape")[1]};
    return window;
}

void largest_under(const LoopCall &call) {
    const auto &x = call.inputs[0];
    const auto window = pool_window(call);
    for_each_position(call.output.extents, call.order, [&](const auto &at) {
        float most = -std::numeric_limits<float>::infinity();
        for_each_under(window, x, at[2], at[3], [&](std::size_t h, std::size_t w, std::size_t /*k*/) {
            most = std::max(most, *x.at(at[0], at[1], h, w));
        });
        *call.output.at(at[0], at[1], at[2], at[3]) = most;
    });
}

void mean_under(const LoopCall &call) {
    const auto &x = call.inputs[0];
    const auto window = pool_window(call);
    const bool counts_padding = call.op.type == "AveragePool" && call.op.attributes.integer("count_include_pad") == 1;
    const auto all = static_cast<float>(window.kernel[0] * window.kernel[1]);
    for_each_position(call.output.extents, call.order, [&](const auto &at) {
        float sum = 0;
        float count = 0;
        for_each_under(window, x, at[2], at[3], [&](std::size_t h, std::size_t w, std::size_t /*k*/) {
            sum += *x.at(at[0], at[1], h, w);
            count += 1;
        });
        *call.output.at(at[0], at[1], at[2], at[3]) = sum / (counts_padding ? all : count);
    });
}

/// x / (bias + alpha / size · Σ x²)^beta over the channels around.
void local_response(const LoopCall &call) {
    const auto &x = call.inputs[0];
    const auto &a = call.op.attributes;
    const auto half = static_cast<std::size_t>(a.integer("size") / 2);
    const auto factor = static_cast<float>(a.number("alpha") / static_cast<double>(a.integer("size")));
    const auto beta = static_cast<float>(a.number("beta"));
    const auto bias = static_cast<float>(a.number("bias"));
    for_each_position(call.output.extents, call.order, [&](const auto &at) {
        const auto first = at[1] < half ? 0 : at[1] - half;
        const auto last = std::min(at[1] + half + 1, x.extents[1]);
        float sum = 0;
        for (std::size_t c = first; c < last; ++c) {
            const float value = *x.at(at[0], c, at[2], at[3]);
            sum += value * value;
        }
        *call.output.at(at[0], at[1], at[2], at[3]) =
            *x.at(at[0], at[1], at[2], at[3]) / std::pow(bias + factor * sum, beta);
    });
}

/// The number of the channels' axis among four.
std::size_t channel_axis(const LoopCall &call) {
    return call.axis(1);
}

void normalise(const LoopCall &call) {
    const auto &x = call.inputs[0];
    const auto axis = channel_axis(call);
    const auto epsilon = static_cast<float>(call.op.attributes.number("epsilon"));
    Scratch<float> scales(x.extents[axis]);
    Scratch<float> shifts(scales.size());
    for (std::size_t c = 0; c < scales.size(); ++c) {
        scales[c] = call.inputs[1].data[c] / std::sqrt(call.inputs[4].data[c] + epsilon);
        shifts[c] = call.inputs[2].data[c] - call.inputs[3].data[c] * scales[c];
    }
    for_each_position(call.output.extents, call.order, [&](const auto &at) {
        *call.output.at(at[0], at[1], at[2], at[3]) =
            *x.at(at[0], at[1], at[2], at[3]) * scales[at[axis]] + shifts[at[axis]];
    });
}

/// Two neighbours along an axis, and the share of the second.
struct Neighbours {
    std::size_t first;
    std::size_t second;
    float share;
};

Neighbours neighbours_of(std::size_t at, std::size_t size, std::size_t made, const std::string &coordinates) {
    const auto ratio = static_cast<double>(size) / static_cast<double>(made);
    double place = static_cast<double>(at) * ratio;
    if (coordinates == "half_pixel") {
        place = (static_cast<double>(at) + 0.5) * ratio - 0.5;
    } else if (coordinates == "align_corners") {
        place = made > 1 ? static_cast<double>(at * (size - 1)) / static_cast<double>(made - 1) : 0;
    }
    place = std::min(std::max(place, 0.0), static_cast<double>(size - 1));
    const auto first = static_cast<std::size_t>(place);
    return {first, std::min(first + 1, size - 1), static_cast<float>(place - static_cast<double>(first))};
}

void resize(const LoopCall &call) {
    const auto &x = call.inputs[0];
    const auto &out = call.output;
    const bool nearest = call.op.attributes.text("mode") == "nearest";
    const auto &coordinates = call.op.attributes.text("coordinates");
    Scratch<Neighbours> rows;
    Scratch<Neighbours> columns;
    for (auto [axis, places] : {std::pair<std::size_t, Scratch<Neighbours> *>{2, &rows}, {3, &columns}}) {
        for (std::size_t at = 0; at < out.extents[axis]; ++at) {
            places->push_back(nearest ? Neighbours{at * x.extents[axis] / out.extents[axis], 0, 0}
                                      : neighbours_of(at, x.extents[axis], out.extents[axis], coordinates));
        }
    }
    for_each_position(out.extents, call.order, [&](const auto &at) {
        const auto &h = rows[at[2]];
        const auto &w = columns[at[3]];
        float value = *x.at(at[0], at[1], h.first, w.first);
        if (!nearest) {
            const float right = *x.at(at[0], at[1], h.first, w.second);
            const float below = *x.at(at[0], at[1], h.second, w.first);
            const float beyond = *x.at(at[0], at[1], h.second, w.second);
            const float above = value + (right - value) * w.share;
            value = above + (below + (beyond - below) * w.share - above) * h.share;
        }
        *out.at(at[0], at[1], at[2], at[3]) = value;
    });
}

/// A place in an image, in elements, for a coordinate from -1 to 1.
float place_of(float coordinate, std::size_t extent, bool align_corners) {
    const auto size = static_cast<float>(extent);
    return align_corners ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
}

/// Bilinear samples of an image at the places of a grid; beyond it lie zeros.
void sample(const LoopCall &call) {
    const auto &x = call.inputs[0];
    const auto &grid = call.inputs[1];
    const bool align_corners = call.op.attributes.integer("align_corners") == 1;
    const auto height = static_cast<float>(x.extents[2]);
    const auto width = static_cast<float>(x.extents[3]);
    auto places = call.output.extents;
    places[1] = 1;
    for_each_position(places, call.order, [&](const auto &at) {
        const float column = place_of(*grid.at(at[0], at[2], at[3], 0), x.extents[3], align_corners);
        const float row = place_of(*grid.at(at[0], at[2], at[3], 1), x.extents[2], align_corners);
        for (std::size_t c = 0; c < x.extents[1]; ++c) {
            *call.output.at(at[0], c, at[2], at[3]) = 0;
        }
        for (const float h : {std::floor(row), std::floor(row) + 1}) {
            for (const float w : {std::floor(column), std::floor(column) + 1}) {
                if (!(h >= 0 && h < height && w >= 0 && w < width)) {
                    continue;
                }
                const float share = (1 - std::abs(row - h)) * (1 - std::abs(column - w));
                const float *from = x.at(at[0], 0, static_cast<std::size_t>(h), static_cast<std::size_t>(w));
                float *to = call.output.at(at[0], 0, at[2], at[3]);
                for (std::size_t c = 0; c < x.extents[1]; ++c) {
                    to[c * call.output.strides[1]] += share * from[c * x.strides[1]];
                }
            }
        }
    });
}

}  // namespace

std::vector<LoopOfType> window_loops() {
    return {{"Conv", convolution},
            {"ConvTranspose", transposed_convolution},
            {"MaxPool", largest_under},
            {"GlobalMaxPool", largest_under},
            {"AveragePool", mean_under},
            {"GlobalAveragePool", mean_under},
            {"LRN", local_response},
            {"BatchNormalization", normalise},
            {"Resize", resize},
            {"GridSample", sample}};
}

}  // namespace parapipe
