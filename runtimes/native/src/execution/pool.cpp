#include "execution/pool.hpp"

#include <algorithm>
#include <utility>

namespace parapipe {
namespace {

constexpr std::size_t kWaiting = 2;  // so many frames are admitted of which nothing has begun

}  // namespace

Pool::Pool(const Work &work, std::unique_ptr<Strategy> strategy, Frames &frames, std::size_t under_way,
           std::chrono::nanoseconds spin, Load load)
    : work_(work), frames_(frames), load_(std::move(load)), under_way_(under_way),
      engine_(work, std::move(strategy), frames.count()), given_(work.processors), tasks_left_(frames.count(), work.tasks()) {
    for (ProcessorId p = 0; p < work.processors; ++p) {
        wakes_.emplace_back(0, spin);
    }
}

void Pool::work(ProcessorId processor, const RunJob &run) {
    while (true) {
        wakes_[processor].acquire();
        std::optional<Job> job;
        {
            const std::lock_guard<SpinMutex> lock(mutex_);
            job = std::exchange(given_[processor], std::nullopt);
            if (!job && is_done()) {
                return;
            }
        }
        while (job) {
            run(*job);
            job = end_and_begin(processor);
        }
    }
}

std::optional<Job> Pool::end_and_begin(ProcessorId processor) {
    {
        const std::lock_guard<SpinMutex> lock(mutex_);
        const auto frame = engine_.state().running[processor]->job.frame;
        engine_.end(processor, now_s());
        count_frame(frame);
        decide(processor);
        finish_if_done();
        if (!has_room() || !is_someone_free(processor)) {
            return std::exchange(given_[processor], std::nullopt);
        }
    }
    while (admit_next(processor)) {
    }
    const std::lock_guard<SpinMutex> lock(mutex_);
    return std::exchange(given_[processor], std::nullopt);
}

bool Pool::has_room() const {
    return !fed_ && !admitting_ && next_ < number_over_ + under_way_ && next_ < number_begun_ + kWaiting &&
           frames_.is_due(next_);
}

/// Admits the next frame, if it is due, there is room and a processor is free.
/// @param by Who asks, and need not be woken; kNone if that is no processor.
bool Pool::admit_next(ProcessorId by) {
    {
        const std::lock_guard<SpinMutex> lock(mutex_);
        if (!has_room() || (by != kNone && !is_someone_free(by))) {
            return false;
        }
        admitting_ = true;
    }
    const bool is_admitted = frames_.admit(next_);
    if (is_admitted) {
        load_(next_);
    }
    {
        const std::lock_guard<SpinMutex> lock(mutex_);
        admitting_ = false;
        if (is_admitted) {
            ++next_;
            engine_.admit(now_s());
            decide(by);
        }
        if (!is_admitted || next_ == tasks_left_.size()) {
            end_at(next_);
        }
    }
    if (by != kNone && frames_.paced()) {
        admissions_.release();
    }
    return is_admitted;
}

void Pool::count_frame(std::size_t frame) {
    if (--tasks_left_[frame] == 0) {
        over_.add(frame);
        number_over_ = over_.below;
    }
}

/// Asks the strategy; wakes those that are given something, but for who asks.
void Pool::decide(ProcessorId asks) {
    for (const auto p : engine_.decide(now_s())) {
        const Job job = engine_.state().running[p]->job;
        given_[p] = job;
        if (!begun_.contains(job.frame)) {
            begun_.add(job.frame);
            ++number_begun_;
        }
        if (p != asks) {
            wakes_[p].release();
        }
    }
}

/// Says that there are so many frames.
void Pool::end_at(std::size_t frame) {
    fed_ = frame;
    engine_.end_before(frame);
    finish_if_done();
}

void Pool::finish_if_done() {
    if (is_done()) {
        for (auto &wake : wakes_) {
            wake.release();
        }
    }
}

void Pool::feed() {
    while (true) {
        std::size_t frame = 0;
        {
            const std::lock_guard<SpinMutex> lock(mutex_);
            if (fed_) {
                return;
            }
            frame = next_;
        }
        frames_.wait_until_due(frame);
        if (admit_next(kNone)) {
            continue;
        }
        {
            const std::lock_guard<SpinMutex> lock(mutex_);
            if (fed_ || !frames_.paced()) {
                return;  // who makes room admits the next one
            }
        }
        admissions_.acquire();
    }
}

void Pool::close() {
    admissions_.close();
    for (auto &wake : wakes_) {
        wake.close();
    }
}

}  // namespace parapipe
