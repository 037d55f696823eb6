#include "strategies/engine.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace parapipe {

Engine::Engine(const Work &work, std::unique_ptr<Strategy> strategy, std::size_t frames)
    : work_(work), strategy_(std::move(strategy)), state_(work, strategy_->follows_plan(), frames) {}

void Engine::admit(double now_s) {
    state_.now_s = now_s;
    const auto frame = state_.admitted++;
    for (const TaskId task : work_.first) {
        count_down({task, frame}, kNone);
    }
}

std::vector<ProcessorId> Engine::decide(double now_s) {
    state_.now_s = now_s;
    state_.ask_s = std::numeric_limits<double>::infinity();
    auto before = kNone;
    while (!state_.free.empty() && !state_.ready.empty() && state_.assigned.size() != before) {
        before = state_.assigned.size();
        strategy_->schedule(state_);
    }
    return std::exchange(state_.assigned, {});
}

double Engine::begin_s(ProcessorId processor) {
    double begin = state_.now_s;
    if (!state_.links.moves) {
        return begin;
    }
    const Job job = state_.running[processor]->job;
    for (const auto tensor : work_.reads[job.task]) {
        const auto found = state_.places.find({tensor, job.frame});
        if (found == state_.places.end() || found->second.processor == processor) {
            continue;
        }
        auto &place = found->second;
        if (place.came_s.count(processor) == 0) {
            const double moved = work_.tensors[tensor].moved_s[place.processor][processor];
            const double sent = state_.sent_s(tensor, job, processor);
            const double there = state_.there_s(tensor, job, processor);
            place.came_s[processor] = {there, std::max(state_.now_s, sent + moved)};
        }
        begin = std::max(begin, place.came_s[processor].second);
    }
    return begin;
}

void Engine::end(ProcessorId processor, double now_s) {
    const Running running = *state_.running[processor];
    const auto [task, frame] = running.job;
    state_.now_s = now_s;
    state_.running[processor].reset();
    state_.free.insert(state_.free.begin(), processor);
    state_.paces[processor].add(now_s - running.begin_s, running.time_s());
    if (state_.links.moves) {
        update_places(running.job, processor, now_s);
    }
    for (const TaskId reader : state_.links.readers[task]) {
        count_down({reader, frame}, processor);
    }
    auto &ended = state_.ended[task];
    const auto before = ended.below;
    ended.add(frame);
    for (const auto &[other, slots] : state_.links.holds[task]) {
        for (auto each = before; each < ended.below; ++each) {
            count_down({other, each + slots}, processor);
        }
    }
    state_.last[processor] = running.job;
}

/// Notes where what a job has made is, and forgets what nobody will read again.
void Engine::update_places(const Job &job, ProcessorId processor, double now_s) {
    for (const auto tensor : state_.links.makes[job.task]) {
        state_.places[{tensor, job.frame}] = {processor, now_s, state_.links.read_by[tensor].size(), {}};
    }
    for (const auto tensor : work_.reads[job.task]) {
        const auto place = state_.places.find({tensor, job.frame});
        if (--place->second.readers == 0) {
            state_.places.erase(place);
        }
    }
}

/// Counts one thing less that a job waits for; it is ready if that was the last.
void Engine::count_down(const Job &job, ProcessorId by) {
    auto &left = state_.left;
    const auto found = left.find(job);
    const auto count = found == left.end() ? state_.waits_of(job) : found->second;
    if (count > 1) {
        left[job] = count - 1;
        return;
    }
    if (found != left.end()) {
        left.erase(found);
    }
    if (job.frame < state_.frames) {
        state_.ready[job] = {by, state_.now_s};
    }
}

void Engine::end_before(std::size_t frames) {
    state_.frames = std::min(state_.frames, frames);
    for (auto each = state_.ready.begin(); each != state_.ready.end();) {
        each = each->first.frame >= state_.frames ? state_.ready.erase(each) : std::next(each);
    }
}

bool Engine::is_all_begun() const {
    return std::all_of(state_.begun.begin(), state_.begun.end(),
                       [this](const FrameSet &begun) { return begun.below >= state_.frames; });
}

}  // namespace parapipe
