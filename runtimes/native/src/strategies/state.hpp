#pragma once

#include "strategies/work.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace parapipe {

/// Numbers of frames, most of them all those below a number.
struct FrameSet {
    std::size_t below = 0;
    std::set<std::size_t> others;

    bool contains(std::size_t frame) const { return frame < below || others.count(frame) > 0; }
    void add(std::size_t frame);
};

/// What a processor takes for its work, by what was predicted; the past fades.
struct Pace {
    /// Of predicted seconds of work, after which a time counts e times less.
    double window_s = 0;
    double took_s = 0;
    double predicted_s = 0;

    void add(double took, double predicted);
    /// How many times longer than predicted it takes; 1 as long as nothing is known.
    double factor() const { return predicted_s != 0 ? took_s / predicted_s : 1.0; }
};

/// What a processor does: when it should begin, once all that it reads has arrived, and when it should end.
struct Running {
    Job job;
    double begin_s = 0;
    double end_s = 0;
    /// Of all that was begun, to tell one from another.
    std::size_t number = 0;

    double time_s() const { return end_s - begin_s; }
};

/// A job that may begin: by which processor, and since when; kNone if that was no processor.
struct Ready {
    ProcessorId by = kNone;
    double since_s = 0;
};

/// Where a tensor of a frame is, who is yet to read it, and when each processor that has asked for it should have
/// it, and really has it.
struct Whereabouts {
    ProcessorId processor = kNone;
    double made_s = 0;
    std::size_t readers = 0;
    std::map<ProcessorId, std::pair<double, double>> came_s;
};

/// What the plan has a processor do and nobody has begun, in its order.
class Agenda {
public:
    Agenda(const Work &work, ProcessorId processor);

    /// The job at a position behind those that have been begun; none if there is none.
    /// @param state Says what has begun.
    template <class State>
    std::optional<Job> at(std::size_t position, const State &state);
    /// Forgets the first jobs as long as they have been begun.
    template <class State>
    void drop_begun(const State &state);

private:
    Job next();

    const Work &work_;
    const Work::Order *order_ = nullptr;
    std::size_t number_ = 0;  // of the processor among those of the order
    std::size_t most_lag_ = 0;
    std::size_t round_ = 0;
    std::size_t in_round_ = 0;
    std::optional<Job> ahead_;
    std::deque<Job> queue_;
};

/// What a strategy sees while frames are on their way, and what is left to do of the plan. Times are seconds from
/// the start of the run. A strategy reads it, and changes it by `execute` and `ask_again` only.
class State {
public:
    State(const Work &work, bool follows_plan, std::size_t frames);

    const Work &work;
    const Links links;
    const bool follows_plan;
    double now_s = 0;
    std::map<Job, Ready> ready;
    /// Processors that do nothing, the one that has ended something last first.
    std::vector<ProcessorId> free;
    /// By processor: what it does, what it ended last, and how its times are to those predicted.
    std::vector<std::optional<Running>> running;
    std::vector<std::optional<Job>> last;
    std::vector<Pace> paces;
    std::size_t admitted = 0;
    /// How many frames there are.
    std::size_t frames = 0;
    /// When the strategy is asked again though nothing has happened; infinite if never.
    double ask_s = std::numeric_limits<double>::infinity();
    /// By task.
    std::vector<FrameSet> begun;
    std::vector<FrameSet> ended;

    /// Lets a free processor do a job that is ready.
    void execute(const Job &job, ProcessorId on);

    /// Asks the strategy again at a later time, if a job is running then and nothing has happened.
    void ask_again(double at_s) { ask_s = std::min(ask_s, at_s); }

    bool runs(TaskId task, ProcessorId processor) const;
    double seconds(const Job &job, ProcessorId processor) const { return work.time_s[job.task][processor]; }
    ProcessorId planned(const Job &job) const { return parapipe::planned(work, links, job); }
    bool is_over(const Job &job) const { return ended[job.task].contains(job.frame); }
    bool is_begun(const Job &job) const { return begun[job.task].contains(job.frame); }
    /// What the plan has a processor do next of what nobody has begun, or what is so many jobs behind.
    std::optional<Job> planned_next(ProcessorId processor);
    std::optional<Job> planned_at(ProcessorId processor, std::size_t position);
    /// When a job that is ready would begin on a processor that takes it now.
    double begin_s(const Job &job, ProcessorId processor) const;
    /// When a tensor that was made is there if a processor takes its reader now, and when it starts on its way.
    double there_s(std::size_t tensor, const Job &job, ProcessorId processor) const;
    double sent_s(std::size_t tensor, const Job &job, ProcessorId processor) const;

    // For the engine
    std::map<std::pair<std::size_t, std::size_t>, Whereabouts> places;  // by tensor and frame
    std::map<Job, std::size_t> left;  // what jobs wait for, if that is less than at first
    std::vector<ProcessorId> assigned;  // that have been given something
    std::size_t waits_of(const Job &job) const;

private:
    std::vector<Agenda> agendas_;
    std::size_t count_ = 0;
};

template <class AnyState>
std::optional<Job> Agenda::at(std::size_t position, const AnyState &state) {
    while (order_ != nullptr && position >= queue_.size()) {
        const auto job = ahead_ ? *ahead_ : next();
        ahead_ = job;
        if (job.frame + work_.lag[job.task] >= state.frames + most_lag_) {
            return std::nullopt;  // all from here on would be for frames that there are not
        }
        ahead_.reset();
        queue_.push_back(job);
    }
    return position < queue_.size() ? std::optional(queue_[position]) : std::nullopt;
}

template <class AnyState>
void Agenda::drop_begun(const AnyState &state) {
    for (auto job = at(0, state); job && (state.is_begun(*job) || job->frame >= state.frames); job = at(0, state)) {
        queue_.pop_front();
    }
}

}  // namespace parapipe
