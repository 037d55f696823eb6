#pragma once

#include "plan/plan.hpp"

#include <optional>
#include <string>
#include <vector>

namespace parapipe {

/// How Linux sets the clock of a core; what it does not say is empty or none.
struct CoreClock {
    int core = 0;
    std::string governor;
    std::optional<double> frequency_hz;
    std::optional<double> least_hz;
    std::optional<double> most_hz;
};

CoreClock clock_of(int core);

/// Clock at which the cores of a processor run now; none if Linux does not say.
std::optional<double> observed_hz(const Processor &processor);

/// A sentence for each core whose clock may move, or is not the plan's.
std::vector<std::string> clock_notes(const Plan &plan);

}  // namespace parapipe
