#pragma once

#include "execution/buffers.hpp"
#include "execution/semaphore.hpp"
#include "plan/plan.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

namespace parapipe {

using Semaphores = std::deque<Semaphore>;

/// What somebody waits for, or says, frame by frame. Where processors take turns on frames, the frames that two of
/// them have in common are counted apart from all others: by the remainder of a frame's number.
class Signal {
public:
    Signal() = default;
    /// @param ahead How many frames later somebody waits than this one says.
    Signal(std::vector<Semaphore *> counts, std::size_t ahead) : counts_(std::move(counts)), ahead_(ahead) {}

    void acquire(std::size_t frame) const { of(frame).acquire(); }
    void release(std::size_t frame) const { of(frame).release(); }
    void open() const {
        for (Semaphore *count : counts_) {
            count->open();
        }
    }

private:
    Semaphore &of(std::size_t frame) const { return *counts_[(frame + ahead_) % counts_.size()]; }

    std::vector<Semaphore *> counts_;
    std::size_t ahead_ = 0;
};

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
    std::vector<Signal> claims;
    Signal filled;
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
    std::vector<Signal> arrivals;
    std::vector<Signal> claims;
    std::vector<Binding> bindings;
    /// Buffers that a GPU takes over from the CPUs before, and gives back after.
    std::vector<std::size_t> takes;
    std::vector<std::size_t> leaves;
    std::vector<Copy> copies;
    /// Are told that the output is there, that what was read here is not needed any more.
    std::vector<Signal> sends;
    std::vector<Signal> releases;
    /// Are told that the bytes in an arena that were used here may be written to; after the last frame,
    /// that they may be for good.
    std::vector<Signal> hands_on;
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
