#include "strategies/strategy.hpp"

#include <algorithm>
#include <tuple>

namespace parapipe {
namespace {

/// Each processor takes what the plan has it do next, and waits until that may begin.
class Follow : public Strategy {
public:
    bool follows_plan() const override { return true; }

    void schedule(State &state) override {
        for (const ProcessorId processor : std::vector<ProcessorId>(state.free)) {
            if (const auto job = state.planned_next(processor); job && state.ready.count(*job) > 0) {
                state.execute(*job, processor);
            }
        }
    }
};

/// Takes what is at hand, else what the processor has made ready, else anything: the engine of ASPEN (Park et al.,
/// NeurIPS 2023) on tasks in place of tiles. No plan is looked at, and no predicted time.
class ReadyPool : public Strategy {
public:
    bool follows_plan() const override { return false; }

    void schedule(State &state) override {
        for (const ProcessorId processor : std::vector<ProcessorId>(state.free)) {
            if (const auto job = choose(processor, state)) {
                state.execute(*job, processor);
            }
        }
    }

private:
    static std::optional<Job> choose(ProcessorId processor, const State &state) {
        std::optional<Job> best;
        if (const auto last = state.last[processor]) {
            for (const TaskId reader : state.links.readers[last->task]) {
                const auto found = state.ready.find({reader, last->frame});
                if (found != state.ready.end() && found->second.by == processor) {
                    take_better(processor, state, found->first, best);
                }
            }
        }
        if (!best) {
            for (const auto &[job, ready] : state.ready) {
                take_better(processor, state, job, best);
            }
        }
        return best;
    }

    static void take_better(ProcessorId processor, const State &state, const Job &job, std::optional<Job> &best) {
        const auto priority = [&](const Job &each) {
            return std::tuple(state.ready.at(each).by != processor, each.frame, state.links.depth[each.task], each.task);
        };
        if (state.runs(job.task, processor) && (!best || priority(job) < priority(*best))) {
            best = job;
        }
    }
};

}  // namespace

std::unique_ptr<Strategy> make_follow(const Work & /*work*/) {
    return std::make_unique<Follow>();
}

std::unique_ptr<Strategy> make_ready_pool(const Work & /*work*/) {
    return std::make_unique<ReadyPool>();
}

}  // namespace parapipe
