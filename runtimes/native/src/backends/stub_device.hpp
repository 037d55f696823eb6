#pragma once

#include "execution/device.hpp"

namespace parapipe {

/// A device for the tests of all that is not computing: it takes any operator and gives, element by
/// element, 1 + the sum over inputs k of (k + 1) / 2 * input k (taken round and round). It keeps
/// padding around what a Conv or a pool reads, and writes into it, as real functions do.
std::unique_ptr<Device> make_stub_device(const Plan &plan, ProcessorId processor, const std::vector<float> &weights,
                                         Overlap &overlap);

}  // namespace parapipe
