#pragma once

#include "execution/route.hpp"
#include "plan/plan.hpp"

#include <vector>

namespace parapipe {

/// An operator's turn in every frame, and what has to be done around it.
struct Turn {
    OperatorId op = kNone;
    /// Positions of the graph inputs that the processor reads here for the first time.
    std::vector<std::size_t> loads;
    /// Routes whose tensor is read here for the first time, and for the last.
    std::vector<Route *> arrivals;
    std::vector<Route *> departures;
    /// Routes of the output.
    std::vector<Route *> sends;
    /// Position of the output among the graph outputs; kNone if it is none.
    std::size_t result = kNone;
};

/// The turns of a processor, in order.
std::vector<Turn> turns_of(const Plan &plan, ProcessorId processor, std::vector<Route> &routes);

}  // namespace parapipe
