#include "execution/layout.hpp"

#include <algorithm>
#include <cstring>

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

void copy(const std::byte *from, const Layout &there, std::byte *to, const Layout &here) {
    const bool rows_are_dense = there.strides[3] == sizeof(float) && here.strides[3] == sizeof(float);
    const std::size_t run = rows_are_dense ? here.extents[3] : 1;
    const auto place = [](const Layout &layout, std::size_t n, std::size_t c, std::size_t h, std::size_t w) {
        return layout.offset + n * layout.strides[0] + c * layout.strides[1] + h * layout.strides[2] +
               w * layout.strides[3];
    };
    for (std::size_t n = 0; n < here.extents[0]; ++n) {
        for (std::size_t c = 0; c < here.extents[1]; ++c) {
            for (std::size_t h = 0; h < here.extents[2]; ++h) {
                for (std::size_t w = 0; w < here.extents[3]; w += run) {
                    std::memcpy(to + place(here, n, c, h, w), from + place(there, n, c, h, w), run * sizeof(float));
                }
            }
        }
    }
}

}  // namespace parapipe
