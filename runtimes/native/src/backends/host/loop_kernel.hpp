#pragma once

#include "backends/host/kernel.hpp"
#include "backends/host/tensors.hpp"

#include <memory>
#include <string>

namespace parapipe {

/// A loop of the runner for an operator, its activation included.
/// @throws Error if there is none.
std::unique_ptr<Kernel> make_loop_kernel(const Tensors &tensors, OperatorId op);

/// Whether an operator only moves elements.
bool moves_only(const std::string &type);

}  // namespace parapipe
