#pragma once

#include "backends/host/host_operator.hpp"
#include "backends/onednn/primitive_kernel.hpp"

#include <memory>
#include <string>

namespace parapipe {

/// An operator for which a primitive is sought.
class Builder : public HostOperator {
public:
    Builder(Tensors &tensors, Bench &bench, OperatorId op) : HostOperator(tensors, op), bench_(bench) {}

    dnnl::memory::desc desc(TensorId id) const { return desc_of(tensor(id).shape, layout(id)); }
    dnnl::memory::desc output_desc() const { return desc(op().output); }
    dnnl::primitive_attr fused(const dnnl::post_ops &before = {}) const { return attributes_with(op().activation, before); }

    /// A kernel without arguments so far.
    template <class Primitive>
    std::unique_ptr<PrimitiveKernel> kernel(const typename Primitive::primitive_desc &description) const {
        return std::make_unique<PrimitiveKernel>(tensors(), bench_, description, Primitive(description));
    }
    /// A kernel that reads the first input and makes the output as they lie.
    template <class Primitive>
    std::unique_ptr<PrimitiveKernel> kernel_of_one(const typename Primitive::primitive_desc &description) const {
        auto made = kernel<Primitive>(description);
        made->set_tensor(DNNL_ARG_SRC, input(0), description.src_desc());
        made->set_tensor(DNNL_ARG_DST, op().output, description.dst_desc());
        return made;
    }

private:
    Bench &bench_;
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
