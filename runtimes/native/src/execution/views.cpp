#include "execution/views.hpp"

#include "execution/layout.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace parapipe {
namespace {

bool is_cut(const Operator &op) {
    return op.type == "Slice";
}

Extents whole_of(const Plan &plan, const Operator &op) {
    return extents_of(plan, is_cut(op) ? op.inputs.front() : op.output);
}

Extents part_of(const Plan &plan, const Operator &op) {
    return extents_of(plan, is_cut(op) ? op.output : op.inputs.front());
}

/// Whether each part of a tensor that is joined or cut is one piece of its memory.
bool in_one_piece(const Plan &plan, const Operator &op, Order order) {
    const auto axis = axis_of(plan, op);
    if (axis == kNone) {
        return is_cut(op);
    }
    if (is_cut(op)) {
        const auto &steps = op.attributes.integers("steps");
        if (std::any_of(steps.begin(), steps.end(), [](std::int64_t step) { return step != 1; })) {
            return false;
        }
    }
    auto whole = whole_of(plan, op);
    const auto part = part_of(plan, op);
    whole[axis] = part[axis];
    const auto axes = axes_of(order);
    const auto end = std::find(axes.begin(), axes.end(), axis);
    return whole == part && std::all_of(axes.begin(), end, [&whole](std::size_t outer) { return whole[outer] == 1; });
}

}  // namespace

Extents extents_of(const Plan &plan, TensorId tensor) {
    return layout_of(plan.tensors[tensor].shape).extents;
}

Extents sum_of(Extents one, const Extents &other) {
    std::transform(one.begin(), one.end(), other.begin(), one.begin(), std::plus<>());
    return one;
}

bool overlap(const Extents &start, const Extents &extents, const Extents &other_start, const Extents &other_extents) {
    bool found = true;
    for (std::size_t i = 0; i < kMostDimensions; ++i) {
        found = found && start[i] < other_start[i] + other_extents[i] && other_start[i] < start[i] + extents[i];
    }
    return found;
}

std::vector<TensorId> read_by(const Plan &plan, const Operator &op) {
    std::vector<TensorId> read;
    std::copy_if(op.inputs.begin(), op.inputs.end(), std::back_inserter(read),
                 [&plan](TensorId t) { return t != kNone && !plan.tensors[t].constant(); });
    return read;
}

std::size_t axis_of(const Plan &plan, const Operator &op) {
    const auto whole = whole_of(plan, op);
    const auto part = part_of(plan, op);
    const auto differ = std::mismatch(whole.begin(), whole.end(), part.begin()).first;
    return differ == whole.end() ? kNone : static_cast<std::size_t>(differ - whole.begin());
}

Extents start_of(const Operator &op) {
    Extents start{};
    const auto &starts = op.attributes.integers("starts");
    std::transform(starts.rbegin(), starts.rend(), start.rbegin(),
                   [](std::int64_t at) { return static_cast<std::size_t>(at); });
    return start;
}

std::vector<bool> possible_views(const Plan &plan, const Orders &orders) {
    const auto places = plan.places();
    std::vector<bool> views(plan.operators.size());
    for (OperatorId v = 0; v < views.size(); ++v) {
        const auto &op = plan.operators[v];
        const bool moves = (op.type == "Concat" || is_cut(op)) && !op.activation && read_by(plan, op) == op.inputs;
        const bool on_cpu = plan.processors[places[v]].backend != BackendKind::opencl;
        views[v] = moves && on_cpu && in_one_piece(plan, op, orders.of(op.output, places[v]));
    }
    return views;
}

}  // namespace parapipe
