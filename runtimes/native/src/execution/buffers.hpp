#pragma once

#include "execution/orders.hpp"
#include "plan/plan.hpp"

#include <array>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace parapipe {

/// A tensor as one processor has it.
struct Instance {
    TensorId tensor = kNone;
    ProcessorId processor = kNone;

    bool operator<(const Instance &other) const {
        return std::tie(tensor, processor) < std::tie(other.tensor, other.processor);
    }
};

/// When a processor takes an operator for a frame: so many rounds behind the frame's first operators
/// there, and at this position of the round.
using Moment = std::pair<std::size_t, std::size_t>;

/// The moment of each operator.
std::vector<Moment> moments_of(const Plan &plan);

/// How many frames a processor has between two moments at once: each begins at the first one and is
/// kept until the last one is over.
std::size_t frames_between(const Moment &first, const Moment &last);

/// Memory for one tensor, its root, in which others may lie: parts of it, and what the same tensor is
/// to another processor.
struct Buffer {
    Instance root;
    std::vector<Instance> members;
    Padding padding;
    /// How many frames have memory of their own.
    std::size_t frames = 1;
    /// Whether another processor copies into it.
    bool received = false;
    /// Number of the root's place in an arena; kNone if it has memory of its own.
    std::size_t place = kNone;

    /// Whether a device has this memory for itself, and nothing else knows of it.
    bool single() const { return members.size() == 1 && frames == 1 && !received && place == kNone; }
    bool seen_by_others(ProcessorId processor) const;
    /// A member with the extents of the root whose device makes the memory: a GPU's, if one uses it.
    const Instance &maker(const Plan &plan) const;
};

/// Where an instance lies: its first element in the root, extents filled up to four with ones in front.
struct Region {
    std::size_t buffer = kNone;
    std::array<std::size_t, kMostDimensions> start{};

    bool operator==(const Region &other) const { return buffer == other.buffer && start == other.start; }
};

/// The memory of a whole plan.
struct Buffers {
    std::vector<Buffer> all;
    std::map<Instance, Region> regions;
    /// Transfers, by number, of which both ends lie in one place; the others are copies.
    std::vector<bool> shared;
    /// Operators, by number, that compute nothing, as what they make lies where it is read from.
    std::vector<bool> views;
    /// Places in arenas, by number, in which something lies.
    std::vector<bool> places;

    const Buffer &of(const Instance &instance) const { return all[regions.at(instance).buffer]; }
    bool overlap(const Plan &plan, const Instance &one, const Instance &other) const;
};

/// Says where all tensors lie.
///
/// A function may write into the padding of what it reads (a convolution fills the border with
/// zeros, a pool with others), and a GPU's memory cannot be used while a CPU sees it. So memory that
/// has padding, or that a GPU uses, is shared only if one processor alone reads it. A part has the
/// padding of the whole, which moves no channel from its place in it; but rows would not follow upon each
/// other any more. Processors that keep a tensor in different orders copy it.
/// @param views Operators that have no function so far.
/// @param padding What the functions ask for around an instance.
/// @return Its views are those of the given ones that can be; the others need a function.
Buffers buffers_of(const Plan &plan, const Orders &orders, const std::vector<bool> &views,
                   const std::function<Padding(const Instance &)> &padding);

}  // namespace parapipe
