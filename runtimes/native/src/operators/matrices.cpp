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
    call.demand(x.size() >= 2 && w.size() >= 2 && x.back() == w[w.size() - 2],
                "has a matrix that does not go with its input");
    auto shape = broadcast(call, Shape(x.begin(), x.end() - 2), Shape(w.begin(), w.end() - 2));
    shape.push_back(x[x.size() - 2]);
    shape.push_back(w.back());
    return shape;
}

Shape picked(const Call &call) {
    const auto &x = call.shape(0);
    const auto axis = static_cast<std::ptrdiff_t>(call.op.attributes.integer("axis"));
    call.demand(axis < static_cast<std::ptrdiff_t>(x.size()), "has an axis that its input lacks");
    Shape shape(x.begin(), x.begin() + axis);
    shape.insert(shape.end(), call.shape(1).begin(), call.shape(1).end());
    shape.insert(shape.end(), x.begin() + axis + 1, x.end());
    call.demand(shape.size() <= kMostDimensions, "gives a tensor of more than four dimensions");
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
        {"MatMul", 2, 2, 2, false, {}, product},
        {"Gather", 2, 2, 2, false, {{"axis", Kind::integer}}, picked},
        {"Softmax", 1, 1, 1, false, {}, over_last},
        {"LogSoftmax", 1, 1, 1, false, {}, over_last},
        {"ReduceMean", 1, 1, 1, false, {{"axes", Kind::integers, 0, 0}, {"keepdims", Kind::flag}}, mean},
    };
}

}  // namespace parapipe
