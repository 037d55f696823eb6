#pragma once

#include "backends/host/tensors.hpp"

namespace parapipe {

/// An operator for which a function of a library is sought, and its tensors as they lie.
class HostOperator {
public:
    HostOperator(Tensors &tensors, OperatorId op) : tensors_(tensors), op_(tensors.plan().operators[op]) {}

    const Operator &op() const { return op_; }
    const Attributes &attributes() const { return op_.attributes; }
    bool has(std::size_t position) const { return position < op_.inputs.size() && op_.inputs[position] != kNone; }
    TensorId input(std::size_t position) const { return op_.inputs[position]; }
    const Tensor &tensor(TensorId id) const { return tensors_.plan().tensors[id]; }
    const Shape &shape(std::size_t position) const { return tensor(input(position)).shape; }
    const Shape &shape() const { return tensor(op_.output).shape; }
    Layout layout(TensorId id) const { return tensors_.layout(id); }
    Order order(TensorId id) const { return tensors_.order(id); }
    const float *constant(std::size_t position) const { return tensors_.data(input(position)); }

protected:
    Tensors &tensors() const { return tensors_; }

private:
    Tensors &tensors_;
    const Operator &op_;
};

}  // namespace parapipe
