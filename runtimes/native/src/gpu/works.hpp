#pragma once

#include "gpu/lane.hpp"
#include "plan/plan.hpp"

#include <functional>
#include <vector>

namespace parapipe::gpu {

/// Starts an operator on a lane.
using Work = std::function<void(Lane &)>;

/// Makes ready what computes an operator.
/// @param data Where each tensor lies in the GPU's memory, dense in ONNX's order.
/// @param lane The one that will run it.
/// @return Null if nothing is to be done, as what it makes lies where it is read.
Work work_of(const Plan &plan, const Operator &op, const std::vector<float *> &data, Lane &lane);

/// Whether there is a function for a type.
bool has_work(const std::string &type);

}  // namespace parapipe::gpu
