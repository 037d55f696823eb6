#pragma once

#include "execution/buffers.hpp"
#include "execution/semaphore.hpp"
#include "plan/plan.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <vector>

namespace parapipe {

using Semaphores = std::deque<Semaphore>;

/// A tensor in a buffer, and the bytes before it there.
struct Binding {
    TensorId tensor = kNone;
    std::size_t buffer = kNone;
    std::size_t offset_bytes = 0;
};

/// A graph input that is copied to a processor: as much of it as is read there.
struct Load {
    /// Among the graph inputs.
    std::size_t position = kNone;
    Extents start{};
    Extents extents{};
};

/// A copy of what an operator makes, for another processor.
struct Copy {
    Binding target;
    Layout layout;
    /// Say that there is room, that the copy is there.
    std::vector<Semaphore *> claims;
    Semaphore *filled = nullptr;
};

/// An operator's turn for a frame, and what has to be done around it. What it waits for and what it
/// says counts frames.
struct Turn {
    OperatorId op = kNone;
    /// Whether nothing is computed, as what is made lies where it is read from.
    bool view = false;
    /// In round r it is done for frame r - lag.
    std::size_t lag = 0;
    /// The graph inputs that the processor reads here for the first time.
    std::vector<Load> loads;
    /// Whether it is the processor's first one for the frame.
    bool first = false;
    /// Say that a tensor from another processor is there, that there is room for what is written here.
    std::vector<Semaphore *> arrivals;
    std::vector<Semaphore *> claims;
    std::vector<Binding> bindings;
    /// Buffers that a GPU takes over from the CPUs before, and gives back after.
    std::vector<std::size_t> takes;
    std::vector<std::size_t> leaves;
    std::vector<Copy> copies;
    /// Are told that the output is there, that what was read here is not needed any more.
    std::vector<Semaphore *> sends;
    std::vector<Semaphore *> releases;
    /// Are told that the bytes in an arena that were used here may be written to; after the last frame,
    /// that they may be for good.
    std::vector<Semaphore *> hands_on;
    /// Position of the output among the graph outputs; kNone if it is none.
    std::size_t result = kNone;
};

/// How long a processor waits without sleeping: as long as a frame should take, but no more than a millisecond,
/// for by then waking up costs little beside it. Not at all where processors share cores.
std::chrono::nanoseconds spin_of(const Plan &plan);

/// The turns of each processor, in order; what they wait for is added to the semaphores.
std::vector<std::vector<Turn>> turns_of(const Plan &plan, const Buffers &buffers, const LayoutOf &layouts,
                                        Semaphores &semaphores);

}  // namespace parapipe
