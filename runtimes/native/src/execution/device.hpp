#pragma once

#include "execution/slot.hpp"
#include "execution/layout.hpp"
#include "execution/overlap.hpp"
#include "plan/plan.hpp"

#include <memory>
#include <set>
#include <string>

namespace parapipe {

/// What a processor computes with: its tensors and functions. All calls come from its own thread, in
/// this order: the constructor, `add_tensors` of all operators, `configure`, then `extend`, `layout` and
/// `make_slot`, `allocate`, then frames.
class Device {
public:
    virtual ~Device() = default;

    /// Makes the tensors of an operator, and the functions that compute it.
    virtual void add_tensors(OperatorId op) = 0;
    virtual void configure(OperatorId op) = 0;
    virtual Padding padding(TensorId tensor) const = 0;
    /// Makes the padding as large as this one.
    virtual void extend(TensorId tensor, const Padding &padding) = 0;
    virtual Layout layout(TensorId tensor) const = 0;
    /// Memory for one frame of the tensor, in the layout that it has here.
    virtual std::unique_ptr<Slot> make_slot(TensorId tensor) = 0;
    /// Gets memory for all tensors but those that will be bound to slots, and takes in the constants.
    virtual void allocate(const std::set<TensorId> &bound) = 0;

    /// Takes over a slot from the CPUs, and gives it back once what uses it has been computed.
    virtual void take(Slot &slot) = 0;
    virtual void leave(Slot &slot) = 0;
    /// Lets a tensor lie in a slot, so many bytes from its start, until it is bound to another one.
    virtual void bind(TensorId tensor, Slot &slot, std::size_t offset_bytes) = 0;
    virtual void run(OperatorId op) = 0;
    /// Waits until all that was run is computed.
    virtual void finish() = 0;
    /// Lets the CPU see a tensor's memory, and takes it back.
    virtual std::byte *map(TensorId tensor) = 0;
    virtual void unmap(TensorId tensor) = 0;
    /// Whether an operator is computed by a plain loop, for lack of a fast function.
    virtual bool plain(OperatorId /*op*/) const { return false; }
};

/// Makes the device of a processor; to be called on its thread.
/// @throws Error if this runner was built without the processor's backend.
std::unique_ptr<Device> make_device(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                    Overlap &overlap);

/// Whether the runner was built with it.
bool is_built_in(BackendKind backend);

/// @throws Error if this runner was built without the backend of a processor.
void check_backends(const Plan &plan);

}  // namespace parapipe
