#pragma once

#include "plan/fields.hpp"
#include "plan/plan.hpp"

#include <string>
#include <vector>

namespace parapipe {

/// What an attribute may be: any integer, 0 or 1, a finite number, one of some texts, or a list of
/// integers of a fixed length (`length` entries; 0 for any but none).
struct AttributeRule {
    enum class Kind { integer, flag, number, word, integers };

    std::string name;
    Kind kind;
    std::int64_t least = 0;
    std::size_t length = 0;
    std::vector<std::string> words = {};
};

/// An operator as a shape function sees it.
struct Call {
    const Operator &op;
    /// Input tensors; null where one is left out.
    std::vector<const Tensor *> inputs;
    const Tensor &output;

    const Shape &shape(std::size_t position) const { return inputs[position]->shape; }
    const Tensor *optional(std::size_t position) const {
        return position < inputs.size() ? inputs[position] : nullptr;
    }
    [[noreturn]] void refuse(const std::string &what) const;
    /// Refuses unless the condition holds.
    void demand(bool condition, const std::string &what) const;
    void demand_rank(std::size_t rank) const;
};

/// An operator type that the runner knows.
struct OperatorKind {
    std::string type;
    std::size_t least_inputs;
    std::size_t most_inputs;
    /// Position of the first input that must be a constant, as all after it.
    std::size_t first_constant;
    bool activation;
    std::vector<AttributeRule> attributes;
    /// Works out the output's shape; refuses what the type cannot do.
    Shape (*shape)(const Call &call);
    /// Position of an activation behind the constants, of which those that may be left out then leave a gap.
    std::size_t residual = kNone;
};

/// @throws Error if the text names no type that the runner knows, or none that may be fused.
const OperatorKind &kind_of_operator(const Field &type);
const OperatorKind &kind_of_activation(const Field &type);

/// Reads attributes: all that the kind has, and no others.
Attributes attributes_of(const Field &field, const OperatorKind &kind);

/// Shape of the output of an operator of a plan.
/// @throws Error if its inputs or attributes do not go together.
Shape output_shape(const Operator &op, const Plan &plan);

/// The kinds of each family.
std::vector<OperatorKind> window_kinds();
std::vector<OperatorKind> elementwise_kinds();
std::vector<OperatorKind> matrix_kinds();
std::vector<OperatorKind> movement_kinds();

/// The shape that two broadcast to, as in ONNX.
Shape broadcast(const Call &call, const Shape &a, const Shape &b);
inline Shape same_shape(const Call &call) { return call.shape(0); }

}  // namespace parapipe
