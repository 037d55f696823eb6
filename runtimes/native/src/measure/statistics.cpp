#include "measure/statistics.hpp"

#include <algorithm>
#include <chrono>
#include <map>

namespace parapipe {
namespace {

double seconds(Frames::Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
}

}  // namespace

double lower_median(std::vector<float> values) {
    if (values.empty()) {
        return 0;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return static_cast<double>(*middle);
}

Statistics statistics_of(const std::vector<Frames::Times> &times, std::size_t warmup) {
    Statistics statistics;
    if (times.size() <= warmup) {
        return statistics;
    }
    statistics.frames = times.size() - warmup;
    std::vector<float> latencies;
    std::size_t first_on_the_way = warmup;
    for (std::size_t i = warmup; i < times.size(); ++i) {
        const double latency_s = seconds(times[i].end - times[i].begin);
        latencies.push_back(static_cast<float>(latency_s));
        statistics.latency_mean_s += latency_s / static_cast<double>(statistics.frames);
        statistics.latency_longest_s = std::max(statistics.latency_longest_s, latency_s);
        if (i > warmup) {
            statistics.overlapping += times[i].begin < times[i - 1].end;
            statistics.in_order = statistics.in_order && times[i - 1].end <= times[i].end;
        }
        while (times[first_on_the_way].end <= times[i].begin) {
            ++first_on_the_way;
        }
        statistics.most_in_flight = std::max(statistics.most_in_flight, i + 1 - first_on_the_way);
    }
    statistics.latency_median_s = lower_median(latencies);
    if (statistics.frames > 1) {
        statistics.period_s = seconds(times.back().end - times[warmup].end) / static_cast<double>(statistics.frames - 1);
        statistics.throughput_fps = statistics.period_s > 0 ? 1 / statistics.period_s : 0;
    }
    return statistics;
}

std::vector<OperatorTimes> operator_times(const Plan &plan, const Executor &executor, std::size_t warmup) {
    std::vector<OperatorTimes> all;
    std::map<std::string, std::size_t> positions;
    for (ProcessorId p = 0; p < plan.processors.size(); ++p) {
        for (const OperatorId v : plan.processors[p].operators) {
            const auto &op = plan.operators[v];
            const auto &frames = executor.times_s()[v];
            const auto count = frames.size() > warmup ? frames.size() - warmup : 0;
            const auto [found, is_new] = positions.emplace(op.source, all.size());
            if (is_new) {
                all.push_back({op.source, op.type, p, std::vector<float>(count)});
            }
            auto &times_s = all[found->second].times_s;
            for (std::size_t i = 0; i < count; ++i) {
                times_s[i] += frames[warmup + i];
            }
        }
    }
    return all;
}

}  // namespace parapipe
