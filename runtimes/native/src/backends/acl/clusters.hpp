#pragma once

#include "execution/overlap.hpp"
#include "plan/plan.hpp"

#include <arm_compute/runtime/CPP/CPPScheduler.h>

namespace parapipe {

/// The threads of one CPU cluster. The library knows one scheduler for the whole process; a hook put
/// in its place passes work on to the cluster of the thread that asks. So several clusters compute
/// at the same time, each thread with its own.
class Cluster {
public:
    /// Makes this thread and those of the cluster's pool run on the processor's cores, and all that
    /// the library schedules from this thread run there.
    Cluster(const Processor &processor, Overlap &overlap);
    ~Cluster();
    Cluster(const Cluster &) = delete;
    Cluster &operator=(const Cluster &) = delete;

    arm_compute::CPPScheduler &scheduler() { return scheduler_; }
    Overlap &overlap() { return overlap_; }

private:
    arm_compute::CPPScheduler scheduler_;
    Overlap &overlap_;
};

}  // namespace parapipe
