#pragma once

#include "plan/plan.hpp"

namespace parapipe {

/// Checks how the parts of a plan fit together: constants in the file, shapes, places, transfers, and
/// that no processors wait for each other for ever.
/// @throws Error at the first that does not.
void check_plan(const Plan &plan);

}  // namespace parapipe
