#include "backends/xnnpack/builder.hpp"

#include <algorithm>
#include <map>

namespace parapipe::xnnpack {
namespace {

using CreateUnary = xnn_status (*)(std::size_t channels, std::size_t from, std::size_t to, std::uint32_t flags,
                                   xnn_operator_t *made);
using SetUpUnary = xnn_status (*)(xnn_operator_t function, std::size_t rows, const float *x, float *y, pthreadpool_t pool);

/// A function of one tensor; those with parameters are created by their own names.
struct Unary {
    CreateUnary create = nullptr;
    SetUpUnary set_up = nullptr;
};

const std::map<std::string, Unary> &unaries() {
    static const std::map<std::string, Unary> functions = {
        {"Sigmoid", {xnn_create_sigmoid_nc_f32, xnn_setup_sigmoid_nc_f32}},
        {"HardSwish", {xnn_create_hardswish_nc_f32, xnn_setup_hardswish_nc_f32}},
        {"Abs", {xnn_create_abs_nc_f32, xnn_setup_abs_nc_f32}},
        {"Neg", {xnn_create_negate_nc_f32, xnn_setup_negate_nc_f32}},
        {"Sqrt", {xnn_create_square_root_nc_f32, xnn_setup_square_root_nc_f32}},
        {"Relu", {nullptr, xnn_setup_clamp_nc_f32}},
        {"Clip", {nullptr, xnn_setup_clamp_nc_f32}},
        {"LeakyRelu", {nullptr, xnn_setup_leaky_relu_nc_f32}},
        {"Elu", {nullptr, xnn_setup_elu_nc_f32}},
    };
    return functions;
}

std::unique_ptr<Kernel> unary(const Builder &builder) {
    const auto x = builder.input(0);
    const auto y = builder.op().output;
    const auto from = builder.rows(x);
    const auto to = builder.rows(y);
    if (!from || !to || builder.order(x) != builder.order(y)) {
        return nullptr;
    }
    const auto &type = builder.op().type;
    return builder.kernel(unary_function(type, builder.attributes(), *from, *to),
                          set_up_unary(type, from->count, builder.place(x), builder.place(y)), false);
}

using Extents = std::array<std::size_t, kMostDimensions>;
using SetUpBinary = xnn_status (*)(xnn_operator_t function, std::size_t a_rank, const std::size_t *a_shape, std::size_t b_rank,
                                   const std::size_t *b_shape, const float *a, const float *b, float *y, pthreadpool_t pool);
using CreateBounded = xnn_status (*)(float least, float most, std::uint32_t flags, xnn_operator_t *made);
using CreateUnbounded = xnn_status (*)(std::uint32_t flags, xnn_operator_t *made);

struct Binary {
    CreateBounded bounded = nullptr;
    CreateUnbounded unbounded = nullptr;
    SetUpBinary set_up = nullptr;
};

const Binary &binary_of(const std::string &type) {
    static const std::map<std::string, Binary> functions = {
        {"Add", {xnn_create_add_nd_f32, nullptr, xnn_setup_add_nd_f32}},
        {"Sub", {xnn_create_subtract_nd_f32, nullptr, xnn_setup_subtract_nd_f32}},
        {"Mul", {xnn_create_multiply_nd_f32, nullptr, xnn_setup_multiply_nd_f32}},
        {"Div", {xnn_create_divide_nd_f32, nullptr, xnn_setup_divide_nd_f32}},
        {"Max", {nullptr, xnn_create_maximum_nd_f32, xnn_setup_maximum_nd_f32}},
        {"Min", {nullptr, xnn_create_minimum_nd_f32, xnn_setup_minimum_nd_f32}}};
    return functions.at(type);
}

/// What a function of two reads: extents from the outermost axis in memory to the innermost, and where it lies.
struct Operand {
    Extents extents{};
    std::function<float *()> place;
};

std::optional<Operand> operand(const Builder &builder, std::size_t position, Order order) {
    const auto id = builder.input(position);
    const auto layout = builder.layout(id);
    const auto axes = axes_of(order);
    Operand found;
    std::transform(axes.begin(), axes.end(), found.extents.begin(), [&layout](std::size_t axis) { return layout.extents[axis]; });
    if (builder.tensor(id).constant()) {
        auto values = std::make_shared<std::vector<float>>(builder.constant_in(position, builder.shape(position), axes));
        found.place = [values] { return values->data(); };
        return found;
    }
    const auto rows = rows_of(layout, order);
    found.place = builder.place(id);
    return rows && rows->dense() ? std::optional(found) : std::nullopt;
}

std::unique_ptr<Kernel> binary(const Builder &builder) {
    const auto y = builder.op().output;
    const auto order = builder.order(y);
    const auto to = builder.rows(y);
    const auto a = operand(builder, 0, order);
    const auto b = operand(builder, 1, order);
    if (!to || !to->dense() || !a || !b) {
        return nullptr;
    }
    const auto &kind = binary_of(builder.op().type);
    const auto bounds = builder.bounds();
    auto function = kind.bounded != nullptr ? created(kind.bounded, bounds.least, bounds.most, 0U) : created(kind.unbounded, 0U);
    return builder.kernel(
        std::move(function),
        [set_up = kind.set_up, a = *a, b = *b, place = builder.place(y)](auto *op, auto *pool) {
            return set_up(op, a.extents.size(), a.extents.data(), b.extents.size(), b.extents.data(), a.place(), b.place(),
                          place(), pool);
        },
        kind.bounded != nullptr);
}

/// Slopes are one, or one for each channel of a row.
std::unique_ptr<Kernel> slopes(const Builder &builder) {
    const auto x = builder.input(0);
    const auto y = builder.op().output;
    const auto from = builder.rows(x);
    const auto to = builder.rows(y);
    const auto extents = layout_of(builder.shape(1)).extents;
    const auto count = elements_of(builder.shape(1));
    if (!from || !to || builder.order(x) != builder.order(y) ||
        (count > 1 && (extents[builder.innermost(x)] != count || count != from->channels))) {
        return nullptr;
    }
    std::vector<float> values(from->channels + XNN_EXTRA_BYTES / sizeof(float), *builder.constant(1));
    if (count > 1) {
        std::copy_n(builder.constant(1), count, values.begin());
    }
    auto function = created(xnn_create_prelu_nc_f32, from->channels, from->stride, to->stride,
                            static_cast<const float *>(values.data()), 0U);
    return builder.kernel(
        std::move(function),
        [rows = from->count, from_x = builder.place(x), to_y = builder.place(y)](auto *op, auto *pool) {
            return xnn_setup_prelu_nc_f32(op, rows, from_x(), to_y(), pool);
        },
        false);
}

}  // namespace

Function unary_function(const std::string &type, const Attributes &attributes, const Rows &from, const Rows &to) {
    const auto found = unaries().find(type);
    if (found == unaries().end()) {
        return nullptr;
    }
    if (const auto create = found->second.create) {
        return created(create, from.channels, from.stride, to.stride, 0U);
    }
    if (const auto bounds = bounds_of(type, attributes)) {
        return bounds->least < bounds->most ? created(xnn_create_clamp_nc_f32, from.channels, from.stride, to.stride,
                                                      bounds->least, bounds->most, 0U)
                                            : nullptr;
    }
    const auto alpha = static_cast<float>(attributes.number("alpha"));
    if (type == "Elu") {
        return alpha > 0 ? created(xnn_create_elu_nc_f32, from.channels, from.stride, to.stride, alpha, 0U) : nullptr;
    }
    return created(xnn_create_leaky_relu_nc_f32, from.channels, from.stride, to.stride, alpha, 0U);
}

FunctionKernel::SetUp set_up_unary(const std::string &type, std::size_t rows, std::function<float *()> from,
                                   std::function<float *()> to) {
    const auto found = unaries().find(type);
    return [set_up = found == unaries().end() ? nullptr : found->second.set_up, rows, x = std::move(from),
            y = std::move(to)](auto *op, auto *pool) { return set_up(op, rows, x(), y(), pool); };
}

std::vector<BuildOfType> elementwise_builds() {
    std::vector<BuildOfType> builds{{"PRelu", slopes}};
    for (const char *type : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
        builds.push_back({type, binary});
    }
    for (const char *type : {"Relu", "Clip", "Sigmoid", "HardSwish", "Abs", "Neg", "Sqrt", "LeakyRelu", "Elu"}) {
        builds.push_back({type, unary});
    }
    return builds;
}

}  // namespace parapipe::xnnpack
