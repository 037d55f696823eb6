#include "execution/layout.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace parapipe {

Padding larger_of(const Padding &a, const Padding &b) {
    return {std::max(a.top, b.top), std::max(a.right, b.right), std::max(a.bottom, b.bottom), std::max(a.left, b.left)};
}

Layout layout_of(const Shape &shape, const Padding &padding) {
    Layout layout;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        layout.extents[kMostDimensions - shape.size() + i] = static_cast<std::size_t>(shape[i]);
    }
    layout.strides[3] = sizeof(float);
    layout.strides[2] = layout.strides[3] * (padding.left + layout.extents[3] + padding.right);
    layout.strides[1] = layout.strides[2] * (padding.top + layout.extents[2] + padding.bottom);
    layout.strides[0] = layout.strides[1] * layout.extents[1];
    layout.size_bytes = layout.strides[0] * layout.extents[0];
    layout.offset = padding.top * layout.strides[2] + padding.left * layout.strides[3];
    return layout;
}

std::array<std::size_t, kMostDimensions> axes_of(Order order) {
    return order == Order::nchw ? std::array<std::size_t, kMostDimensions>{0, 1, 2, 3}
                                : std::array<std::size_t, kMostDimensions>{0, 2, 3, 1};
}

Layout layout_of(const Shape &shape, Order order) {
    auto layout = layout_of(shape);
    const auto axes = axes_of(order);
    std::size_t stride = sizeof(float);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        layout.strides[*axis] = stride;
        stride *= layout.extents[*axis];
    }
    return layout;
}

Layout part_of(Layout layout, const Extents &start, const Extents &extents) {
    layout.offset += std::inner_product(start.begin(), start.end(), layout.strides.begin(), std::size_t{0});
    layout.extents = extents;
    return layout;
}

bool is_dense(const Layout &layout) {
    std::size_t stride = sizeof(float);
    for (std::size_t axis = kMostDimensions; axis-- > 0;) {
        if (layout.extents[axis] > 1 && layout.strides[axis] != stride) {
            return false;
        }
        stride *= layout.extents[axis];
    }
    return true;
}

namespace {

/// An axis of a copy: its extent, and the bytes from an element to the next there and here.
struct Walk {
    std::size_t extent;
    std::size_t there;
    std::size_t here;
};

/// The axes of a copy, without memory of their own.
struct Walks {
    std::array<Walk, kMostDimensions> axes{};
    std::size_t count = 0;

    const Walk *begin() const { return axes.data(); }
    const Walk *end() const { return axes.data() + count; }
};

/// The axes of a copy, the longest steps of the target first; axes that can be walked as one are one.
Walks walks_of(const Layout &there, const Layout &here) {
    Walks axes;
    for (std::size_t axis = 0; axis < kMostDimensions; ++axis) {
        if (here.extents[axis] > 1) {
            const Walk walk{here.extents[axis], there.strides[axis], here.strides[axis]};
            std::size_t at = axes.count++;
            for (; at > 0 && axes.axes[at - 1].here < walk.here; --at) {
                axes.axes[at] = axes.axes[at - 1];
            }
            axes.axes[at] = walk;
        }
    }
    Walks walks;
    for (const auto &axis : axes) {
        Walk *const last = walks.count == 0 ? nullptr : &walks.axes[walks.count - 1];
        if (last != nullptr && last->here == axis.here * axis.extent && last->there == axis.there * axis.extent) {
            *last = {last->extent * axis.extent, axis.there, axis.here};
        } else {
            walks.axes[walks.count++] = axis;
        }
    }
    return walks;
}

/// An axis of a plane from its start, or so many of it.
void copy_line(const std::byte *from, std::byte *to, const Walk &line, std::size_t count) {
    for (; count > 0; --count, from += line.there, to += line.here) {
        std::memcpy(to, from, sizeof(float));
    }
}

/// The two innermost axes, element by element: in tiles of a cache line each way, so that what is read with
/// long steps is still there when its neighbour's turn comes. Few elements, as the channels of an image, are
/// the outer loop: short inner ones take longer.
void copy_plane(const std::byte *from, std::byte *to, const Walk &outer, const Walk &inner) {
    constexpr std::size_t tile = 64 / sizeof(float);
    const bool narrow = inner.extent < tile;
    const auto &across = narrow ? inner : outer;
    const auto &along = narrow ? outer : inner;
    const std::size_t length = narrow ? tile * tile : tile;
    for (std::size_t i = 0; i < along.extent; i += length) {
        const auto count = std::min(length, along.extent - i);
        for (std::size_t j = 0; j < across.extent; ++j) {
            copy_line(from + i * along.there + j * across.there, to + i * along.here + j * across.here, along, count);
        }
    }
}

void copy_axis(const std::byte *from, std::byte *to, const Walk *axis, const Walk *end) {
    const bool dense = end != axis && (end - 1)->there == sizeof(float) && (end - 1)->here == sizeof(float);
    if (axis == end) {
        std::memcpy(to, from, sizeof(float));
    } else if (axis + 1 == end && dense) {
        std::memcpy(to, from, axis->extent * sizeof(float));
    } else if (axis + 1 == end) {
        copy_plane(from, to, {1, 0, 0}, *axis);
    } else if (axis + 2 == end && !dense) {
        copy_plane(from, to, axis[0], axis[1]);
    } else {
        for (std::size_t i = 0; i < axis->extent; ++i) {
            copy_axis(from + i * axis->there, to + i * axis->here, axis + 1, end);
        }
    }
}

}  // namespace

void copy(const std::byte *from, const Layout &there, std::byte *to, const Layout &here) {
    const auto walks = walks_of(there, here);
    copy_axis(from + there.offset, to + here.offset, walks.begin(), walks.end());
}

}  // namespace parapipe
