#pragma once

#include "execution/device.hpp"

namespace parapipe {

std::unique_ptr<Device> make_xnnpack_device(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                            Overlap &overlap);

}  // namespace parapipe
