#pragma once

#include "execution/executor.hpp"
#include "execution/frames.hpp"
#include "plan/plan.hpp"

#include <string>

namespace parapipe {

/// When each frame began and ended, and each operator in it, in seconds from the start of the run: one JSON
/// document, which docs/armcl-format.md describes.
std::string trace_json(const Plan &plan, const Executor &executor, const Frames &frames);

}  // namespace parapipe
