#include "operators/catalogue.hpp"

#include "error.hpp"

#include <set>

namespace parapipe {
namespace {

using Kind = AttributeRule::Kind;

Shape general_product(const Call &call) {
    const auto &x = call.shape(0);
    const auto &w = call.shape(1);
    const bool transposed = call.op.attributes.integer("transB") == 1;
    call.demand(!x.empty() && w.size() == 2, "needs an input of one dimension or more and weights of two");
    const auto rows = x[0];
    const auto columns = static_cast<std::int64_t>(elements_of(x)) / rows;
    call.demand(w[transposed ? 1 : 0] == columns, "has weights that do not go with its input");
    const auto width = w[transposed ? 0 : 1];
    if (const auto *bias = call.optional(2)) {
        call.demand(bias->shape == Shape{width} || bias->shape == Shape{1, width},
                    text_of("needs a bias of ", width, " numbers"));
    }
    return {rows, width};
}

Shape product(const Call &call) {
    const auto &x = call.shape(0);
    const auto &w = call.shape(1);
    call.demand(x.size() >= 2 && w.size() == 2 && x.back() == w[0], "has a matrix that does not go with its input");
    auto shape = x;
    shape.back() = w[1];
    return shape;
}

Shape over_last(const Call &call) {
    call.demand(!call.shape(0).empty(), "needs an input of one dimension or more");
    return call.shape(0);
}

Shape mean(const Call &call) {
    const auto &axes = call.op.attributes.integers("axes");
    const std::set<std::int64_t> reduced(axes.begin(), axes.end());
    auto shape = call.shape(0);
    call.demand(reduced.size() == axes.size() && *reduced.rbegin() < static_cast<std::int64_t>(shape.size()),
                "has an axis twice, or one that its input lacks");
    const bool keeps = call.op.attributes.integer("keepdims") == 1;
    for (auto axis = reduced.rbegin(); axis != reduced.rend(); ++axis) {
        if (keeps) {
            shape[static_cast<std::size_t>(*axis)] = 1;
        } else {
            shape.erase(shape.begin() + *axis);
        }
    }
    return shape;
}

}  // namespace

std::vector<OperatorKind> matrix_kinds() {
    return {
        {"Gemm", 2, 3, 1, false, {{"transB", Kind::flag}}, general_product},
        {"MatMul", 2, 2, 1, false, {}, product},
        {"Softmax", 1, 1, 1, false, {}, over_last},
        {"LogSoftmax", 1, 1, 1, false, {}, over_last},
        {"ReduceMean", 1, 1, 1, false, {{"axes", Kind::integers, 0, 0}, {"keepdims", Kind::flag}}, mean},
    };
}

}  // namespace parapipe
