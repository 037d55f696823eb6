#include "strategies/strategy.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <tuple>

namespace parapipe {
namespace {

/// Gives each task a stream, as PPD gives clusters: breadth-first from those that read from no other one, each the
/// next stream in turn when it is met for the first time (Xu et al., TODAES 31(2), 2025, Algorithm 2).
std::vector<ProcessorId> assign_streams(const Links &links, std::size_t streams) {
    std::vector<ProcessorId> stream(links.readers.size(), kNone);
    std::deque<TaskId> queue;
    std::size_t met = 0;
    const auto meet = [&](TaskId task) {
        if (stream[task] == kNone) {
            stream[task] = met++ % streams;
            queue.push_back(task);
        }
    };
    for (TaskId task = 0; task < stream.size(); ++task) {
        if (links.producers[task].empty()) {
            meet(task);
        }
    }
    while (!queue.empty()) {
        auto readers = links.readers[queue.front()];
        queue.pop_front();
        std::sort(readers.begin(), readers.end());
        std::for_each(readers.begin(), readers.end(), meet);
    }
    return stream;
}

/// A stream, which is a processor of the plan, runs what is ready of its own tasks, older frames first.
class Streams : public Strategy {
public:
    explicit Streams(const Work &work) : stream_(assign_streams(Links(work), work.processors)) {
        for (TaskId task = 0; task < stream_.size(); ++task) {
            const auto &times = work.time_s[task];
            const auto least = std::min_element(times.begin(), times.end());
            if (times[stream_[task]] == std::numeric_limits<double>::infinity()) {
                stream_[task] = static_cast<ProcessorId>(least - times.begin());
            }
        }
    }

    bool follows_plan() const override { return false; }

    void schedule(State &state) override {
        for (const ProcessorId stream : std::vector<ProcessorId>(state.free)) {
            const Job *first = nullptr;
            const auto priority = [&state](const Job &job) {
                return std::tuple(job.frame, state.links.depth[job.task], job);
            };
            for (const auto &[job, ready] : state.ready) {
                if (stream_[job.task] == stream && (first == nullptr || priority(job) < priority(*first))) {
                    first = &job;
                }
            }
            if (first != nullptr) {
                state.execute(Job(*first), stream);
            }
        }
    }

private:
    std::vector<ProcessorId> stream_;  // by task
};

}  // namespace

std::unique_ptr<Strategy> make_streams(const Work &work) {
    return std::make_unique<Streams>(work);
}

}  // namespace parapipe
