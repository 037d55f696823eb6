#pragma once

#include "execution/device.hpp"

#include <memory>
#include <vector>

namespace parapipe {

/// A CPU cluster, by the library's NEON functions, with a scheduler and threads of its own.
std::unique_ptr<Device> make_neon_device(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                         Overlap &overlap);

/// The GPU, by the library's OpenCL functions.
std::unique_ptr<Device> make_opencl_device(const Plan &plan, ProcessorId processor,
                                           const std::vector<float> &weights, Overlap &overlap);

}  // namespace parapipe
