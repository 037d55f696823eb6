#pragma once

#include "plan/plan.hpp"

#include <cstdint>

namespace parapipe {

/// Bytes that tensors, channels and weights take at the least: padding and the library's workspace are
/// not in it. With arenas, these stand for tensors and channels.
std::uint64_t memory_bytes(const Plan &plan);

/// @throws Error if a plan needs more than there is.
void check_memory(const Plan &plan, std::uint64_t available_bytes);

/// Physical memory of this machine.
std::uint64_t memory_here_bytes();

}  // namespace parapipe
