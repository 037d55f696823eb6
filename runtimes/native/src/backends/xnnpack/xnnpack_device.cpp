#include "backends/xnnpack/xnnpack_device.hpp"

#include "backends/host/host_device.hpp"
#include "backends/xnnpack/builder.hpp"
#include "error.hpp"

#include <map>

namespace parapipe {
namespace {

using xnnpack::Build;

Build build_of(const std::string &type) {
    static const auto builds = [] {
        std::map<std::string, Build> by_type;
        for (auto &&family : {xnnpack::window_builds(), xnnpack::matrix_builds(), xnnpack::elementwise_builds()}) {
            for (const auto &each : family) {
                by_type.emplace(each.type, each.build);
            }
        }
        return by_type;
    }();
    const auto found = builds.find(type);
    return found == builds.end() ? nullptr : found->second;
}

struct ClosePool {
    void operator()(pthreadpool_t pool) const { pthreadpool_destroy(pool); }
};

class XnnpackDevice : public HostDevice {
public:
    XnnpackDevice(const Plan &plan, ProcessorId processor, const std::vector<float> &weights, Overlap &overlap)
        : HostDevice(plan, processor, weights, overlap) {
        static const auto status = xnn_initialize(nullptr);
        if (status != xnn_status_success) {
            throw Error("processor '" + plan.processors[processor].name +
                        "' computes with XNNPACK, which cannot be used on this CPU");
        }
        if (plan.processors[processor].threads > 1) {  // bound to the same cores as this thread
            pool_.reset(pthreadpool_create(plan.processors[processor].threads));
        }
    }

protected:
    std::unique_ptr<Kernel> library_kernel(OperatorId op) override {
        const auto build = build_of(tensors().plan().operators[op].type);
        return build == nullptr ? nullptr : build(xnnpack::Builder(tensors(), pool_.get(), op));
    }

private:
    std::unique_ptr<pthreadpool, ClosePool> pool_;
};

}  // namespace

std::unique_ptr<Device> make_xnnpack_device(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                            Overlap &overlap) {
    return std::make_unique<XnnpackDevice>(plan, processor, weights, overlap);
}

}  // namespace parapipe
