#pragma once

#include "execution/buffers.hpp"
#include "plan/plan.hpp"

#include <cstddef>
#include <vector>

namespace parapipe {

/// Where the buffers of a frame lie in one piece of memory, in bytes.
struct FrameMemory {
    std::vector<std::size_t> offset_bytes;  // by buffer
    std::size_t size_bytes = 0;
};

/// Shares out memory for a frame, in whatever order operators run: buffers lie in the same bytes only if all that use
/// one of them have ended before anything writes to the other, because that waits for what they make.
/// @param plan One of a single processor.
/// @param size_bytes By buffer.
FrameMemory share_out(const Plan &plan, const Buffers &buffers, const std::vector<std::size_t> &size_bytes);

}  // namespace parapipe
