#pragma once

#include "execution/layout.hpp"
#include "execution/orders.hpp"
#include "plan/plan.hpp"

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

/// Memory in which tensors lie: a whole one, the root, with parts of it and what the same tensor is to another
/// processor; or parts that follow upon each other, of which no member is the whole.
struct Buffer {
    /// A member as large as all of it, or else its first one.
    Instance root;
    std::vector<Instance> members;
    Padding padding;
    /// How large it is, and how its elements lie.
    Extents extents{};
    Order order = Order::nchw;
    /// How many frames have memory of their own.
    std::size_t frames = 1;
    /// Whether another processor copies into it.
    bool received = false;
    /// Number of the root's place in an arena; kNone if it has memory of its own.
    std::size_t place = kNone;

    /// Whether a device has this memory for itself, and nothing else knows of it.
    bool single() const { return members.size() == 1 && frames == 1 && !received && place == kNone; }
    bool seen_by_others(ProcessorId processor) const;
    /// Whether a member is as large as all of it. If none is, it has no padding and no GPU uses it.
    bool has_whole(const Plan &plan) const;
    /// A member with the extents of the root whose device makes the memory: a GPU's, if one uses it.
    const Instance &maker(const Plan &plan) const;
};

/// Where an instance lies: its first element in the buffer, extents filled up to four with ones in front.
struct Region {
    std::size_t buffer = kNone;
    Extents start{};

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

using LayoutOf = std::function<Layout(const Instance &)>;

/// How a whole buffer lies in memory.
/// @param layouts How a device keeps an instance.
Layout layout_of(const Plan &plan, const Buffer &buffer, const LayoutOf &layouts);

/// Says where all tensors lie.
///
/// Everything that a Slice, a Concat or a transfer joins to something else lies beside it or in it, at the place
/// that follows from their attributes, if all can lie so: then the operator computes nothing, and the transfer
/// copies nothing. So parts of an operator, and the borders that neighbours read of each other, lie once, in one
/// buffer, though none of the plan's tensors may be the whole. Bytes hold one tensor only: what two operators
/// make never overlaps.
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
