#pragma once

#include "execution/executor.hpp"
#include "execution/frames.hpp"
#include "plan/plan.hpp"

#include <string>
#include <vector>

namespace parapipe {

/// What was measured of the frames after the warm-up.
struct Statistics {
    std::size_t frames = 0;
    double latency_mean_s = 0;
    double latency_median_s = 0;
    double latency_longest_s = 0;
    /// Seconds from one frame's end to the next, and its reciprocal; 0 for fewer than two frames.
    double period_s = 0;
    double throughput_fps = 0;
    /// Frames that began before the one before them had ended, and the most that were on their way.
    std::size_t overlapping = 0;
    std::size_t most_in_flight = 0;
    bool in_order = true;
};

Statistics statistics_of(const std::vector<Frames::Times> &times, std::size_t warmup);

/// An operator of the plan (one `source`), with all that the runner does for it.
struct OperatorTimes {
    std::string source;
    std::string type;
    ProcessorId processor = kNone;
    /// Seconds in each measured frame.
    std::vector<float> times_s;
};

/// In the order in which the processors take them.
std::vector<OperatorTimes> operator_times(const Plan &plan, const Executor &executor, std::size_t warmup);

/// The middle one, of an even number the lower of the two.
double lower_median(std::vector<float> values);

}  // namespace parapipe
