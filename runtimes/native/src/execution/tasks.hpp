#pragma once

#include "plan/plan.hpp"
#include "strategies/work.hpp"

#include <memory>
#include <string>
#include <vector>

namespace parapipe {

/// What strategies give to processors: the operators of the plan (`source`), each with all that the runner does
/// for it, in this order.
struct Tasks {
    std::vector<std::vector<OperatorId>> operators;
    /// What is to be done of them for every frame. Processors share the memory, so tensors need not be moved, and
    /// each may run every task. Times are still to be measured.
    Work work;
};

Tasks tasks_of(const Plan &plan);

/// The plan as one of a single processor, by which memory is shared out where a strategy decides; none for "plan".
/// @throws Error if processors cannot do each other's work: with ARM Compute Library, who reads a tensor may write to
///     its padding, so two cannot read it at the same time.
std::unique_ptr<const Plan> plan_together(const Plan &plan, const std::string &strategy);

/// So many frames may be on their way, whatever a strategy does: no order of the plan waits for more.
std::size_t frames_under_way(const Plan &plan);

}  // namespace parapipe
