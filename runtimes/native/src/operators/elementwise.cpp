#include "operators/catalogue.hpp"

#include <algorithm>

namespace parapipe {
namespace {

using Kind = AttributeRule::Kind;

Shape both(const Call &call) {
    return broadcast(call, call.shape(0), call.shape(1));
}

Shape of_three(const Call &call) {
    return broadcast(call, both(call), call.shape(2));
}

Shape with_slope(const Call &call) {
    call.demand(both(call) == call.shape(0), "has a slope that does not broadcast to its input");
    return call.shape(0);
}

Shape clipped(const Call &call) {
    call.demand(call.op.attributes.number("min") <= call.op.attributes.number("max"), "has min above max");
    return call.shape(0);
}

}  // namespace

Shape broadcast(const Call &call, const Shape &a, const Shape &b) {
    Shape shape(std::max(a.size(), b.size()));
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const auto x = i < a.size() ? a[a.size() - 1 - i] : 1;
        const auto y = i < b.size() ? b[b.size() - 1 - i] : 1;
        call.demand(x == y || x == 1 || y == 1, "has inputs that do not broadcast to each other");
        shape[shape.size() - 1 - i] = std::max(x, y);
    }
    return shape;
}

std::vector<OperatorKind> elementwise_kinds() {
    std::vector<OperatorKind> kinds;
    for (const char *type : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Less"}) {
        kinds.push_back({type, 2, 2, 2, false, {}, both});
    }
    for (const char *type : {"Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Abs", "Sqrt"}) {
        kinds.push_back({type, 1, 1, 1, true, {}, same_shape});
    }
    for (const char *type : {"LeakyRelu", "Elu"}) {
        kinds.push_back({type, 1, 1, 1, true, {{"alpha", Kind::number}}, same_shape});
    }
    for (const char *type : {"Exp", "Log", "Neg", "Erf", "Atan"}) {
        kinds.push_back({type, 1, 1, 1, false, {}, same_shape});
    }
    kinds.push_back({"Clip", 1, 1, 1, true, {{"min", Kind::number}, {"max", Kind::number}}, clipped});
    kinds.push_back({"Where", 3, 3, 3, false, {}, of_three});
    kinds.push_back({"PRelu", 2, 2, 1, false, {}, with_slope});
    return kinds;
}

}  // namespace parapipe
