#pragma once

#include "plan/plan.hpp"

#include <map>
#include <string>
#include <vector>

namespace parapipe {

/// Reads and checks a plan, see docs/armcl-format.md.
/// @throws Error if anything is not as the format has it.
Plan parse_plan(const std::string &json);
Plan read_plan(const std::string &folder);

/// The back ends, by their names in a plan.
const std::map<std::string, BackendKind> &backend_kinds();

/// Reads the constants of a plan.
/// @throws Error if the file cannot be read or has another size than the plan says.
std::vector<float> read_weights(const std::string &path, const Plan &plan);

/// All of a file.
/// @throws Error if it cannot be read.
std::string read_file(const std::string &path);

}  // namespace parapipe
