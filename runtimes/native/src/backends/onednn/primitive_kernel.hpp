#pragma once

#include "backends/host/kernel.hpp"
#include "backends/onednn/bench.hpp"

#include <memory>
#include <unordered_map>
#include <vector>

namespace parapipe {

/// Runs a primitive of oneDNN on tensors of a processor.
class PrimitiveKernel : public Kernel {
public:
    template <class Primitive>
    PrimitiveKernel(const Tensors &tensors, Bench &bench, const typename Primitive::primitive_desc &description,
                    Primitive primitive)
        : tensors_(tensors), bench_(bench), primitive_(std::move(primitive)) {
        const auto scratchpad = description.scratchpad_desc();
        bench.reserve(scratchpad.get_size());
        arguments_.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(scratchpad, Bench::engine(), nullptr));
    }

    /// Says that an argument is a tensor, in this layout.
    void set_tensor(int argument, TensorId tensor, const dnnl::memory::desc &desc) {
        arguments_.emplace(argument, dnnl::memory(desc, Bench::engine(), nullptr));
        varying_.emplace_back(argument, tensor);
    }
    void set_constant(int argument, const dnnl::memory &constant) { arguments_.emplace(argument, constant); }

    void run() override {
        arguments_.at(DNNL_ARG_SCRATCHPAD).set_data_handle(bench_.scratchpad());
        for (const auto &[argument, tensor] : varying_) {
            arguments_.at(argument).set_data_handle(tensors_.data(tensor));
        }
        primitive_.execute(bench_.stream(), arguments_);
    }

private:
    const Tensors &tensors_;
    Bench &bench_;
    dnnl::primitive primitive_;
    std::unordered_map<int, dnnl::memory> arguments_;
    std::vector<std::pair<int, TensorId>> varying_;
};

}  // namespace parapipe
