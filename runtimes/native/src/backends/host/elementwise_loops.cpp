#include "backends/host/loops.hpp"

#include <algorithm>
#include <cmath>

namespace parapipe {
namespace {

/// Strides of a tensor that is walked over another one's extents: 0 along what it is broadcast over.
Elements broadcast_to(Elements elements, const Elements &output) {
    for (std::size_t axis = 0; axis < kMostDimensions; ++axis) {
        if (elements.extents[axis] == 1 && output.extents[axis] > 1) {
            elements.strides[axis] = 0;
        }
    }
    return elements;
}

template <class Function>
void for_each_element(const Elements &input, const Elements &out, Order order, Function function) {
    const auto x = broadcast_to(input, out);
    const auto axes = axes_of(order);
    const auto last = axes[3];
    const auto steps = x.strides[last];
    const auto out_steps = out.strides[last];
    auto rows = out.extents;
    rows[last] = 1;
    for_each_position(rows, order, [&](const auto &at) {
        const float *from = x.at(at[0], at[1], at[2], at[3]);
        float *to = out.at(at[0], at[1], at[2], at[3]);
        for (std::size_t i = 0; i < out.extents[last]; ++i) {
            to[i * out_steps] = function(from[i * steps]);
        }
    });
}

template <class Function>
void for_each_pair(const LoopCall &call, Function function) {
    const auto &out = call.output;
    const auto a = broadcast_to(call.inputs[0], out);
    const auto b = broadcast_to(call.inputs[1], out);
    const auto axes = axes_of(call.order);
    const auto last = axes[3];
    const auto a_steps = a.strides[last];
    const auto b_steps = b.strides[last];
    const auto out_steps = out.strides[last];
    auto rows = out.extents;
    rows[last] = 1;
    for_each_position(rows, call.order, [&](const auto &at) {
        const float *one = a.at(at[0], at[1], at[2], at[3]);
        const float *other = b.at(at[0], at[1], at[2], at[3]);
        float *to = out.at(at[0], at[1], at[2], at[3]);
        if (a_steps == 1 && b_steps == 1 && out_steps == 1) {
            for (std::size_t i = 0; i < out.extents[last]; ++i) {
                to[i] = function(one[i], other[i]);
            }
        } else {
            for (std::size_t i = 0; i < out.extents[last]; ++i) {
                to[i * out_steps] = function(one[i * a_steps], other[i * b_steps]);
            }
        }
    });
}

/// A quotient of polynomials, as Eigen's and TensorFlow's erf; off by at most 5e-7. A compiler can compute
/// several at once, unlike `std::erf`.
float error_function(float value) {
    const float x = std::min(std::max(value, -4.0F), 4.0F);
    const float y = x * x;
    float above = -2.72614225801306e-10F;
    for (const float next : {2.77068142495902e-08F, -2.10102402082508e-06F, -5.69250639462346e-05F,
                             -7.34990630326855e-04F, -2.95459980854025e-03F, -1.60960333262415e-02F}) {
        above = above * y + next;
    }
    float below = -1.45660718464996e-05F;
    for (const float next : {-2.13374055278905e-04F, -1.68282697438203e-03F, -7.37332916720468e-03F,
                             -1.42647390514189e-02F}) {
        below = below * y + next;
    }
    return x * above / below;
}

float sigmoid(float x) {
    return 1.0F / (1.0F + std::exp(-x));
}

/// The function of an operator or activation of one input.
template <class Apply>
void with_function(const std::string &type, const Attributes &attributes, Apply apply) {
    if (type == "Relu") {
        apply([](float x) { return std::max(x, 0.0F); });
    } else if (type == "Sigmoid") {
        apply(sigmoid);
    } else if (type == "Tanh") {
        apply([](float x) { return std::tanh(x); });
    } else if (type == "HardSwish") {
        apply([](float x) { return x * std::min(std::max(x / 6.0F + 0.5F, 0.0F), 1.0F); });
    } else if (type == "Softplus") {
        apply([](float x) { return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x))); });
    } else if (type == "Abs") {
        apply([](float x) { return std::abs(x); });
    } else if (type == "Sqrt") {
        apply([](float x) { return std::sqrt(x); });
    } else if (type == "LeakyRelu") {
        const auto alpha = static_cast<float>(attributes.number("alpha"));
        apply([alpha](float x) { return x < 0 ? alpha * x : x; });
    } else if (type == "Elu") {
        const auto alpha = static_cast<float>(attributes.number("alpha"));
        apply([alpha](float x) { return x < 0 ? alpha * std::expm1(x) : x; });
    } else if (type == "Clip") {
        const auto least = static_cast<float>(attributes.number("min"));
        const auto most = static_cast<float>(attributes.number("max"));
        apply([least, most](float x) { return std::min(std::max(x, least), most); });
    } else if (type == "Exp") {
        apply([](float x) { return std::exp(x); });
    } else if (type == "Log") {
        apply([](float x) { return std::log(x); });
    } else if (type == "Neg") {
        apply([](float x) { return -x; });
    } else if (type == "Atan") {
        apply([](float x) { return std::atan(x); });
    } else if (type == "Erf") {
        apply(error_function);
    }
}

void unary(const LoopCall &call) {
    with_function(call.op.type, call.op.attributes, [&call](auto function) {
        for_each_element(call.inputs[0], call.output, call.order, function);
    });
}

void add(const LoopCall &call) {
    for_each_pair(call, [](float a, float b) { return a + b; });
}
void subtract(const LoopCall &call) {
    for_each_pair(call, [](float a, float b) { return a - b; });
}
void multiply(const LoopCall &call) {
    for_each_pair(call, [](float a, float b) { return a * b; });
}
void divide(const LoopCall &call) {
    for_each_pair(call, [](float a, float b) { return a / b; });
}
void largest(const LoopCall &call) {
    for_each_pair(call, [](float a, float b) { return std::max(a, b); });
}
void least(const LoopCall &call) {
    for_each_pair(call, [](float a, float b) { return std::min(a, b); });
}
void less(const LoopCall &call) {
    for_each_pair(call, [](float a, float b) { return a < b ? 1.0F : 0.0F; });
}
void with_slope(const LoopCall &call) {
    for_each_pair(call, [](float x, float slope) { return x < 0 ? x * slope : x; });
}

/// Picks from the second input where the first is not 0, else from the third.
void choose(const LoopCall &call) {
    const auto condition = broadcast_to(call.inputs[0], call.output);
    const auto yes = broadcast_to(call.inputs[1], call.output);
    const auto no = broadcast_to(call.inputs[2], call.output);
    for_each_position(call.output.extents, call.order, [&](const auto &at) {
        const auto &from = *condition.at(at[0], at[1], at[2], at[3]) != 0 ? yes : no;
        *call.output.at(at[0], at[1], at[2], at[3]) = *from.at(at[0], at[1], at[2], at[3]);
    });
}

}  // namespace

std::vector<LoopOfType> elementwise_loops() {
    std::vector<LoopOfType> loops = {{"Add", add},       {"Sub", subtract}, {"Mul", multiply},     {"Div", divide},
                                     {"Max", largest},   {"Min", least},    {"PRelu", with_slope}, {"Where", choose},
                                     {"Less", less}};
    for (const char *type : {"Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Abs", "Sqrt", "LeakyRelu", "Elu",
                             "Clip", "Exp", "Log", "Neg", "Erf", "Atan"}) {
        loops.push_back({type, unary});
    }
    return loops;
}

void activate(const Activation &activation, const Elements &elements, Order order) {
    with_function(activation.type, activation.attributes,
                  [&elements, order](auto function) { for_each_element(elements, elements, order, function); });
}

}  // namespace parapipe
