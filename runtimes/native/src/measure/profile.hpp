#pragma once

#include "measure/statistics.hpp"

#include <string>

namespace parapipe {

/// Rows that `parapipe profile --import` reads: of each kind of operator on each processor, the lower
/// median over all its operators and frames.
/// @throws Error if the plan has no profile rows, or lacks a clock.
std::string profile_csv(const Plan &plan, const std::vector<OperatorTimes> &times);

}  // namespace parapipe
