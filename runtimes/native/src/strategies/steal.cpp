#include "strategies/outlook.hpp"
#include "strategies/strategy.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace parapipe {
namespace {

// As in parapipe/strategies/steal.py, which says why.
constexpr double kLate = 1.25;      // a processor that takes so many times what was predicted is late
constexpr double kOverdueS = 1e-4;  // a job is overdue if it is late and takes at least so much longer
constexpr double kLongS = 2.5e-3;   // shorter jobs are taken from late processors only
constexpr double kLost = 0.05;      // share of the time since the start that thefts may have cost
constexpr double kLookS = 1e-4;     // what looking ahead takes, and for each job that is looked at
constexpr double kLookJobS = 1e-5;
constexpr double kLooked = 0.03;    // share of the time that looks may have taken beyond what they should gain

/// A job that was taken from another processor.
struct Theft {
    ProcessorId thief = kNone;
    std::size_t number = 0;  // of what the thief does
    std::optional<Job> own;  // its next job in the plan
    ProcessorId owner = kNone;
    std::optional<std::size_t> busy;  // number of what the owner was doing then
    double due_s = 0;                 // nobody waits longer for what the job makes if it ends by then
};

bool does(const State &state, ProcessorId processor, std::size_t number) {
    return state.running[processor] && state.running[processor]->number == number;
}

/// How much longer than without it anything has waited for a theft that has ended.
double cost_s(const Theft &theft, const State &state) {
    double own_s = 0;
    if (theft.own) {
        const auto found = state.ready.find(*theft.own);
        own_s = state.now_s - (found == state.ready.end() ? state.now_s : found->second.since_s);
    }
    if (theft.busy && does(state, theft.owner, *theft.busy)) {
        return own_s;  // it would not even have begun
    }
    return std::max(own_s, state.now_s - theft.due_s);
}

/// Whether a processor takes much longer than predicted, or is about to.
bool is_late(ProcessorId processor, const State &state) {
    const auto &running = state.running[processor];
    return state.paces[processor].factor() > kLate ||
           (running && state.now_s - running->begin_s > kLate * running->time_s());
}

/// Follows the plan; a processor that would wait takes what ends sooner there.
class Steal : public Strategy {
public:
    explicit Steal(const Work &work) : longest_s_(work.processors) {
        for (const auto &times : work.time_s) {
            for (ProcessorId p = 0; p < work.processors; ++p) {
                if (times[p] < std::numeric_limits<double>::infinity()) {
                    longest_s_[p] = std::max(longest_s_[p], times[p]);
                }
            }
        }
    }

    bool follows_plan() const override { return true; }
    bool asks_again() const override { return true; }

    void schedule(State &state) override {
        count_losses(state);
        std::vector<std::pair<ProcessorId, std::optional<Job>>> idle;
        for (const ProcessorId processor : std::vector<ProcessorId>(state.free)) {
            const auto own = state.planned_next(processor);
            if (own && state.ready.count(*own) > 0) {
                state.execute(*own, processor);
            } else {
                idle.emplace_back(processor, own);
            }
        }
        for (const auto &[processor, own] : idle) {
            if (!state.ready.empty() && may_look(state.now_s) && !work_meanwhile(processor, own, state)) {
                steal(processor, own, state);
            }
        }
    }

private:
    void count_losses(const State &state) {
        for (auto each = thefts_.begin(); each != thefts_.end();) {
            if (does(state, each->thief, each->number)) {
                ++each;
            } else {
                lost_s_ += cost_s(*each, state);
                each = thefts_.erase(each);
            }
        }
    }

    /// Whether neither thefts nor looking ahead have cost too much so far.
    bool may_look(double now_s) const { return lost_s_ <= kLost * now_s && looked_s_ <= kLooked * now_s; }

    /// Gives a processor that waits for overdue jobs something that should end before them.
    bool work_meanwhile(ProcessorId processor, const std::optional<Job> &own, State &state) {
        const auto until_s = overdue_until_s(processor, own, state);
        if (until_s.empty()) {
            return false;
        }
        double latest_s = 0;
        for (const auto &each : until_s) {
            latest_s = std::max(latest_s, each.second);
        }
        const double pace = std::max(1.0, state.paces[processor].factor());
        std::optional<Job> best;
        const auto key = [&state](const Job &job) { return std::tuple(job.frame, state.links.depth[job.task], job.task); };
        for (const auto &[job, ready] : state.ready) {
            const auto owner = state.planned(job);
            const double time = state.seconds(job, processor);
            if (time >= kLongS || (owner != processor && until_s.count(owner) == 0)) {
                continue;
            }
            const double end = state.begin_s(job, processor) + pace * time;
            if (end > latest_s || (best && key(*best) < key(job))) {
                continue;
            }
            if (owner == processor ||
                end < due_s(job, processor, planned_end_s(job, owner, until_s.at(owner), state), state)) {
                best = job;
            }
        }
        if (!best) {
            state.ask_again(latest_s);
            return false;
        }
        const auto owner = state.planned(*best);
        Theft theft{processor, 0, own, owner, std::nullopt, std::numeric_limits<double>::infinity()};
        if (owner != processor) {
            theft.busy = state.running[owner]->number;
            const double free = std::max(state.now_s, state.running[owner]->end_s);
            theft.due_s = due_s(*best, processor, planned_end_s(*best, owner, free, state), state);
        }
        state.execute(*best, processor);
        theft.number = state.running[processor]->number;
        thefts_.push_back(theft);
        return true;
    }

    /// Until when overdue processors should be busy that a processor waits for. If none is overdue yet, the strategy
    /// is asked again when one would be.
    static std::map<ProcessorId, double> overdue_until_s(ProcessorId processor, const std::optional<Job> &own, State &state) {
        std::map<ProcessorId, double> until_s;
        double next_s = std::numeric_limits<double>::infinity();
        for (const ProcessorId other : awaited(processor, own, state)) {
            if (!state.running[other]) {
                continue;
            }
            const auto &running = *state.running[other];
            const double overdue_s = running.begin_s + std::max(kLate * running.time_s(), running.time_s() + kOverdueS);
            if (overdue_s <= state.now_s) {
                until_s[other] = state.now_s + (state.now_s - running.begin_s);
            } else {
                next_s = std::min(next_s, overdue_s);
            }
        }
        if (until_s.empty()) {
            state.ask_again(next_s);
        }
        return until_s;
    }

    /// Processors that a processor's next job waits for; all if it has none.
    static std::set<ProcessorId> awaited(ProcessorId processor, const std::optional<Job> &own, const State &state) {
        std::set<ProcessorId> found;
        if (!own) {
            for (ProcessorId p = 0; p < state.running.size(); ++p) {
                found.insert(p);
            }
        } else {
            const auto add = [&](const Job &job) {
                if (!state.is_over(job)) {
                    const auto does = std::find_if(state.running.begin(), state.running.end(),
                                                   [&job](const auto &each) { return each && each->job == job; });
                    found.insert(does == state.running.end() ? state.planned(job)
                                                             : static_cast<ProcessorId>(does - state.running.begin()));
                }
            };
            for (const TaskId task : state.links.producers[own->task]) {
                add({task, own->frame});
            }
            for (const auto &[task, slots] : state.links.waits_for_room[own->task]) {
                if (own->frame >= slots) {
                    add({task, own->frame - slots});
                }
            }
        }
        found.erase(processor);
        return found;
    }

    /// When the plan's processor ends a job if it is free at a time and never waits.
    static double planned_end_s(const Job &job, ProcessorId owner, double free_s, State &state) {
        state.planned_next(owner);  // forgets what has begun
        for (std::size_t position = 0;; ++position) {
            const auto each = state.planned_at(owner, position);
            if (!each || each->frame >= state.frames || state.is_begun(*each)) {
                if (!each) {
                    return free_s;
                }
                continue;
            }
            free_s += state.seconds(*each, owner);
            if (*each == job) {
                return free_s;
            }
        }
    }

    /// Gives a processor the ready job of another one that gains most, if any gains.
    void steal(ProcessorId processor, const std::optional<Job> &own, State &state) {
        std::vector<bool> late;
        for (ProcessorId p = 0; p < state.running.size(); ++p) {
            late.push_back(p != processor && is_late(p, state));
        }
        if (std::none_of(late.begin(), late.end(), [](bool each) { return each; }) && longest_s_[processor] < kLongS) {
            return;
        }
        std::vector<Job> jobs;
        for (const auto &[job, ready] : state.ready) {
            if (may_take(job, processor, late, state)) {
                jobs.push_back(job);
            }
        }
        if (jobs.empty()) {
            return;
        }
        std::vector<double> paces;
        for (const auto &each : state.paces) {
            paces.push_back(std::max(1.0, each.factor()));
        }
        Outlook outlook(state, paces);
        std::pair<double, Job> best{-std::numeric_limits<double>::infinity(), {}};
        for (const auto &job : jobs) {
            best = std::max(best, std::pair(gain_s(job, processor, own, state, outlook, paces), job));
        }
        const auto [gain, job] = best;
        const double took_s = kLookS + kLookJobS * static_cast<double>(outlook.jobs());
        looked_s_ += std::max(0.0, took_s - std::max(0.0, gain));
        if (gain <= 0) {
            return;
        }
        Outlook on_time(state, std::vector<double>(paces.size(), 1.0));
        const auto owner = state.planned(job);
        Theft theft{processor, 0, own, owner, std::nullopt, due_s(job, processor, on_time.end_s(job), state)};
        state.execute(job, processor);
        theft.number = state.running[processor]->number;
        if (state.running[owner]) {
            theft.busy = state.running[owner]->number;
        }
        thefts_.push_back(theft);
    }

    /// Whether a job waits for a processor that is busy, and is worth to be looked at.
    static bool may_take(const Job &job, ProcessorId processor, const std::vector<bool> &late, State &state) {
        const auto owner = state.planned(job);
        const double time = state.seconds(job, processor);
        if (owner == processor || !state.runs(job.task, processor) || (time < kLongS && !late[owner])) {
            return false;
        }
        return state.running[owner].has_value() || !(state.planned_next(owner) == std::optional(job));
    }

    /// How much sooner all that a job makes is where the plan reads it; 0 if it would not have ended when the
    /// processor's own next job could begin.
    static double gain_s(const Job &job, ProcessorId processor, const std::optional<Job> &own, const State &state,
                         Outlook &outlook, const std::vector<double> &paces) {
        const double end = state.begin_s(job, processor) + paces[processor] * state.seconds(job, processor);
        const double gain = due_s(job, processor, outlook.end_s(job), state) - end;
        return gain <= 0 || !own || end <= outlook.begin_s(*own) ? gain : 0.0;
    }

    /// Until when a processor has to end a job, so that nobody waits longer for it than for the plan's processor,
    /// which would end it at a time.
    static double due_s(const Job &job, ProcessorId processor, double planned_s, const State &state) {
        const auto owner = state.planned(job);
        double due = planned_s;
        for (const auto tensor : state.links.makes[job.task]) {
            const auto &moved = state.work.tensors[tensor].moved_s;
            for (const TaskId reader : state.links.read_by[tensor]) {
                const auto there = state.planned({reader, job.frame});
                due = std::min(due, planned_s + moved[owner][there] - moved[processor][there]);
            }
        }
        return due;
    }

    std::vector<Theft> thefts_;
    double lost_s_ = 0;
    double looked_s_ = 0;
    std::vector<double> longest_s_;  // by processor, of all tasks
};

}  // namespace

std::unique_ptr<Strategy> make_steal(const Work &work) {
    return std::make_unique<Steal>(work);
}

}  // namespace parapipe
