#pragma once

#include "backends/onednn/primitive_kernel.hpp"

#include <memory>
#include <string>

namespace parapipe {

/// An operator for which a primitive is sought.
class Builder {
public:
    Builder(Tensors &tensors, Bench &bench, OperatorId op)
        : tensors_(tensors), bench_(bench), op_(tensors.plan().operators[op]) {}

    const Operator &op() const { return op_; }
    const Attributes &attributes() const { return op_.attributes; }
    bool has(std::size_t position) const { return position < op_.inputs.size() && op_.inputs[position] != kNone; }
    TensorId input(std::size_t position) const { return op_.inputs[position]; }
    const Tensor &tensor(TensorId id) const { return tensors_.plan().tensors[id]; }
    const Shape &shape(std::size_t position) const { return tensor(input(position)).shape; }
    const Shape &shape() const { return tensor(op_.output).shape; }
    Layout layout(TensorId id) const { return tensors_.layout(id); }
    dnnl::memory::desc desc(TensorId id) const { return desc_of(tensor(id).shape, layout(id)); }
    dnnl::memory::desc output_desc() const { return desc(op_.output); }
    const float *constant(std::size_t position) const { return tensors_.data(input(position)); }
    dnnl::primitive_attr fused(const dnnl::post_ops &before = {}) const { return attributes_with(op_.activation, before); }

    /// A kernel without arguments so far.
    template <class Primitive>
    std::unique_ptr<PrimitiveKernel> kernel(const typename Primitive::primitive_desc &description) const {
        return std::make_unique<PrimitiveKernel>(tensors_, bench_, description, Primitive(description));
    }
    /// A kernel that reads the first input and makes the output as they lie.
    template <class Primitive>
    std::unique_ptr<PrimitiveKernel> kernel_of_one(const typename Primitive::primitive_desc &description) const {
        auto made = kernel<Primitive>(description);
        made->set_tensor(DNNL_ARG_SRC, input(0), description.src_desc());
        made->set_tensor(DNNL_ARG_DST, op_.output, description.dst_desc());
        return made;
    }

private:
    Tensors &tensors_;
    Bench &bench_;
    const Operator &op_;
};

/// Makes the kernel of an operator; null if the library has none that is fast.
using Build = std::unique_ptr<Kernel> (*)(const Builder &);

struct BuildOfType {
    const char *type;
    Build build;
};

std::vector<BuildOfType> window_builds();
std::vector<BuildOfType> matrix_builds();
std::vector<BuildOfType> elementwise_builds();

}  // namespace parapipe
