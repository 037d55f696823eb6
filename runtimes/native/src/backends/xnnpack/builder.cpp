#include "backends/xnnpack/builder.hpp"

#include "backends/host/loops.hpp"
#include "error.hpp"

namespace parapipe::xnnpack {

void check(xnn_status status) {
    if (status != xnn_status_success) {
        throw Error(text_of("XNNPACK refuses what it has taken before (status ", static_cast<int>(status),
                            "); please report this"));
    }
}

std::optional<Rows> rows_of(const Layout &layout, Order order) {
    const auto axes = axes_of(order);
    Rows rows{1, layout.extents[axes[3]], layout.extents[axes[3]]};
    if (rows.channels > 1 && layout.strides[axes[3]] != sizeof(float)) {
        return std::nullopt;
    }
    for (std::size_t i = axes.size() - 1; i-- > 0;) {
        const auto extent = layout.extents[axes[i]];
        const auto stride = layout.strides[axes[i]] / sizeof(float);
        if (extent == 1) {
            continue;
        }
        if (rows.count == 1) {
            rows.stride = stride;
        } else if (stride != rows.stride * rows.count) {
            return std::nullopt;
        }
        rows.count *= extent;
    }
    return rows;
}

std::optional<Bounds> bounds_of(const std::string &type, const Attributes &attributes) {
    if (type == "Relu") {
        return Bounds{0};
    }
    if (type == "Clip") {
        return Bounds{static_cast<float>(attributes.number("min")), static_cast<float>(attributes.number("max"))};
    }
    return std::nullopt;
}

std::vector<float> Builder::constant_in(std::size_t position, const Shape &shape,
                                        const std::array<std::size_t, kMostDimensions> &axes) const {
    const auto there = layout_of(shape);
    auto here = there;
    std::size_t stride = sizeof(float);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        here.strides[*axis] = stride;
        stride *= here.extents[*axis];
    }
    std::vector<float> values(elements_of(shape) + XNN_EXTRA_BYTES / sizeof(float));
    copy(reinterpret_cast<const std::byte *>(constant(position)), there, reinterpret_cast<std::byte *>(values.data()), here);
    return values;
}

Bounds Builder::bounds() const {
    const auto &activation = op().activation;
    const auto found = activation ? bounds_of(activation->type, activation->attributes) : std::nullopt;
    return found && found->least < found->most ? *found : Bounds{};
}

std::unique_ptr<FunctionKernel> Builder::kernel(Function function, FunctionKernel::SetUp set_up, bool bounded) const {
    if (!function) {
        return nullptr;
    }
    auto made = std::make_unique<FunctionKernel>(pool_);
    made->add(std::move(function), std::move(set_up));
    const auto &activation = op().activation;
    const auto limits = bounds();
    if (!activation || (bounded && (limits.least > Bounds{}.least || limits.most < Bounds{}.most))) {
        return made;
    }
    const auto output = op().output;
    const auto there = rows(output);
    auto after = there ? unary_function(activation->type, activation->attributes, *there, *there) : nullptr;
    if (after) {
        made->add(std::move(after), set_up_unary(activation->type, there->count, place(output), place(output)));
    } else {
        made->add_loop([activation = *activation, elements = elements_of(nullptr, layout(output)), data = place(output),
                        order = order(output)]() mutable {
            elements.data = data();
            activate(activation, elements, order);
        });
    }
    return made;
}

}  // namespace parapipe::xnnpack
