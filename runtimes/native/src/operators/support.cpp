#include "operators/support.hpp"

#include <algorithm>

namespace parapipe {
namespace {

/// ARM Compute Library has fewer functions than the others, which have a loop of the runner for every type.
std::string obstacle_in_library(const Plan &plan, const Operator &op) {
    const auto constant = [&plan](TensorId t) { return t != kNone && plan.tensors[t].constant(); };
    if (op.type == "Erf" || op.type == "Gather" || op.type == "Where" || op.type == "Atan" || op.type == "Less" ||
        op.type == "GridSample") {
        return "has no function in ARM Compute Library";
    }
    if (op.type == "MatMul" && (!constant(op.inputs[1]) || plan.tensors[op.inputs[1]].shape.size() != 2)) {
        return "multiplies with something else than one constant matrix, which ARM Compute Library cannot";
    }
    if (op.type == "Concat" && std::any_of(op.inputs.begin(), op.inputs.end(), constant)) {
        return "joins a constant, which ARM Compute Library cannot";
    }
    if (op.type == "Conv") {
        if (op.inputs.size() > 3) {
            return "adds a tensor, which ARM Compute Library cannot";
        }
        const auto group = op.attributes.integer("group");
        if (group != 1 && group != plan.tensors[op.inputs[0]].shape[1]) {
            return "has groups that are neither one nor one for each channel, which ARM Compute Library cannot";
        }
    }
    return "";
}

}  // namespace

std::string obstacle_of(const Plan &plan, const Operator &op, BackendKind backend) {
    const bool library = backend == BackendKind::neon || backend == BackendKind::opencl;
    return library ? obstacle_in_library(plan, op) : "";
}

}  // namespace parapipe
