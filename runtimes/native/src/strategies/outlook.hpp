#pragma once

#include "strategies/state.hpp"

#include <map>
#include <set>
#include <vector>

namespace parapipe {

/// What lies ahead at a moment if nobody leaves the plan any more: the plan's processor of a job first does what
/// the plan puts before it; jobs wait for what they read and for room. What is not looked at (frames that are yet
/// to be admitted) can only make jobs later: no time here is later than what would come of it.
class Outlook {
public:
    /// @param paces By processor: how many times longer than predicted it takes.
    Outlook(State &state, std::vector<double> paces);

    /// So many jobs have been looked at.
    std::size_t jobs() const { return end_s_.size(); }
    /// When a job that nobody has begun begins, and ends, on the plan's processor.
    double end_s(const Job &job);
    double begin_s(const Job &job) { return end_s(job) - time_s(job); }

private:
    double time_s(const Job &job) const;
    double end_of(const Job &job) const;
    double least_begin_s(const Job &job, const std::vector<Job> &before) const;
    std::pair<ProcessorId, double> where_it_ends(const Job &job) const;
    std::vector<Job> makes_room(const Job &job) const;
    std::vector<Job> predecessors(const Job &job);
    std::optional<Job> previous(const Job &job);

    State &state_;
    const std::vector<double> paces_;
    std::vector<double> free_s_;
    std::map<Job, double> end_s_;
    /// Of each job that has been met in an agenda, the one before it.
    std::map<Job, std::optional<Job>> previous_;
    std::vector<std::size_t> position_;          // by processor, how far its agenda has been read
    std::vector<std::optional<Job>> last_read_;  // by processor
};

}  // namespace parapipe
