#pragma once

#include "execution/layout.hpp"
#include "plan/plan.hpp"

#include <arm_compute/core/Coordinates.h>
#include <arm_compute/core/Strides.h>
#include <arm_compute/core/TensorInfo.h>
#include <arm_compute/core/TensorShape.h>

namespace parapipe {

/// The library counts dimensions from the innermost (W, H, C, N), ONNX from the outermost.
arm_compute::TensorShape acl_shape(const Shape &shape);
arm_compute::TensorInfo acl_info(const Shape &shape);
/// Numbers by axis, such as starts, in the library's order.
arm_compute::Coordinates acl_coordinates(const Integers &by_axis);
unsigned acl_axis(std::int64_t axis, std::size_t rank);
/// The library's permutation: axis i of the output is axis p[i] of the input.
arm_compute::PermutationVector acl_permutation(const Integers &perm);

Layout layout_of_info(const arm_compute::ITensorInfo &info);

}  // namespace parapipe
