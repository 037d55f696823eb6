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

    void prepare() override {
        arguments_.at(DNNL_ARG_SCRATCHPAD).set_data_handle(bench_.scratchpad());
        for (const auto &[argument, memory] : arguments_) {
            list_.push_back({argument, memory.get()});
        }
        for (const auto &[argument, tensor] : varying_) {
            moving_.emplace_back(arguments_.at(argument), tensor);
        }
    }

    /// By the C interface, since the other one makes a list of the arguments each time.
    void run() override {
        for (auto &[memory, tensor] : moving_) {
            memory.set_data_handle(tensors_.data(tensor));
        }
        dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), bench_.stream().get(),
                                                       static_cast<int>(list_.size()), list_.data()),
                                "a primitive of oneDNN failed");
    }

private:
    const Tensors &tensors_;
    Bench &bench_;
    dnnl::primitive primitive_;
    std::unordered_map<int, dnnl::memory> arguments_;
    std::vector<std::pair<int, TensorId>> varying_;
    std::vector<dnnl_exec_arg_t> list_;
    std::vector<std::pair<dnnl::memory, TensorId>> moving_;
};

}  // namespace parapipe
