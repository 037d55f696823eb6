#include "measure/report.hpp"

#include "measure/clocks.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace parapipe {
namespace {

double relative(const Results::Difference &difference) {
    return difference.scale > 0 ? difference.largest / difference.scale : difference.largest;
}

std::vector<std::string> notes_of(const Run &run) {
    return run.options.governor ? clock_notes(run.plan) : std::vector<std::string>();
}

/// Seconds of computing per frame, by processor.
std::vector<double> busy_s(const Run &run) {
    std::vector<double> busy(run.plan.processors.size());
    for (OperatorId v = 0; v < run.plan.operators.size(); ++v) {
        const auto &times_s = run.executor.times_s()[v];
        for (auto frame = run.options.warmup; frame < times_s.size(); ++frame) {
            busy[run.executor.ran_on(v, frame)] += times_s[frame] / static_cast<double>(times_s.size() - run.options.warmup);
        }
    }
    return busy;
}

}  // namespace

bool agrees(const Run &run) {
    const auto &differences = run.results.differences();
    return run.options.check.empty() ||
           std::all_of(differences.begin(), differences.end(), [&run](const auto &difference) {
               return !difference.not_finite && relative(difference) <= run.options.tolerance;
           });
}

std::string report_text(const Run &run) {
    const auto &statistics = run.statistics;
    std::ostringstream text;
    text << std::setprecision(4);
    text << run.plan.model << " on " << run.plan.platform << ": " << statistics.frames << " frames after "
         << run.options.warmup << " for warming up" << (run.interrupted ? ", interrupted" : "") << "\n";
    text << "latency    " << statistics.latency_mean_s * 1e3 << " ms on average, median "
         << statistics.latency_median_s * 1e3 << " ms, longest " << statistics.latency_longest_s * 1e3 << " ms";
    if (run.plan.predicted) {
        text << " (predicted " << run.plan.predicted->latency_s * 1e3 << " ms)";
    }
    text << "\nthroughput " << statistics.throughput_fps << " frames/s, one each " << statistics.period_s * 1e3 << " ms";
    if (run.plan.predicted) {
        text << " (predicted " << run.plan.predicted->sustained_period_s * 1e3 << " ms)";
    }
    text << "\npipeline   up to " << statistics.most_in_flight << " frames on their way, results "
         << (statistics.in_order ? "in order" : "OUT OF ORDER") << "; " << run.executor.shared_transfers() << " of "
         << run.plan.transfers.size() << " transfers without a copy\n";
    text << "memory     " << run.executor.views() << " of " << run.executor.joins_and_cuts()
         << " joins and cuts without a copy; " << run.executor.copied_bytes() << " bytes copied per frame\n";
    text << "arena      " << run.executor.arena_bytes() << " bytes, in which " << run.executor.inside_bytes()
         << " bytes of a frame's tensors lie; " << run.executor.outside_bytes() << " bytes outside\n";
    const auto busy = busy_s(run);
    for (ProcessorId p = 0; p < busy.size(); ++p) {
        text << "processor  " << run.plan.processors[p].name << ": " << busy[p] * 1e3 << " ms computing per frame\n";
    }
    if (const auto plain = run.executor.plain(); !plain.empty()) {
        text << "loops      " << plain.size() << " operators in plain loops, for lack of a fast function:";
        for (const auto v : plain) {
            text << " " << run.plan.operators[v].id << " (" << run.plan.operators[v].type << ")";
        }
        text << "\n";
    }
    if (!run.options.check.empty()) {
        for (std::size_t i = 0; i < run.plan.outputs.size(); ++i) {
            const auto &difference = run.results.differences()[i];
            text << "check      " << run.plan.tensors[run.plan.outputs[i]].name << ": "
                 << (difference.not_finite ? "not finite" : "differs by at most ");
            if (!difference.not_finite) {
                text << difference.largest << " of " << difference.scale;
            }
            text << "\n";
        }
    }
    for (const auto &note : notes_of(run)) {
        text << "clock      " << note << "\n";
    }
    return text.str();
}

std::string report_json(const Run &run) {
    const auto &statistics = run.statistics;
    nlohmann::json document = {
        {"schema", "parapipe/armcl-run/1"},
        {"model", run.plan.model},
        {"platform", run.plan.platform},
        {"frames", statistics.frames},
        {"warmup", run.options.warmup},
        {"interrupted", run.interrupted},
        {"latency_s", statistics.latency_mean_s},
        {"latency_median_s", statistics.latency_median_s},
        {"latency_longest_s", statistics.latency_longest_s},
        {"period_s", statistics.period_s},
        {"throughput_fps", statistics.throughput_fps},
        {"overlapping_frames", statistics.overlapping},
        {"most_frames_in_flight", statistics.most_in_flight},
        {"in_order", statistics.in_order},
        {"turns", run.executor.overlap().turns()},
        {"overlapped_turns", run.executor.overlap().overlapped()},
        {"transfers", run.plan.transfers.size()},
        {"shared_transfers", run.executor.shared_transfers()},
        {"joins_and_cuts", run.executor.joins_and_cuts()},
        {"views", run.executor.views()},
        {"copied_bytes", run.executor.copied_bytes()},
        {"arena_bytes", run.executor.arena_bytes()},
        {"inside_bytes", run.executor.inside_bytes()},
        {"outside_bytes", run.executor.outside_bytes()},
        {"notes", notes_of(run)},
    };
    const auto busy = busy_s(run);
    for (ProcessorId p = 0; p < busy.size(); ++p) {
        document["processors"].push_back({{"name", run.plan.processors[p].name}, {"busy_s", busy[p]}});
    }
    for (const auto &op : run.operators) {
        document["operators"].push_back({{"source", op.source},
                                         {"type", op.type},
                                         {"processor", run.plan.processors[op.processor].name},
                                         {"time_s", lower_median(op.times_s)}});
    }
    document["plain"] = nlohmann::json::array();
    for (const auto v : run.executor.plain()) {
        document["plain"].push_back({{"operator", run.plan.operators[v].id}, {"type", run.plan.operators[v].type}});
    }
    if (!run.options.check.empty()) {
        document["agrees"] = agrees(run);
        for (std::size_t i = 0; i < run.plan.outputs.size(); ++i) {
            const auto &difference = run.results.differences()[i];
            document["check"].push_back({{"output", run.plan.tensors[run.plan.outputs[i]].name},
                                         {"largest_difference", difference.largest},
                                         {"scale", difference.scale},
                                         {"finite", !difference.not_finite}});
        }
    }
    return document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace parapipe
