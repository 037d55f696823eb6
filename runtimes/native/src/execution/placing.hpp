#pragma once

#include "execution/buffers.hpp"
#include "plan/plan.hpp"

#include <vector>

namespace parapipe {

/// Lets buffers lie in the plan's arenas that can: those of CPUs, without padding, of which the plan has a
/// place for all that lies in them.
/// @return The places that are taken, by number.
std::vector<bool> take_places(const Plan &plan, Buffers &buffers);

}  // namespace parapipe
