#pragma once

#include "execution/channel.hpp"
#include "execution/layout.hpp"
#include "execution/overlap.hpp"
#include "plan/plan.hpp"

#include <memory>
#include <set>
#include <string>

namespace parapipe {

/// What a processor computes with: its tensors and functions. All calls come from its own thread, in
/// this order: the constructor and `configure`, then `extend` and `layout`, `allocate`, then frames.
class Device {
public:
    virtual ~Device() = default;

    /// Makes tensors and functions for the processor's operators, in their order.
    virtual void configure() = 0;
    virtual Padding padding(TensorId tensor) const = 0;
    /// Makes the padding as large as this one.
    virtual void extend(TensorId tensor, const Padding &padding) = 0;
    virtual Layout layout(TensorId tensor) const = 0;
    /// Memory for one frame of the tensor, in the layout that it has here.
    virtual std::unique_ptr<Slot> make_slot(TensorId tensor) = 0;
    /// Gets memory for all tensors but those that will be bound to slots, and takes in the constants.
    virtual void allocate(const std::set<TensorId> &bound) = 0;

    /// Lets a tensor lie in a slot, until it is bound to another one.
    virtual void bind(TensorId tensor, Slot &slot) = 0;
    /// Lets the other end of its channel see the slot that a tensor is bound to, once what uses it has been
    /// computed. A CPU may go on reading there until it is bound anew.
    virtual void leave(TensorId tensor) = 0;
    virtual void run(OperatorId op) = 0;
    /// Waits until all that was run is computed.
    virtual void finish() = 0;
    /// Lets the CPU see a tensor's memory, and takes it back.
    virtual std::byte *map(TensorId tensor) = 0;
    virtual void unmap(TensorId tensor) = 0;
};

/// Makes the device of a processor; to be called on its thread.
/// @throws Error if this runner was built without the processor's backend.
std::unique_ptr<Device> make_device(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                    Overlap &overlap);

/// Whether the runner was built with it.
bool is_built_in(BackendKind backend);

}  // namespace parapipe
