#include "backends/acl/shapes.hpp"

#include <algorithm>

namespace parapipe {

arm_compute::TensorShape acl_shape(const Shape &shape) {
    arm_compute::TensorShape reversed;
    if (shape.empty()) {
        return arm_compute::TensorShape(1U);
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
        reversed.set(i, static_cast<std::size_t>(shape[shape.size() - 1 - i]), false);
    }
    return reversed;
}

arm_compute::TensorInfo acl_info(const Shape &shape) {
    arm_compute::TensorInfo info(acl_shape(shape), 1, arm_compute::DataType::F32);
    info.set_data_layout(arm_compute::DataLayout::NCHW);
    return info;
}

arm_compute::Coordinates acl_coordinates(const Integers &by_axis) {
    arm_compute::Coordinates coordinates;
    for (std::size_t i = 0; i < by_axis.size(); ++i) {
        coordinates.set(i, static_cast<int>(by_axis[by_axis.size() - 1 - i]));
    }
    return coordinates;
}

unsigned acl_axis(std::int64_t axis, std::size_t rank) {
    return static_cast<unsigned>(static_cast<std::int64_t>(rank) - 1 - axis);
}

arm_compute::PermutationVector acl_permutation(const Integers &perm) {
    arm_compute::PermutationVector permutation;
    for (std::size_t i = 0; i < perm.size(); ++i) {
        permutation.set(i, acl_axis(perm[perm.size() - 1 - i], perm.size()));
    }
    // The library knows none of fewer than three axes.
    for (std::size_t i = perm.size(); i < 3; ++i) {
        permutation.set(i, static_cast<unsigned>(i));
    }
    return permutation;
}

Layout layout_of_info(const arm_compute::ITensorInfo &info) {
    Layout layout;
    layout.offset = info.offset_first_element_in_bytes();
    layout.size_bytes = info.total_size();
    for (std::size_t i = 0; i < std::min(info.num_dimensions(), kMostDimensions); ++i) {
        layout.extents[kMostDimensions - 1 - i] = info.dimension(i);
        layout.strides[kMostDimensions - 1 - i] = info.strides_in_bytes()[i];
    }
    return layout;
}

}  // namespace parapipe
