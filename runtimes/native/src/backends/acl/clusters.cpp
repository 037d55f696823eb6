#include "backends/acl/clusters.hpp"

#include "backends/host/host_device.hpp"
#include "error.hpp"

#include <arm_compute/core/ITensorPack.h>
#include <arm_compute/core/Window.h>
#include <arm_compute/runtime/Scheduler.h>

#include <memory>
#include <mutex>
#include <utility>

namespace parapipe {
namespace {

using arm_compute::CPPScheduler;
using arm_compute::ICPPKernel;
using arm_compute::IScheduler;
using arm_compute::ITensorPack;
using arm_compute::Window;

thread_local Cluster *this_cluster = nullptr;

Cluster &cluster_here() {
    if (this_cluster == nullptr) {
        throw Error("the library computes on a thread that belongs to no cluster; please report this");
    }
    return *this_cluster;
}

/// `schedule_op` takes a window too from release 21.02 on; the one that the library has is called.
template <class Scheduler>
auto forward_op(Scheduler &scheduler, ICPPKernel *kernel, const IScheduler::Hints &hints, const Window * /*window*/,
                ITensorPack &tensors, int) -> decltype(scheduler.schedule_op(kernel, hints, tensors)) {
    scheduler.schedule_op(kernel, hints, tensors);
}
template <class Scheduler>
auto forward_op(Scheduler &scheduler, ICPPKernel *kernel, const IScheduler::Hints &hints, const Window *window,
                ITensorPack &tensors, long) -> decltype(scheduler.schedule_op(kernel, hints, *window, tensors)) {
    scheduler.schedule_op(kernel, hints, *window, tensors);
}

class Hook final : public IScheduler {
public:
    void set_num_threads(unsigned int count) override { cluster_here().scheduler().set_num_threads(count); }
    unsigned int num_threads() const override { return cluster_here().scheduler().num_threads(); }

    void schedule(ICPPKernel *kernel, const Hints &hints) override {
        auto &cluster = cluster_here();
        const Overlap::Turn turn(cluster.overlap());
        cluster.scheduler().schedule(kernel, hints);
    }

    // One of these overrides what the library has; the other is never called.
    virtual void schedule_op(ICPPKernel *kernel, const Hints &hints, ITensorPack &tensors) {
        op(kernel, hints, nullptr, tensors);
    }
    virtual void schedule_op(ICPPKernel *kernel, const Hints &hints, const Window &window, ITensorPack &tensors) {
        op(kernel, hints, &window, tensors);
    }

    void run_tagged_workloads(std::vector<Workload> &workloads, const char *tag) override {
        auto &cluster = cluster_here();
        const Overlap::Turn turn(cluster.overlap());
        static_cast<IScheduler &>(cluster.scheduler()).run_tagged_workloads(workloads, tag);
    }

protected:
    void run_workloads(std::vector<Workload> &workloads) override { run_tagged_workloads(workloads, nullptr); }

private:
    static void op(ICPPKernel *kernel, const Hints &hints, const Window *window, ITensorPack &tensors) {
        auto &cluster = cluster_here();
        const Overlap::Turn turn(cluster.overlap());
        forward_op(cluster.scheduler(), kernel, hints, window, tensors, 0);
    }
};

}  // namespace

Cluster::Cluster(const Processor &processor, Overlap &overlap) : overlap_(overlap) {
    static std::once_flag once;
    std::call_once(once, [] { arm_compute::Scheduler::set(std::make_shared<Hook>()); });
    if (processor.cores.size() != processor.threads) {
        // Streams share cores: threads that are started from here may run on any of them.
        scheduler_.set_num_threads(1);
        bind_thread(processor);
        scheduler_.set_num_threads(processor.threads);
    } else {
        const auto cores = processor.cores;
        scheduler_.set_num_threads_with_affinity(
            processor.threads, [cores](int thread, int) { return cores[static_cast<std::size_t>(thread)]; });
    }
    this_cluster = this;
}

Cluster::~Cluster() {
    this_cluster = nullptr;
}

}  // namespace parapipe
