#pragma once

#include "backends/host/kernel.hpp"
#include "backends/host/tensors.hpp"
#include "execution/device.hpp"

#include <map>
#include <memory>

namespace parapipe {

/// Lets this thread, and those that it starts, run on the cores of a processor only, if it names any.
/// @throws Error if they cannot be had.
void bind_thread(const Processor &processor);

/// A processor that computes in the CPU's memory: with the functions of a library where it has one, and with
/// the runner's own loops for all else.
class HostDevice : public Device {
public:
    /// Binds the calling thread to the processor's cores.
    HostDevice(const Plan &plan, ProcessorId processor, const std::vector<float> &weights, Overlap &overlap);

    void add_tensors(OperatorId /*op*/) override {}
    void configure(OperatorId op) override;
    Padding padding(TensorId /*tensor*/) const override { return {}; }
    void extend(TensorId /*tensor*/, const Padding & /*padding*/) override {}
    Layout layout(TensorId tensor) const override { return tensors_.layout(tensor); }
    std::unique_ptr<Slot> make_slot(TensorId tensor) override;
    void allocate(const std::set<TensorId> &bound) override;
    void take(Slot & /*slot*/) override {}
    void leave(Slot & /*slot*/) override {}
    void bind(TensorId tensor, Slot &slot, std::size_t offset_bytes) override;
    void run(OperatorId op) override;
    void finish() override {}
    std::byte *map(TensorId tensor) override { return reinterpret_cast<std::byte *>(tensors_.data(tensor)); }
    void unmap(TensorId /*tensor*/) override {}
    bool plain(OperatorId op) const override;

protected:
    Tensors &tensors() { return tensors_; }
    /// The library's function for an operator; null if it has none.
    virtual std::unique_ptr<Kernel> library_kernel(OperatorId op) = 0;

private:
    Tensors tensors_;
    Overlap &overlap_;
    std::map<OperatorId, std::unique_ptr<Kernel>> kernels_;
};

/// A device without a library: loops alone.
std::unique_ptr<Device> make_plain_device(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                          Overlap &overlap);

}  // namespace parapipe
