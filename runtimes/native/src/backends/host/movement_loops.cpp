#include "backends/host/loops.hpp"
#include "backends/host/room.hpp"

#include <algorithm>

namespace parapipe {
namespace {

/// A piece of a tensor as memory that can be copied from or to.
Layout piece_of(const Elements &elements, const std::array<std::size_t, kMostDimensions> &extents) {
    Layout layout;
    layout.extents = extents;
    for (std::size_t axis = 0; axis < kMostDimensions; ++axis) {
        layout.strides[axis] = elements.strides[axis] * sizeof(float);
    }
    return layout;
}

void copy_piece(const float *from, const Layout &there, float *to, const Layout &here) {
    copy(reinterpret_cast<const std::byte *>(from), there, reinterpret_cast<std::byte *>(to), here);
}

void join(const LoopCall &call) {
    const auto axis = call.axis(call.op.attributes.integer("axis"));
    float *to = call.output.data;
    for (const auto &input : call.inputs) {
        copy_piece(input.data, piece_of(input, input.extents), to, piece_of(call.output, input.extents));
        to += input.extents[axis] * call.output.strides[axis];
    }
}

void cut(const LoopCall &call) {
    auto from = call.inputs[0];
    for (std::size_t i = 0; i < call.shape.size(); ++i) {
        const auto axis = call.axis(static_cast<std::int64_t>(i));
        from.data += static_cast<std::size_t>(call.op.attributes.integers("starts")[i]) * from.strides[axis];
        from.strides[axis] *= static_cast<std::size_t>(call.op.attributes.integers("steps")[i]);
    }
    copy_piece(from.data, piece_of(from, call.output.extents), call.output.data,
               piece_of(call.output, call.output.extents));
}

/// Gives the elements, in ONNX's order, another shape.
void reshape(const LoopCall &call) {
    const auto &from = call.inputs[0];
    const auto there = piece_of(from, from.extents);
    const auto here = piece_of(call.output, call.output.extents);
    if (is_dense(here)) {
        copy_piece(from.data, there, call.output.data, layout_of(call.shapes[0]));
    } else if (is_dense(there)) {
        copy_piece(from.data, layout_of(call.shape), call.output.data, here);
    } else {
        Scratch<float> dense(elements_of(call.shape));
        copy_piece(from.data, there, dense.data(), layout_of(call.shapes[0]));
        copy_piece(dense.data(), layout_of(call.shape), call.output.data, here);
    }
}

void transpose(const LoopCall &call) {
    const auto &from = call.inputs[0];
    auto turned = from;
    const auto &perm = call.op.attributes.integers("perm");
    for (std::size_t i = 0; i < perm.size(); ++i) {
        turned.strides[call.axis(static_cast<std::int64_t>(i))] = from.strides[call.axis(perm[i])];
    }
    copy_piece(from.data, piece_of(turned, call.output.extents), call.output.data,
               piece_of(call.output, call.output.extents));
}

/// Where an element of a padded axis comes from; kNone if from nowhere.
std::size_t source_of(std::size_t at, std::size_t before, std::size_t extent, bool mirrors) {
    if (at >= before && at < before + extent) {
        return at - before;
    }
    if (!mirrors) {
        return kNone;
    }
    return at < before ? before - at : 2 * (extent - 1) - (at - before);
}

void pad(const LoopCall &call) {
    const auto &from = call.inputs[0];
    const auto &pads = call.op.attributes.integers("pads");
    const bool mirrors = call.op.attributes.text("mode") == "reflect";
    const auto value = static_cast<float>(call.op.attributes.number("value"));
    std::array<std::size_t, kMostDimensions> before{};
    for (std::size_t i = 0; i < call.shape.size(); ++i) {
        before[call.axis(static_cast<std::int64_t>(i))] = static_cast<std::size_t>(pads[i]);
    }
    for_each_position(call.output.extents, call.order, [&](const auto &at) {
        const float *source = from.data;
        bool inside = true;
        for (std::size_t axis = 0; axis < kMostDimensions; ++axis) {
            const auto index = source_of(at[axis], before[axis], from.extents[axis], mirrors);
            inside = inside && index != kNone;
            source += inside ? index * from.strides[axis] : 0;
        }
        *call.output.at(at[0], at[1], at[2], at[3]) = inside ? *source : value;
    });
}

}  // namespace

std::vector<LoopOfType> movement_loops() {
    return {{"Concat", join, true},
            {"Slice", cut, true},
            {"Reshape", reshape, true},
            {"Transpose", transpose, true},
            {"Pad", pad, true}};
}

}  // namespace parapipe
