#include "operators/catalogue.hpp"

#include "error.hpp"

#include <algorithm>
#include <map>

namespace parapipe {
namespace {

constexpr std::int64_t kLargest = (std::int64_t{1} << 31) - 1;
constexpr std::size_t kMostEntries = 2 * kMostDimensions;

const std::map<std::string, OperatorKind> &catalogue() {
    static const auto kinds = [] {
        std::map<std::string, OperatorKind> by_type;
        for (auto &&family : {window_kinds(), elementwise_kinds(), matrix_kinds(), movement_kinds()}) {
            for (const auto &kind : family) {
                by_type.emplace(kind.type, kind);
            }
        }
        return by_type;
    }();
    return kinds;
}

Attributes::Value integers_of(const Field &field, const AttributeRule &rule) {
    Integers values;
    for (const auto &entry : field.entries()) {
        values.push_back(entry.integer(rule.least, kLargest));
    }
    if (rule.length != 0 && values.size() != rule.length) {
        field.refuse(text_of("should have ", rule.length, " entries"));
    }
    if (values.empty() || values.size() > kMostEntries) {
        field.refuse("should have one entry or more, and no more than a tensor may have dimensions");
    }
    return values;
}

Attributes::Value value_of(const Field &field, const AttributeRule &rule) {
    switch (rule.kind) {
        case AttributeRule::Kind::integer:
            return field.integer(rule.least, kLargest);
        case AttributeRule::Kind::flag:
            return field.integer(0, 1);
        case AttributeRule::Kind::number:
            return field.number();
        case AttributeRule::Kind::word:
            if (std::find(rule.words.begin(), rule.words.end(), field.text()) == rule.words.end()) {
                field.refuse("is '" + field.text() + "', which the runner does not know");
            }
            return field.text();
        case AttributeRule::Kind::integers:
            break;
    }
    return integers_of(field, rule);
}

}  // namespace

void Call::refuse(const std::string &what) const {
    throw Error(text_of("plan.json: operator '", op.id, "' (", op.type, ") ", what));
}

void Call::demand(bool condition, const std::string &what) const {
    if (!condition) {
        refuse(what);
    }
}

void Call::demand_rank(std::size_t rank) const {
    demand(shape(0).size() == rank, text_of("needs an input of ", rank, " dimensions"));
}

const OperatorKind &kind_of_operator(const Field &type) {
    const auto found = catalogue().find(type.text());
    if (found == catalogue().end()) {
        type.refuse("is '" + type.text() + "', which the runner has no function for");
    }
    return found->second;
}

const OperatorKind &kind_of_activation(const Field &type) {
    const auto &kind = kind_of_operator(type);
    if (!kind.activation) {
        type.refuse("is '" + type.text() + "', which is no activation");
    }
    return kind;
}

Attributes attributes_of(const Field &field, const OperatorKind &kind) {
    Attributes attributes;
    for (const auto &rule : kind.attributes) {
        attributes.set(rule.name, value_of(field[rule.name], rule));
    }
    for (const auto &[name, unknown] : field.members()) {
        const bool known = std::any_of(kind.attributes.begin(), kind.attributes.end(),
                                       [&name = name](const auto &rule) { return rule.name == name; });
        if (!known) {
            unknown.refuse("is no attribute of " + kind.type);
        }
    }
    return attributes;
}

Shape output_shape(const Operator &op, const Plan &plan) {
    const auto &kind = catalogue().at(op.type);
    Call call{op, {}, plan.tensors[op.output]};
    for (const TensorId t : op.inputs) {
        call.inputs.push_back(t == kNone ? nullptr : &plan.tensors[t]);
    }
    call.demand(kind.least_inputs <= call.inputs.size() && call.inputs.size() <= kind.most_inputs,
                text_of("has ", call.inputs.size(), " inputs, and should have ", kind.least_inputs, " to ",
                        kind.most_inputs));
    bool varies = false;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        const auto *input = call.inputs[i];
        if (input == nullptr && kind.least_inputs <= i && i < kind.residual && kind.residual != kNone) {
            continue;
        }
        call.demand(input != nullptr, "leaves out an input that it needs");
        call.demand(i < kind.first_constant || i == kind.residual || input->constant(),
                    "needs a constant, not '" + input->name + "', where it reads it");
        varies = varies || !input->constant();
    }
    call.demand(varies, "reads constants only; its result is one");
    auto shape = kind.shape(call);
    std::int64_t elements = 1;
    for (const auto extent : shape) {
        call.demand(1 <= extent && extent <= kMostElements / elements, "gives a tensor that is empty or too large");
        elements *= extent;
    }
    return shape;
}

}  // namespace parapipe
