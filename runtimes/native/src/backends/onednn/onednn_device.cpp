#include "backends/onednn/onednn_device.hpp"

#include "backends/host/host_device.hpp"
#include "backends/onednn/builder.hpp"

#include <omp.h>

#include <map>

namespace parapipe {
namespace {

Build build_of(const std::string &type) {
    static const auto builds = [] {
        std::map<std::string, Build> by_type;
        for (auto &&family : {window_builds(), matrix_builds(), elementwise_builds()}) {
            for (const auto &each : family) {
                by_type.emplace(each.type, each.build);
            }
        }
        return by_type;
    }();
    const auto found = builds.find(type);
    return found == builds.end() ? nullptr : found->second;
}

class OnednnDevice : public HostDevice {
public:
    OnednnDevice(const Plan &plan, ProcessorId processor, const std::vector<float> &weights, Overlap &overlap)
        : HostDevice(plan, processor, weights, overlap) {
        omp_set_num_threads(static_cast<int>(plan.processors[processor].threads));  // of this thread
    }

protected:
    std::unique_ptr<Kernel> library_kernel(OperatorId op) override {
        const auto build = build_of(tensors().plan().operators[op].type);
        return build == nullptr ? nullptr : build(Builder(tensors(), bench_, op));
    }

private:
    Bench bench_;
};

}  // namespace

std::unique_ptr<Device> make_onednn_device(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                           Overlap &overlap) {
    return std::make_unique<OnednnDevice>(plan, processor, weights, overlap);
}

}  // namespace parapipe
