#include "backends/stub_device.hpp"

#include "execution/host_slot.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace parapipe {
namespace {

class StubDevice : public Device {
public:
    StubDevice(const Plan &plan, const std::vector<float> &weights, Overlap &overlap)
        : plan_(plan), weights_(weights), overlap_(overlap) {}

    void add_tensors(OperatorId v) override {
        for (const TensorId t : plan_.operators[v].inputs) {
            if (t != kNone) {
                padding_[t];
            }
        }
        padding_[plan_.operators[v].output];
    }

    void configure(OperatorId v) override {
        const auto &op = plan_.operators[v];
        if (op.type == "Conv" || op.type == "MaxPool" || op.type == "AveragePool") {
            for (const TensorId t : op.inputs) {
                if (t != kNone) {
                    extend(t, {1, 2, 1, 2});
                }
            }
        }
    }

    Padding padding(TensorId tensor) const override { return padding_.at(tensor); }
    void extend(TensorId tensor, const Padding &padding) override {
        padding_[tensor] = larger_of(padding_[tensor], padding);
    }
    Layout layout(TensorId tensor) const override {
        return layout_of(plan_.tensors[tensor].shape, padding_.at(tensor));
    }
    std::unique_ptr<Slot> make_slot(TensorId tensor) override {
        return std::make_unique<HostSlot>(layout(tensor).size_bytes);
    }

    void allocate(const std::set<TensorId> &bound) override {
        for (const auto &[tensor, padding] : padding_) {
            if (bound.count(tensor) == 0) {
                auto &slot = own_[tensor] = std::make_unique<HostSlot>(layout(tensor).size_bytes);
                memory_[tensor] = slot->host();
            }
            if (const auto offset = plan_.tensors[tensor].offset) {
                const float *constant = weights_.data() + *offset / sizeof(float);
                copy(reinterpret_cast<const std::byte *>(constant), layout_of(plan_.tensors[tensor].shape),
                     memory_[tensor], layout(tensor));
            }
        }
    }

    void bind(TensorId tensor, Slot &slot, std::size_t offset_bytes) override {
        memory_[tensor] = slot.host() + offset_bytes;
    }
    void take(Slot & /*slot*/) override {}
    void leave(Slot & /*slot*/) override {}

    void run(OperatorId v) override {
        const Overlap::Turn turn(overlap_);
        const auto &op = plan_.operators[v];
        if (op.type == "Concat" || op.type == "Slice") {
            move_parts(op);
            return;
        }
        std::vector<float> sum(plan_.tensors[op.output].elements(), 1.0F);
        for (std::size_t k = 0; k < op.inputs.size(); ++k) {
            if (op.inputs[k] == kNone) {
                continue;
            }
            spoil_padding(op.inputs[k]);
            const auto input = dense(op.inputs[k]);
            for (std::size_t i = 0; i < sum.size(); ++i) {
                sum[i] += 0.5F * static_cast<float>(k + 1) * input[i % input.size()];
            }
        }
        copy(reinterpret_cast<const std::byte *>(sum.data()), layout_of(plan_.tensors[op.output].shape),
             memory_.at(op.output), layout(op.output));
    }

    void finish() override {}
    std::byte *map(TensorId tensor) override { return memory_.at(tensor); }
    void unmap(TensorId /*tensor*/) override {}

private:
    /// Copies all inputs of a Concat, or what a Slice cuts out.
    void move_parts(const Operator &op) {
        const bool cut = op.type == "Slice";
        const auto rank = plan_.tensors[op.output].shape.size();
        auto whole = layout(cut ? op.inputs.front() : op.output);
        for (const TensorId t : op.inputs) {
            const TensorId part = cut ? op.output : t;
            const auto extents = layout(part).extents;
            if (cut) {
                for (std::size_t i = 0; i < rank; ++i) {
                    const auto at = kMostDimensions - rank + i;
                    whole.offset += static_cast<std::size_t>(op.attributes.integers("starts")[i]) * whole.strides[at];
                    whole.strides[at] *= static_cast<std::size_t>(op.attributes.integers("steps")[i]);
                }
                whole.extents = extents;
                copy(memory_.at(t), whole, memory_.at(op.output), layout(op.output));
            } else {
                whole.extents = extents;
                copy(memory_.at(t), layout(t), memory_.at(op.output), whole);
                const auto at = kMostDimensions - rank + static_cast<std::size_t>(op.attributes.integer("axis"));
                whole.offset += extents[at] * whole.strides[at];
            }
        }
    }

    std::vector<float> dense(TensorId tensor) {
        std::vector<float> values(plan_.tensors[tensor].elements());
        copy(memory_.at(tensor), layout(tensor), reinterpret_cast<std::byte *>(values.data()),
             layout_of(plan_.tensors[tensor].shape));
        return values;
    }

    /// Writes all of a tensor's memory, its elements as they were.
    void spoil_padding(TensorId tensor) {
        if (padding_.at(tensor).none()) {
            return;
        }
        const auto values = dense(tensor);
        const auto here = layout(tensor);
        std::memset(memory_.at(tensor), 0x7f, here.size_bytes);
        copy(reinterpret_cast<const std::byte *>(values.data()), layout_of(plan_.tensors[tensor].shape),
             memory_.at(tensor), here);
    }

    const Plan &plan_;
    const std::vector<float> &weights_;
    Overlap &overlap_;
    std::map<TensorId, Padding> padding_;
    std::map<TensorId, std::unique_ptr<HostSlot>> own_;
    std::map<TensorId, std::byte *> memory_;
};

}  // namespace

std::unique_ptr<Device> make_stub_device(const Plan &plan, ProcessorId /*processor*/,
                                         const std::vector<float> &weights, Overlap &overlap) {
    return std::make_unique<StubDevice>(plan, weights, overlap);
}

}  // namespace parapipe
