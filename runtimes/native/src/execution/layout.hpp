#pragma once

#include "plan/plan.hpp"

#include <array>
#include <cstddef>

namespace parapipe {

/// Elements that a tensor keeps free around its innermost two dimensions.
struct Padding {
    std::size_t top = 0;
    std::size_t right = 0;
    std::size_t bottom = 0;
    std::size_t left = 0;

    bool none() const { return top + right + bottom + left == 0; }
};

/// Extents, or a position, filled up to four with what a dimension of one element has.
using Extents = std::array<std::size_t, kMostDimensions>;

Padding larger_of(const Padding &a, const Padding &b);

/// Which elements of an image follow upon each other: those of a row of a channel, or the channels of
/// a pixel.
enum class Order { nchw, nhwc };

/// The axes of four, from the outermost in memory to the innermost.
std::array<std::size_t, kMostDimensions> axes_of(Order order);

/// Where the elements of a tensor lie in its memory. Extents are filled up to four with ones in front.
struct Layout {
    std::array<std::size_t, kMostDimensions> extents{1, 1, 1, 1};
    /// Bytes from an element to the next along each dimension, the innermost last.
    std::array<std::size_t, kMostDimensions> strides{};
    /// Bytes before the first element, and of all.
    std::size_t offset = 0;
    std::size_t size_bytes = 0;
};

Layout layout_of(const Shape &shape, const Padding &padding = {});
/// Without padding.
Layout layout_of(const Shape &shape, Order order);
/// A part of what lies so, in the same memory.
Layout part_of(Layout layout, const Extents &start, const Extents &extents);
/// Whether elements follow upon each other in ONNX's order.
bool is_dense(const Layout &layout);

/// Copies all elements; extents are equal.
void copy(const std::byte *from, const Layout &there, std::byte *to, const Layout &here);

}  // namespace parapipe
