#include "measure/clocks.hpp"

#include "error.hpp"

#include <cmath>
#include <fstream>

namespace parapipe {
namespace {

constexpr double kTolerance = 0.05;

std::string line_of(int core, const char *file) {
    std::ifstream stream(text_of("/sys/devices/system/cpu/cpu", core, "/cpufreq/", file));
    std::string line;
    std::getline(stream, line);
    return line;
}

std::optional<double> hertz_of(int core, const char *file) {
    try {
        return std::stod(line_of(core, file)) * 1e3;
    } catch (const std::exception &) {
        return std::nullopt;
    }
}

}  // namespace

CoreClock clock_of(int core) {
    return {core, line_of(core, "scaling_governor"), hertz_of(core, "scaling_cur_freq"),
            hertz_of(core, "scaling_min_freq"), hertz_of(core, "scaling_max_freq")};
}

std::optional<double> observed_hz(const Processor &processor) {
    if (processor.cores.empty() || processor.backend == BackendKind::opencl) {
        return std::nullopt;
    }
    return clock_of(processor.cores.front()).frequency_hz;
}

std::vector<std::string> clock_notes(const Plan &plan) {
    std::vector<std::string> notes;
    for (const auto &processor : plan.processors) {
        for (const int core : processor.cores) {
            const auto clock = clock_of(core);
            const auto who = text_of("processor '", processor.name, "', core ", core, ": ");
            if (!clock.frequency_hz) {
                notes.push_back(who + "Linux does not say how its clock is set");
                continue;
            }
            auto note = text_of(who, "governor ", clock.governor, ", now at ", *clock.frequency_hz / 1e6, " MHz");
            if (!clock.least_hz || !clock.most_hz || *clock.least_hz < *clock.most_hz) {
                note += "; it may move: set scaling_min_freq and scaling_max_freq to one value";
            }
            const bool off = processor.backend != BackendKind::opencl && processor.frequency_hz > 0 &&
                             std::abs(*clock.frequency_hz / processor.frequency_hz - 1) > kTolerance;
            if (off) {
                note += text_of("; the plan was made for ", processor.frequency_hz / 1e6, " MHz");
            }
            notes.push_back(note);
        }
    }
    return notes;
}

}  // namespace parapipe
