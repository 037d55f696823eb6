#pragma once

#include "plan/plan.hpp"

#include <vector>

namespace parapipe {

/// What must have ended before an operator writes to its place in an arena: `first`, in the frame so
/// many before; below 0, in a later one.
struct ArenaWait {
    OperatorId then = kNone;
    OperatorId first = kNone;
    std::int64_t frames = 0;
};

/// The operator that writes to a place: who makes the tensor, or the first in the plan to read a graph
/// input there.
OperatorId writer_of(const Plan &plan, const Place &place);

/// Two tensors may have the same bytes one after the other. The plan's times keep them apart; a run,
/// whose times differ, waits for those that have ended by then in the plan. As the plan itself keeps
/// to that, such waits never form a circle. Within a processor, the order of its turns does it.
/// @param taken Places that are used, by number.
std::vector<ArenaWait> arena_waits(const Plan &plan, const std::vector<bool> &taken);

}  // namespace parapipe
