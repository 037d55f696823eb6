#pragma once

#include "execution/layout.hpp"
#include "execution/orders.hpp"
#include "plan/plan.hpp"

#include <vector>

namespace parapipe {

Extents extents_of(const Plan &plan, TensorId tensor);
Extents sum_of(Extents one, const Extents &other);
/// Whether two pieces of a tensor have elements in common.
bool overlap(const Extents &start, const Extents &extents, const Extents &other_start, const Extents &other_extents);

/// The inputs of an operator, but for constants.
std::vector<TensorId> read_by(const Plan &plan, const Operator &op);

/// The axis of a Concat or Slice, counted among four; kNone if it leaves all as it is.
std::size_t axis_of(const Plan &plan, const Operator &op);
/// Where a Slice begins.
Extents start_of(const Operator &op);

/// The joins and cuts of a plan, by number of the operator, that may be views: a Concat or Slice on a
/// CPU, along an axis with nothing but ones before it in memory, so that parts lie one behind the other.
std::vector<bool> possible_views(const Plan &plan, const Orders &orders);

}  // namespace parapipe
