#pragma once

#include "execution/host_slot.hpp"
#include "execution/orders.hpp"
#include "plan/plan.hpp"

#include <memory>
#include <set>
#include <vector>

namespace parapipe {

/// The tensors of a processor that computes in the CPU's memory: how they lie, and where just now.
class Tensors {
public:
    Tensors(const Plan &plan, ProcessorId processor, const std::vector<float> &weights);

    const Plan &plan() const { return plan_; }
    ProcessorId processor() const { return processor_; }
    /// A constant lies in ONNX's order.
    Layout layout(TensorId tensor) const;
    Order order(TensorId tensor) const;
    float *data(TensorId tensor) const { return data_[tensor]; }
    void bind(TensorId tensor, std::byte *memory) { data_[tensor] = reinterpret_cast<float *>(memory); }
    /// Gets memory for the processor's tensors but those that will be bound. Tensors that are never needed at
    /// the same time lie in the same bytes.
    void allocate(const std::set<TensorId> &bound);

private:
    const Plan &plan_;
    ProcessorId processor_;
    const Orders orders_;
    std::vector<float *> data_;
    std::unique_ptr<HostSlot> memory_;
};

}  // namespace parapipe
