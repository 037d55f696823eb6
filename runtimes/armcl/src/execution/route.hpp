#pragma once

#include "execution/channel.hpp"
#include "execution/layout.hpp"
#include "plan/plan.hpp"

#include <memory>
#include <vector>

namespace parapipe {

/// How a transfer is done. The target's tensor always lies in the slot. If the route is `shared` the
/// source's does too and nothing is copied; else the source copies into the slot.
struct Route {
    Transfer transfer;
    bool shared = false;
    /// Layout of the slots: the target's.
    Layout layout;
    std::unique_ptr<Channel> channel;
};

/// Says of each transfer of a plan whether its ends may share memory.
///
/// A function may write into the padding of what it reads (a convolution fills the border with
/// zeros, a pool with others), and a GPU's memory cannot be used while a CPU sees it. So memory is
/// shared if the target is the only one that reads the tensor; or if both ends are CPUs and neither
/// has padding.
/// @param padding Of each transfer, the larger of both ends.
std::vector<bool> shared_transfers(const Plan &plan, const std::vector<Padding> &padding);

}  // namespace parapipe
