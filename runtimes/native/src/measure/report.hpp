#pragma once

#include "execution/results.hpp"
#include "measure/statistics.hpp"
#include "options.hpp"

#include <string>

namespace parapipe {

/// What a run is reported with.
struct Run {
    const Plan &plan;
    const Options &options;
    const Executor &executor;
    const Results &results;
    Statistics statistics;
    std::vector<OperatorTimes> operators;
    bool interrupted;
};

/// Whether all outputs are as near to what was expected as the tolerance asks; true if nothing was.
bool agrees(const Run &run);

std::string report_text(const Run &run);
std::string report_json(const Run &run);

}  // namespace parapipe
