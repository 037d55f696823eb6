#pragma once

#include "plan/plan.hpp"

#include <string>

namespace parapipe {

/// What keeps a backend from computing an operator, after "operator '...'"; empty if nothing.
std::string obstacle_of(const Plan &plan, const Operator &op, BackendKind backend);

}  // namespace parapipe
