#include "backends/acl/acl_device.hpp"
#include "backends/acl/clusters.hpp"
#include "backends/acl/devices.hpp"
#include "backends/acl/neon_api.hpp"
#include "execution/host_slot.hpp"

namespace parapipe {
namespace {

class NeonDevice final : public AclDevice<NeonApi> {
public:
    NeonDevice(const Plan &plan, ProcessorId processor, const std::vector<float> &weights, Overlap &overlap)
        : AclDevice(plan, processor, weights), cluster_(plan.processors[processor], overlap) {}

    std::unique_ptr<Slot> make_slot(TensorId id) override { return std::make_unique<HostSlot>(layout(id).size_bytes); }

    void take(Slot & /*slot*/) override {}
    void leave(Slot & /*slot*/) override {}

    void bind(TensorId id, Slot &slot, std::size_t offset_bytes) override {
        auto *const memory = slot.host() + offset_bytes;
        if (std::exchange(bound_[id], memory) == memory) {
            return;
        }
        const auto status = tensor(id).allocator()->import_memory(memory);
        if (!status) {
            throw Error("the library cannot use a channel's memory: " + status.error_description());
        }
    }

    void finish() override {}

protected:
    std::byte *map(arm_compute::Tensor &tensor) override { return reinterpret_cast<std::byte *>(tensor.buffer()); }
    void unmap(arm_compute::Tensor & /*tensor*/) override {}

private:
    Cluster cluster_;
    std::map<TensorId, std::byte *> bound_;
};

}  // namespace

std::unique_ptr<Device> make_neon_device(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                         Overlap &overlap) {
    return std::make_unique<NeonDevice>(plan, processor, weights, overlap);
}

}  // namespace parapipe
