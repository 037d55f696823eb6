#include "strategies/outlook.hpp"

#include <algorithm>
#include <limits>

namespace parapipe {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

Outlook::Outlook(State &state, std::vector<double> paces)
    : state_(state), paces_(std::move(paces)), position_(state.running.size()), last_read_(state.running.size()) {
    for (ProcessorId p = 0; p < state.running.size(); ++p) {
        const auto &each = state.running[p];
        free_s_.push_back(each ? std::max(state.now_s, each->begin_s + paces_[p] * each->time_s()) : state.now_s);
        state.planned_next(p);  // forgets what has begun
    }
}

/// Without recursion: jobs may wait for each other in long chains, or in a circle if queues are too short.
double Outlook::end_s(const Job &job) {
    std::vector<Job> left{job};
    std::set<Job> opened;
    while (!left.empty()) {
        const Job at = left.back();
        if (end_s_.count(at) > 0) {
            left.pop_back();
            continue;
        }
        opened.insert(at);
        const auto before = predecessors(at);
        bool missing = false;
        for (const auto &each : before) {
            if (end_s_.count(each) == 0 && opened.count(each) == 0) {
                left.push_back(each);
                missing = true;
            }
        }
        if (!missing) {
            end_s_[at] = least_begin_s(at, before) + time_s(at);
        }
    }
    return end_s_.at(job);
}

double Outlook::time_s(const Job &job) const {
    const auto processor = state_.planned(job);
    return paces_[processor] * state_.seconds(job, processor);
}

/// What waits for itself, since queues are too short, never ends.
double Outlook::end_of(const Job &job) const {
    const auto found = end_s_.find(job);
    return found == end_s_.end() ? kNever : found->second;
}

double Outlook::least_begin_s(const Job &job, const std::vector<Job> &before) const {
    const auto processor = state_.planned(job);
    double begin = free_s_[processor];
    for (const auto &each : before) {
        begin = std::max(begin, end_of(each));
    }
    for (const auto tensor : state_.work.reads[job.task]) {
        const Job maker{state_.work.tensors[tensor].producer, job.frame};
        if (!state_.is_over(maker)) {
            const auto [source, end] = where_it_ends(maker);
            begin = std::max(begin, end + state_.work.tensors[tensor].moved_s[source][processor]);
        } else if (state_.links.moves) {
            begin = std::max(begin, state_.there_s(tensor, job, processor));
        }
    }
    for (const auto &reader : makes_room(job)) {
        if (!state_.is_over(reader)) {
            begin = std::max(begin, where_it_ends(reader).second);
        }
    }
    return begin;
}

std::pair<ProcessorId, double> Outlook::where_it_ends(const Job &job) const {
    for (ProcessorId p = 0; p < state_.running.size(); ++p) {
        if (state_.running[p] && state_.running[p]->job == job) {
            return {p, free_s_[p]};
        }
    }
    return {state_.planned(job), end_of(job)};
}

std::vector<Job> Outlook::makes_room(const Job &job) const {
    std::vector<Job> jobs;
    for (const auto &[task, slots] : state_.links.waits_for_room[job.task]) {
        if (job.frame >= slots) {
            jobs.push_back({task, job.frame - slots});
        }
    }
    return jobs;
}

/// What nobody has begun and what a job waits for in the plan.
std::vector<Job> Outlook::predecessors(const Job &job) {
    std::vector<Job> found;
    for (const TaskId task : state_.links.producers[job.task]) {
        found.push_back({task, job.frame});
    }
    const auto room = makes_room(job);
    found.insert(found.end(), room.begin(), room.end());
    found.erase(std::remove_if(found.begin(), found.end(), [this](const Job &each) { return state_.is_begun(each); }),
                found.end());
    if (const auto last = previous(job)) {
        found.push_back(*last);
    }
    return found;
}

/// What the plan has its processor do before a job.
std::optional<Job> Outlook::previous(const Job &job) {
    const auto p = state_.planned(job);
    while (previous_.count(job) == 0) {
        const auto next = state_.planned_at(p, position_[p]++);
        if (!next) {
            return std::nullopt;
        }
        if (!state_.is_begun(*next) && next->frame < state_.frames) {
            previous_[*next] = last_read_[p];
            last_read_[p] = next;
        }
    }
    return previous_.at(job);
}

}  // namespace parapipe
