#pragma once

#include "backends/host/elements.hpp"
#include "plan/plan.hpp"

#include <vector>

namespace parapipe {

/// An operator as a loop sees it: its tensors with their elements. Shapes are ONNX's, with as many dimensions
/// as the tensor has; extents are filled up to four with ones in front.
struct LoopCall {
    const Operator &op;
    std::vector<Shape> shapes;      // of inputs; empty where one is left out
    std::vector<Elements> inputs;   // data is null where one is left out
    Shape shape;                    // of the output
    Elements output;
    Order order = Order::nchw;      // of the output

    bool has(std::size_t position) const { return position < inputs.size() && inputs[position].data != nullptr; }
    /// The number of an axis among four, of the tensors with the output's rank.
    std::size_t axis(std::int64_t axis) const {
        return kMostDimensions - shape.size() + static_cast<std::size_t>(axis);
    }
};

using Loop = void (*)(const LoopCall &call);

/// The loop that computes a type of operator.
struct LoopOfType {
    const char *type;
    Loop loop;
    /// Whether it only moves elements, as fast as any function could.
    bool moves = false;
};

std::vector<LoopOfType> elementwise_loops();
std::vector<LoopOfType> movement_loops();
std::vector<LoopOfType> matrix_loops();
std::vector<LoopOfType> window_loops();

/// Applies an activation to a tensor, in place.
void activate(const Activation &activation, const Elements &elements, Order order);

}  // namespace parapipe
