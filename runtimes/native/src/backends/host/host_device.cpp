#include "backends/host/host_device.hpp"

#include "backends/host/loop_kernel.hpp"
#include "error.hpp"

#include <pthread.h>
#include <sched.h>

namespace parapipe {
void bind_thread(const Processor &processor) {
    if (processor.cores.empty()) {
        return;
    }
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (const int core : processor.cores) {
        CPU_SET(static_cast<std::size_t>(core), &cores);
    }
    if (pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores) != 0) {
        throw Error("processor '" + processor.name + "' cannot be bound to its cores; choose others with --cores");
    }
}

namespace {

class PlainDevice : public HostDevice {
public:
    using HostDevice::HostDevice;

protected:
    std::unique_ptr<Kernel> library_kernel(OperatorId /*op*/) override { return nullptr; }
};

}  // namespace

HostDevice::HostDevice(const Plan &plan, ProcessorId processor, const std::vector<float> &weights, Overlap &overlap)
    : tensors_(plan, processor, weights), overlap_(overlap) {
    bind_thread(plan.processors[processor]);
}

void HostDevice::configure(OperatorId op) {
    auto kernel = library_kernel(op);
    kernels_[op] = kernel ? std::move(kernel) : make_loop_kernel(tensors_, op);
}

std::unique_ptr<Slot> HostDevice::make_slot(TensorId tensor) {
    return std::make_unique<HostSlot>(layout(tensor).size_bytes);
}

void HostDevice::allocate(const std::set<TensorId> &bound) {
    tensors_.allocate(bound);
    for (const auto &[op, kernel] : kernels_) {
        kernel->prepare();
    }
}

void HostDevice::bind(TensorId tensor, Slot &slot, std::size_t offset_bytes) {
    tensors_.bind(tensor, slot.host() + offset_bytes);
}

void HostDevice::run(OperatorId op) {
    const Overlap::Turn turn(overlap_);
    kernels_.at(op)->run();
}

bool HostDevice::plain(OperatorId op) const {
    const auto found = kernels_.find(op);
    return found != kernels_.end() && found->second->plain();
}

std::unique_ptr<Device> make_plain_device(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                          Overlap &overlap) {
    return std::make_unique<PlainDevice>(plan, processor, weights, overlap);
}

}  // namespace parapipe
