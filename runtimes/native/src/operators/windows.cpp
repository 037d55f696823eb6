#include "operators/catalogue.hpp"

#include "error.hpp"

namespace parapipe {
namespace {

using Kind = AttributeRule::Kind;

AttributeRule strides() { return {"strides", Kind::integers, 1, 2}; }
AttributeRule pads() { return {"pads", Kind::integers, 0, 4}; }

/// Positions that a window takes along an axis (0: height, 1: width).
std::int64_t positions(const Call &call, std::size_t axis, std::int64_t kernel, bool ceil_mode) {
    const auto &pads = call.op.attributes.integers("pads");
    const auto extent = call.shape(0)[2 + axis];
    const auto stride = call.op.attributes.integers("strides")[axis];
    const auto room = extent + pads[axis] + pads[axis + 2] - kernel;
    call.demand(room >= 0, "has a window larger than its padded input");
    auto steps = (room + (ceil_mode ? stride - 1 : 0)) / stride;
    if (ceil_mode && steps * stride >= extent + pads[axis]) {
        --steps;  // the last window would lie in the padding
    }
    return steps + 1;
}

void demand_bias(const Call &call, std::size_t position, std::int64_t channels) {
    if (const auto *bias = call.optional(position)) {
        call.demand(bias->shape == Shape{channels}, text_of("needs a bias of shape [", channels, "]"));
    }
}

Shape convolution(const Call &call) {
    call.demand_rank(4);
    const auto &x = call.shape(0);
    const auto &w = call.shape(1);
    const auto group = call.op.attributes.integer("group");
    call.demand(w.size() == 4, "needs weights of 4 dimensions");
    call.demand(x[1] % group == 0, "has groups that do not go into its input's channels");
    call.demand(w[1] == x[1] / group && w[0] % group == 0, "has weights that do not go with its input's channels");
    demand_bias(call, 2, w[0]);
    const auto &dilations = call.op.attributes.integers("dilations");
    const auto window = [&](std::size_t axis) { return (w[2 + axis] - 1) * dilations[axis] + 1; };
    const Shape shape{x[0], w[0], positions(call, 0, window(0), false), positions(call, 1, window(1), false)};
    if (const auto *residual = call.optional(3)) {
        call.demand(residual->shape == shape, "adds a tensor of another shape than it makes");
    }
    return shape;
}

Shape transposed_convolution(const Call &call) {
    call.demand_rank(4);
    const auto &x = call.shape(0);
    const auto &w = call.shape(1);
    call.demand(w.size() == 4 && w[0] == x[1], "has weights that do not go with its input's channels");
    demand_bias(call, 2, w[1]);
    const auto &strides = call.op.attributes.integers("strides");
    const auto &pads = call.op.attributes.integers("pads");
    const auto extent = [&](std::size_t axis) {
        call.demand(pads[axis] < w[2 + axis] && pads[axis + 2] < w[2 + axis], "has pads that are not smaller than its kernel");
        return strides[axis] * (x[2 + axis] - 1) + w[2 + axis] - pads[axis] - pads[axis + 2];
    };
    return {x[0], w[1], extent(0), extent(1)};
}

Shape pool(const Call &call) {
    call.demand_rank(4);
    const auto &x = call.shape(0);
    const auto &kernel = call.op.attributes.integers("kernel_shape");
    const auto &pads = call.op.attributes.integers("pads");
    for (std::size_t axis = 0; axis < 2; ++axis) {
        call.demand(pads[axis] < kernel[axis] && pads[axis + 2] < kernel[axis],
                    "has pads that are not smaller than its kernel");
    }
    const bool ceil_mode = call.op.attributes.integer("ceil_mode") == 1;
    if (call.op.type == "AveragePool") {
        call.demand(!ceil_mode || call.op.attributes.integer("count_include_pad") == 0,
                    "has ceil_mode with count_include_pad, which the library computes otherwise");
    }
    return {x[0], x[1], positions(call, 0, kernel[0], ceil_mode), positions(call, 1, kernel[1], ceil_mode)};
}

Shape global_pool(const Call &call) {
    call.demand_rank(4);
    return {call.shape(0)[0], call.shape(0)[1], 1, 1};
}

Shape local_response(const Call &call) {
    call.demand_rank(4);
    call.demand(call.op.attributes.integer("size") % 2 == 1, "has an even size");
    return call.shape(0);
}

Shape normalised(const Call &call) {
    call.demand(call.shape(0).size() >= 2, "needs an input of 2 dimensions or more");
    for (std::size_t i = 1; i < call.inputs.size(); ++i) {
        call.demand(call.shape(i) == Shape{call.shape(0)[1]}, "needs constants of one number for each channel");
    }
    return call.shape(0);
}

Shape sampled(const Call &call) {
    call.demand_rank(4);
    const auto &grid = call.shape(1);
    call.demand(grid.size() == 4 && grid[3] == 2 && grid[0] == call.shape(0)[0],
                "needs a grid of two coordinates for each element, of as many images");
    return {call.shape(0)[0], call.shape(0)[1], grid[1], grid[2]};
}

Shape resized(const Call &call) {
    call.demand_rank(4);
    const auto &a = call.op.attributes;
    call.demand(a.text("mode") == "linear" || a.text("coordinates") == "asymmetric",
                "is \"nearest\" with other coordinates than \"asymmetric\"");
    const auto &sizes = call.output.shape;
    call.demand(sizes.size() == 4, "needs an output of 4 dimensions");
    return {call.shape(0)[0], call.shape(0)[1], sizes[2], sizes[3]};
}

}  // namespace

std::vector<OperatorKind> window_kinds() {
    const AttributeRule kernel{"kernel_shape", Kind::integers, 1, 2};
    const AttributeRule ceil_mode{"ceil_mode", Kind::flag};
    return {
        {"Conv", 2, 4, 1, false,
         {strides(), pads(), {"dilations", Kind::integers, 1, 2}, {"group", Kind::integer, 1}}, convolution, 3},
        {"ConvTranspose", 2, 3, 1, false, {strides(), pads()}, transposed_convolution},
        {"MaxPool", 1, 1, 1, false, {kernel, strides(), pads(), ceil_mode}, pool},
        {"AveragePool", 1, 1, 1, false, {kernel, strides(), pads(), ceil_mode, {"count_include_pad", Kind::flag}}, pool},
        {"GlobalAveragePool", 1, 1, 1, false, {}, global_pool},
        {"GlobalMaxPool", 1, 1, 1, false, {}, global_pool},
        {"LRN", 1, 1, 1, false,
         {{"size", Kind::integer, 1}, {"alpha", Kind::number}, {"beta", Kind::number}, {"bias", Kind::number}},
         local_response},
        {"BatchNormalization", 5, 5, 1, false, {{"epsilon", Kind::number}}, normalised},
        {"GridSample", 2, 2, 2, false, {{"align_corners", Kind::flag}}, sampled},
        {"Resize", 1, 1, 1, false,
         {{"mode", Kind::word, 0, 0, {"nearest", "linear"}},
          {"coordinates", Kind::word, 0, 0, {"half_pixel", "asymmetric", "align_corners"}}},
         resized},
    };
}

}  // namespace parapipe
