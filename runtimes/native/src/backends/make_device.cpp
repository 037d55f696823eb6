#include "execution/device.hpp"

#include "error.hpp"

#ifdef PARAPIPE_NEON
#include "backends/acl/devices.hpp"
#endif
#ifdef PARAPIPE_STUB
#include "backends/stub_device.hpp"
#endif

namespace parapipe {

bool is_built_in(BackendKind backend) {
    switch (backend) {
        case BackendKind::neon:
#ifdef PARAPIPE_NEON
            return true;
#else
            return false;
#endif
        case BackendKind::opencl:
#ifdef PARAPIPE_OPENCL
            return true;
#else
            return false;
#endif
        case BackendKind::stub:
#ifdef PARAPIPE_STUB
            return true;
#else
            return false;
#endif
    }
    return false;
}

std::unique_ptr<Device> make_device([[maybe_unused]] const Plan &plan, [[maybe_unused]] ProcessorId processor,
                                    [[maybe_unused]] const std::vector<float> &weights,
                                    [[maybe_unused]] Overlap &overlap) {
    switch (plan.processors[processor].backend) {
        case BackendKind::neon:
#ifdef PARAPIPE_NEON
            return make_neon_device(plan, processor, weights, overlap);
#else
            break;
#endif
        case BackendKind::opencl:
#ifdef PARAPIPE_OPENCL
            return make_opencl_device(plan, processor, weights);
#else
            break;
#endif
        case BackendKind::stub:
#ifdef PARAPIPE_STUB
            return make_stub_device(plan, processor, weights, overlap);
#else
            break;
#endif
    }
    throw Error("processor '" + plan.processors[processor].name +
                "' needs a backend that this runner was built without; build it with the library, and for a GPU "
                "with -DPARAPIPE_OPENCL=ON");
}

}  // namespace parapipe
