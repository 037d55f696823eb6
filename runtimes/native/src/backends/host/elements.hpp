#pragma once

#include "execution/layout.hpp"

#include <array>
#include <cstddef>

namespace parapipe {

/// The elements of a tensor as a loop sees them: strides count elements, not bytes.
struct Elements {
    float *data = nullptr;
    std::array<std::size_t, kMostDimensions> extents{1, 1, 1, 1};
    std::array<std::size_t, kMostDimensions> strides{};

    float *at(std::size_t n, std::size_t c, std::size_t h, std::size_t w) const {
        return data + n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3];
    }
};

inline Elements elements_of(float *data, const Layout &layout) {
    Elements elements{data, layout.extents, {}};
    for (std::size_t axis = 0; axis < kMostDimensions; ++axis) {
        elements.strides[axis] = layout.strides[axis] / sizeof(float);
    }
    return elements;
}

/// Calls a function with the position of every element, the innermost axis of `order` the fastest.
template <class Function>
void for_each_position(const std::array<std::size_t, kMostDimensions> &extents, Order order, Function function) {
    const auto axes = axes_of(order);
    std::array<std::size_t, kMostDimensions> at{};
    for (at[axes[0]] = 0; at[axes[0]] < extents[axes[0]]; ++at[axes[0]]) {
        for (at[axes[1]] = 0; at[axes[1]] < extents[axes[1]]; ++at[axes[1]]) {
            for (at[axes[2]] = 0; at[axes[2]] < extents[axes[2]]; ++at[axes[2]]) {
                for (at[axes[3]] = 0; at[axes[3]] < extents[axes[3]]; ++at[axes[3]]) {
                    function(at);
                }
            }
        }
    }
}

}  // namespace parapipe
