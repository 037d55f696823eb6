#include "backends/acl/acl_device.hpp"
#include "backends/acl/devices.hpp"
#include "backends/acl/opencl_api.hpp"

#include <arm_compute/core/CL/OpenCL.h>
#include <arm_compute/runtime/CL/CLScheduler.h>

#include <sched.h>

namespace parapipe {
namespace {

using arm_compute::CLScheduler;

void check(cl_int code, const char *what) {
    if (code != CL_SUCCESS) {
        throw Error(text_of("OpenCL: ", what, " failed with code ", code));
    }
}

/// A GPU buffer in memory that the CPUs share. It is mapped, for the CPUs, whenever the GPU does not
/// have it bound; only the GPU's thread maps and unmaps it.
class ClSlot final : public Slot {
public:
    explicit ClSlot(std::size_t size_bytes) : size_bytes_(size_bytes) {
        cl_int code = CL_SUCCESS;
        buffer_ = cl::Buffer(CLScheduler::get().context(), CL_MEM_ALLOC_HOST_PTR | CL_MEM_READ_WRITE, size_bytes_,
                             nullptr, &code);
        check(code, "making a buffer");
        map();
    }

    std::byte *host() override { return mapping_; }
    const cl::Buffer &buffer() const { return buffer_; }

    /// Waits for all that was enqueued before.
    void map() {
        cl_int code = CL_SUCCESS;
        mapping_ = static_cast<std::byte *>(CLScheduler::get().queue().enqueueMapBuffer(
            buffer_, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size_bytes_, nullptr, nullptr, &code));
        check(code, "mapping a buffer");
    }

    void unmap() {
        check(CLScheduler::get().queue().enqueueUnmapMemObject(buffer_, mapping_), "unmapping a buffer");
        mapping_ = nullptr;
    }

private:
    std::size_t size_bytes_;
    cl::Buffer buffer_;
    std::byte *mapping_ = nullptr;
};

class OpenClDevice final : public AclDevice<OpenClApi> {
public:
    OpenClDevice(const Plan &plan, ProcessorId processor, const std::vector<float> &weights)
        : AclDevice(plan, processor, weights) {
        pin();
        if (!arm_compute::opencl_is_available()) {
            throw Error("processor '" + plan.processors[processor].name +
                        "' needs OpenCL, and there is no libOpenCL.so here; install the GPU's driver");
        }
        CLScheduler::get().default_init();
    }

    ~OpenClDevice() override { CLScheduler::get().sync(); }

    std::unique_ptr<Slot> make_slot(TensorId id) override { return std::make_unique<ClSlot>(layout(id).size_bytes); }

    // The slots that a GPU uses were all made here, but for those that it only copies into.
    void take(Slot &slot) override { static_cast<ClSlot &>(slot).unmap(); }
    void leave(Slot &slot) override { static_cast<ClSlot &>(slot).map(); }

    // What a GPU uses lies at the start of its slots.
    void bind(TensorId id, Slot &slot, std::size_t /*offset_bytes*/) override {
        auto &memory = static_cast<ClSlot &>(slot);
        if (std::exchange(bound_[id], &memory) == &memory) {
            return;
        }
        const auto status = tensor(id).allocator()->import_memory(memory.buffer());
        if (!status) {
            throw Error("the library cannot use a channel's memory: " + status.error_description());
        }
    }

    void finish() override { CLScheduler::get().sync(); }

protected:
    std::byte *map(arm_compute::CLTensor &tensor) override {
        tensor.map(true);
        return reinterpret_cast<std::byte *>(tensor.buffer());
    }
    void unmap(arm_compute::CLTensor &tensor) override { tensor.unmap(); }

private:
    /// Keeps this thread, which enqueues the kernels, on the processor's cores.
    void pin() const {
        if (processor().cores.empty()) {
            return;
        }
        cpu_set_t set;
        CPU_ZERO(&set);
        for (const int core : processor().cores) {
            CPU_SET(static_cast<std::size_t>(core), &set);
        }
        sched_setaffinity(0, sizeof(set), &set);
    }

    std::map<TensorId, ClSlot *> bound_;
};

}  // namespace

std::unique_ptr<Device> make_opencl_device(const Plan &plan, ProcessorId processor,
                                           const std::vector<float> &weights, Overlap & /*overlap*/) {
    return std::make_unique<OpenClDevice>(plan, processor, weights);
}

}  // namespace parapipe
