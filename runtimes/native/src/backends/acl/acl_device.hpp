#pragma once

#include "backends/acl/build_elementwise.hpp"
#include "backends/acl/build_matrices.hpp"
#include "backends/acl/build_movements.hpp"
#include "backends/acl/build_windows.hpp"
#include "backends/acl/builder.hpp"
#include "execution/device.hpp"

#include <map>
#include <memory>
#include <vector>

namespace parapipe {

/// What both back ends do alike: tensors, functions and constants.
template <class Api>
class AclDevice : public Device {
public:
    AclDevice(const Plan &plan, ProcessorId processor, const std::vector<float> &weights)
        : plan_(plan), processor_(plan.processors[processor]), weights_(weights) {}

    void add_tensors(OperatorId v) override {
        for (const TensorId t : plan_.operators[v].inputs) {
            add_tensor(t);
        }
        add_tensor(plan_.operators[v].output);
    }

    void configure(OperatorId v) override {
        static const auto builds = all_builds();
        const auto &op = plan_.operators[v];
        Builder<Api> builder(plan_, op, tensors_, programs_[v]);
        builds.at(op.type)(builder);
        builder.finish();
    }

    Padding padding(TensorId tensor) const override {
        const auto padding = tensors_.at(tensor)->info()->padding();
        return {padding.top, padding.right, padding.bottom, padding.left};
    }

    void extend(TensorId tensor, const Padding &padding) override {
        const auto narrow = [](std::size_t elements) { return static_cast<unsigned>(elements); };
        tensors_.at(tensor)->info()->extend_padding(
            {narrow(padding.top), narrow(padding.right), narrow(padding.bottom), narrow(padding.left)});
    }

    Layout layout(TensorId tensor) const override { return layout_of_info(*tensors_.at(tensor)->info()); }

    /// Functions are configured, so paddings are known: memory, then constants, then what the library
    /// makes of them.
    void allocate(const std::set<TensorId> &bound) override {
        for (auto &[id, tensor] : tensors_) {
            if (bound.count(id) == 0) {
                tensor->allocator()->allocate();
            }
        }
        for (auto &[v, program] : programs_) {
            for (auto &tensor : program.temporaries) {
                tensor->allocator()->allocate();
            }
            for (auto &constant : program.constants) {
                constant.tensor->allocator()->allocate();
                fill(constant);
            }
            for (auto &function : program.functions) {
                function->prepare();
            }
        }
    }

    void run(OperatorId op) override {
        for (auto &function : programs_.at(op).functions) {
            function->run();
        }
    }

    std::byte *map(TensorId tensor) override { return map(*tensors_.at(tensor)); }
    void unmap(TensorId tensor) override { unmap(*tensors_.at(tensor)); }

protected:
    using Tensor = typename Api::Tensor;

    virtual std::byte *map(Tensor &tensor) = 0;
    virtual void unmap(Tensor &tensor) = 0;

    Tensor &tensor(TensorId id) { return *tensors_.at(id); }
    const Processor &processor() const { return processor_; }

private:
    static Builds<Api> all_builds() {
        auto all = window_builds<Api>();
        for (auto &&family : {elementwise_builds<Api>(), matrix_builds<Api>(), movement_builds<Api>()}) {
            all.insert(family.begin(), family.end());
        }
        return all;
    }

    void add_tensor(TensorId t) {
        if (t == kNone || plan_.tensors[t].constant() || tensors_.count(t) > 0) {
            return;
        }
        auto &tensor = tensors_[t] = std::make_unique<Tensor>();
        tensor->allocator()->init(acl_info(plan_.tensors[t].shape));
    }

    void fill(typename Program<Api>::Constant &constant) {
        const float *values = weights_.data() + *plan_.tensors[constant.source].offset / sizeof(float);
        auto there = layout_of(constant.shape);
        if (!constant.perm.empty()) {
            const auto first = kMostDimensions - constant.perm.size();
            auto permuted = there;
            for (std::size_t i = 0; i < constant.perm.size(); ++i) {
                const auto axis = first + static_cast<std::size_t>(constant.perm[i]);
                permuted.extents[first + i] = there.extents[axis];
                permuted.strides[first + i] = there.strides[axis];
            }
            there = permuted;
        }
        copy(reinterpret_cast<const std::byte *>(values), there, map(*constant.tensor),
             layout_of_info(*constant.tensor->info()));
        unmap(*constant.tensor);
    }

    const Plan &plan_;
    const Processor &processor_;
    const std::vector<float> &weights_;
    std::map<TensorId, std::unique_ptr<Tensor>> tensors_;
    std::map<OperatorId, Program<Api>> programs_;
};

}  // namespace parapipe
