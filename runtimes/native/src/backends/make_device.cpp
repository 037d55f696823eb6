#include "execution/device.hpp"

#include "backends/host/host_device.hpp"
#include "error.hpp"

#ifdef PARAPIPE_NEON
#include "backends/acl/devices.hpp"
#endif
#ifdef PARAPIPE_ONEDNN
#include "backends/onednn/onednn_device.hpp"
#endif
#ifdef PARAPIPE_XNNPACK
#include "backends/xnnpack/xnnpack_device.hpp"
#endif
#ifdef PARAPIPE_STUB
#include "backends/stub_device.hpp"
#endif

#include <map>

namespace parapipe {
namespace {

using MakeDevice = std::unique_ptr<Device> (*)(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                               Overlap &overlap);

const std::map<BackendKind, MakeDevice> &built_in() {
    static const std::map<BackendKind, MakeDevice> devices = {
        {BackendKind::plain, make_plain_device},
#ifdef PARAPIPE_NEON
        {BackendKind::neon, make_neon_device},
#endif
#ifdef PARAPIPE_OPENCL
        {BackendKind::opencl, make_opencl_device},
#endif
#ifdef PARAPIPE_ONEDNN
        {BackendKind::onednn, make_onednn_device},
#endif
#ifdef PARAPIPE_XNNPACK
        {BackendKind::xnnpack, make_xnnpack_device},
#endif
#ifdef PARAPIPE_STUB
        {BackendKind::stub, make_stub_device},
#endif
    };
    return devices;
}

}  // namespace

bool is_built_in(BackendKind backend) {
    return built_in().count(backend) > 0;
}

void check_backends(const Plan &plan) {
    static const std::map<BackendKind, const char *> words = {{BackendKind::opencl, "build it with -DPARAPIPE_OPENCL=ON"},
                                                              {BackendKind::onednn, "build it with -DPARAPIPE_ONEDNN=ON"},
                                                              {BackendKind::xnnpack, "build it with -DPARAPIPE_XNNPACK=ON"},
                                                              {BackendKind::stub, "build it with -DPARAPIPE_STUB=ON"}};
    for (const auto &processor : plan.processors) {
        if (!is_built_in(processor.backend)) {
            const auto found = words.find(processor.backend);
            throw Error("processor '" + processor.name + "' needs a backend that this runner was built without (" +
                        (found == words.end() ? "build it with ARM Compute Library" : found->second) + ")");
        }
    }
}

std::unique_ptr<Device> make_device(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                    Overlap &overlap) {
    const auto found = built_in().find(plan.processors[processor].backend);
    if (found == built_in().end()) {
        throw Error("processor '" + plan.processors[processor].name + "' needs a backend that this runner was built without");
    }
    return found->second(plan, processor, weights, overlap);
}

}  // namespace parapipe
