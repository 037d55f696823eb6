#pragma once

#include "backends/acl/shapes.hpp"
#include "error.hpp"

#include <arm_compute/core/Error.h>
#include <arm_compute/core/Types.h>
#include <arm_compute/runtime/IFunction.h>

#include <map>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace parapipe {

/// Functions of the library that compute one operator, and the tensors that only they use.
template <class Api>
struct Program {
    /// A constant on its way from the weights file into a tensor, its axes in another order maybe.
    struct Constant {
        std::unique_ptr<typename Api::Tensor> tensor;
        TensorId source;
        Shape shape;
        Integers perm;
    };

    std::vector<std::unique_ptr<arm_compute::IFunction>> functions;
    std::vector<std::unique_ptr<typename Api::Tensor>> temporaries;
    std::vector<Constant> constants;
};

/// What a builder of an operator works with.
template <class Api>
class Builder {
public:
    using Tensor = typename Api::Tensor;
    using Tensors = std::map<TensorId, std::unique_ptr<Tensor>>;
    using ActivationInfo = arm_compute::ActivationLayerInfo;

    Builder(const Plan &plan, const Operator &built, Tensors &tensors, Program<Api> &program)
        : op(built), plan_(plan), tensors_(tensors), program_(program) {}

    const Operator &op;

    bool has(std::size_t position) const { return position < op.inputs.size() && op.inputs[position] != kNone; }
    const Shape &shape_of(std::size_t position) const { return plan_.tensors[op.inputs[position]].shape; }
    const Shape &output_shape() const { return plan_.tensors[op.output].shape; }

    /// An activation, or a constant as it stands in the file.
    Tensor *input(std::size_t position) {
        const TensorId t = op.inputs[position];
        return plan_.tensors[t].constant() ? constant(position, shape_of(position)) : tensors_.at(t).get();
    }
    Tensor *output() { return tensors_.at(op.output).get(); }

    /// A constant that the library takes in another shape.
    /// @param perm Order of the axes of `shape` (the file's), if the library's is another.
    Tensor *constant(std::size_t position, const Shape &shape, const Integers &perm = {}) {
        Shape here;
        for (const auto axis : perm) {
            here.push_back(shape[static_cast<std::size_t>(axis)]);
        }
        auto tensor = std::make_unique<Tensor>();
        tensor->allocator()->init(acl_info(perm.empty() ? shape : here));
        program_.constants.push_back({std::move(tensor), op.inputs[position], shape, perm});
        return program_.constants.back().tensor.get();
    }

    Tensor *temporary(const Shape &shape) {
        auto &tensor = program_.temporaries.emplace_back(std::make_unique<Tensor>());
        tensor->allocator()->init(acl_info(shape));
        return tensor.get();
    }

    /// Adds a function, if the library says that it can do what it is asked for.
    template <class Function, class... Arguments>
    void add(Arguments... arguments) {
        demand(Function::validate(info_of(arguments)...));
        auto function = std::make_unique<Function>();
        function->configure(arguments...);
        program_.functions.push_back(std::move(function));
    }

    void demand(const arm_compute::Status &status) const {
        if (!status) {
            refuse("is refused by the library: " + status.error_description());
        }
    }

    [[noreturn]] void refuse(const std::string &what) const {
        throw Error("operator '" + op.id + "' (" + op.type + ") " + what);
    }

    /// The fused activation, for a function that applies it itself.
    ActivationInfo take_activation() {
        fused_ = true;
        return op.activation ? activation_info(op.activation->type, op.activation->attributes) : ActivationInfo();
    }

    /// Applies the fused activation in place, if no function has taken it.
    void finish() {
        if (op.activation && !fused_) {
            const auto info = activation_info(op.activation->type, op.activation->attributes);
            add<typename Api::Activation>(output(), static_cast<typename Api::ITensor *>(nullptr), info);
        }
    }

    static ActivationInfo activation_info(const std::string &type, const Attributes &attributes) {
        using F = ActivationInfo::ActivationFunction;
        const auto number = [&attributes](const char *name) { return static_cast<float>(attributes.number(name)); };
        if (type == "Clip") {
            return {F::LU_BOUNDED_RELU, number("max"), number("min")};
        }
        if (type == "LeakyRelu" || type == "Elu") {
            return {type == "Elu" ? F::ELU : F::LEAKY_RELU, number("alpha")};
        }
        if (type == "Tanh") {
            return {F::TANH, 1.0F, 1.0F};
        }
        static const std::map<std::string, F> others = {
            {"Relu", F::RELU},      {"Sigmoid", F::LOGISTIC}, {"HardSwish", F::HARD_SWISH},
            {"Softplus", F::SOFT_RELU}, {"Abs", F::ABS},      {"Sqrt", F::SQRT}};
        return {others.at(type)};
    }

private:
    /// What `validate` takes in the place of what `configure` takes.
    template <class Argument>
    static auto info_of(const Argument &argument) {
        if constexpr (std::is_pointer_v<Argument>) {
            return argument == nullptr ? nullptr : argument->info();
        } else if constexpr (std::is_same_v<Argument, std::vector<const typename Api::ITensor *>>) {
            std::vector<const arm_compute::ITensorInfo *> infos;
            for (const auto *tensor : argument) {
                infos.push_back(tensor->info());
            }
            return infos;
        } else {
            return argument;
        }
    }

    const Plan &plan_;
    Tensors &tensors_;
    Program<Api> &program_;
    bool fused_ = false;
};

/// Builds an operator by its type; it must be one of the catalogue.
template <class Api>
using Build = void (*)(Builder<Api> &);

template <class Api>
using Builds = std::map<std::string, Build<Api>>;

}  // namespace parapipe
