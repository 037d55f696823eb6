#pragma once

#include "backends/host/kernel.hpp"

#include <xnnpack.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace parapipe::xnnpack {

struct DeleteFunction {
    void operator()(xnn_operator_t function) const { xnn_delete_operator(function); }
};

/// One of the library's operators, with its weights packed.
using Function = std::unique_ptr<xnn_operator, DeleteFunction>;

/// Calls one of the library's creating functions.
/// @return Null if it does not take these arguments.
template <class Create, class... Arguments>
Function created(Create create, Arguments... arguments) {
    xnn_operator_t function = nullptr;
    return Function(create(arguments..., &function) == xnn_status_success ? function : nullptr);
}

/// @throws Error if a call of the library has failed.
void check(xnn_status status);

/// Runs functions of XNNPACK, one after the other, on tensors of a processor.
class FunctionKernel : public Kernel {
public:
    /// Gives a function its tensors where they lie just now.
    using SetUp = std::function<xnn_status(xnn_operator_t function, pthreadpool_t pool)>;

    explicit FunctionKernel(pthreadpool_t pool) : pool_(pool) {}

    void add(Function function, SetUp set_up) { steps_.push_back({std::move(function), std::move(set_up)}); }
    /// Adds a loop of the runner, behind the functions.
    void add_loop(std::function<void()> loop) { loop_ = std::move(loop); }

    void run() override {
        for (const auto &[function, set_up] : steps_) {
            check(set_up(function.get(), pool_));
            check(xnn_run_operator(function.get(), pool_));
        }
        if (loop_) {
            loop_();
        }
    }
    /// Says that a function is far slower than others of its kind.
    void mark_slow() { slow_ = true; }
    bool plain() const override { return slow_ || loop_; }

private:
    struct Step {
        Function function;
        SetUp set_up;
    };

    pthreadpool_t pool_;
    std::vector<Step> steps_;
    std::function<void()> loop_;
    bool slow_ = false;
};

}  // namespace parapipe::xnnpack
