#include "operators/catalogue.hpp"

#include "error.hpp"

#include <set>

namespace parapipe {
namespace {

using Kind = AttributeRule::Kind;

Shape reshaped(const Call &call) {
    call.demand(call.output.elements() == call.inputs[0]->elements(), "changes the number of elements");
    return call.output.shape;
}

Shape joined(const Call &call) {
    auto shape = call.shape(0);
    const auto axis = static_cast<std::size_t>(call.op.attributes.integer("axis"));
    call.demand(axis < shape.size(), "has an axis that its inputs lack");
    for (std::size_t i = 1; i < call.inputs.size(); ++i) {
        auto other = call.shape(i);
        call.demand(other.size() == shape.size(), "has inputs of different ranks");
        shape[axis] += other[axis];
        other[axis] = shape[axis];
        call.demand(other == shape, "has inputs that differ in more than its axis");
    }
    return shape;
}

Shape transposed(const Call &call) {
    const auto &x = call.shape(0);
    const auto &perm = call.op.attributes.integers("perm");
    call.demand(perm.size() == x.size() && std::set<std::int64_t>(perm.begin(), perm.end()).size() == perm.size(),
                "has a perm that is no order of its input's axes");
    Shape shape;
    for (const auto axis : perm) {
        call.demand(axis < static_cast<std::int64_t>(x.size()), "has a perm that is no order of its input's axes");
        shape.push_back(x[static_cast<std::size_t>(axis)]);
    }
    return shape;
}

Shape padded(const Call &call) {
    auto shape = call.shape(0);
    const auto &pads = call.op.attributes.integers("pads");
    const bool mirrors = call.op.attributes.text("mode") == "reflect";
    call.demand(pads.size() == 2 * shape.size(), "needs two pads for each axis");
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const auto before = pads[axis];
        const auto after = pads[axis + shape.size()];
        call.demand(!mirrors || (before < shape[axis] && after < shape[axis]), "reflects more than there is");
        shape[axis] += before + after;
    }
    return shape;
}

Shape sliced(const Call &call) {
    auto shape = call.shape(0);
    const auto &starts = call.op.attributes.integers("starts");
    const auto &ends = call.op.attributes.integers("ends");
    const auto &steps = call.op.attributes.integers("steps");
    const auto rank = shape.size();
    call.demand(starts.size() == rank && ends.size() == rank && steps.size() == rank,
                "needs a start, an end and a step for each axis");
    for (std::size_t axis = 0; axis < rank; ++axis) {
        call.demand(starts[axis] < ends[axis] && ends[axis] <= shape[axis] && steps[axis] >= 1,
                    "should have 0 <= start < end <= extent, and steps of 1 or more");
        shape[axis] = (ends[axis] - starts[axis] + steps[axis] - 1) / steps[axis];
    }
    return shape;
}

}  // namespace

std::vector<OperatorKind> movement_kinds() {
    constexpr std::size_t any = 1024;
    return {
        {"Concat", 1, any, any, false, {{"axis", Kind::integer}}, joined},
        {"Reshape", 1, 1, 1, false, {}, reshaped},
        {"Transpose", 1, 1, 1, false, {{"perm", Kind::integers, 0, 0}}, transposed},
        {"Pad", 1, 1, 1, false,
         {{"mode", Kind::word, 0, 0, {"constant", "reflect"}}, {"pads", Kind::integers, 0, 0}, {"value", Kind::number}},
         padded},
        {"Slice", 1, 1, 1, false,
         {{"starts", Kind::integers, 0, 0}, {"ends", Kind::integers, 0, 0}, {"steps", Kind::integers, 0, 0}},
         sliced},
    };
}

}  // namespace parapipe
