#include "execution/pool.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace parapipe {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kWaiting = 2;  // so many frames are admitted of which nothing has begun

}  // namespace

Pool::Pool(const Work &work, std::unique_ptr<Strategy> strategy, Frames &frames, std::size_t under_way,
           std::chrono::nanoseconds spin, Load load)
    : work_(work), frames_(frames), load_(std::move(load)), under_way_(under_way),
      engine_(work, std::move(strategy), frames.count()), given_(work.processors), tasks_left_(frames.count(), work.tasks()),
      ask_s_(kNever) {
    for (ProcessorId p = 0; p < work.processors; ++p) {
        wakes_.emplace_back(0, spin);
    }
}

void Pool::work(ProcessorId processor, const RunJob &run) {
    while (true) {
        const bool is_woken = wait(processor);
        std::optional<Job> job;
        {
            const std::lock_guard<SpinMutex> lock(mutex_);
            if (!is_woken && !is_done()) {
                decide(processor);
            }
            job = std::exchange(given_[processor], std::nullopt);
            if (!job && is_done()) {
                return;  // whether it was woken or not
            }
        }
        while (job) {
            run(*job);
            job = end_and_begin(processor);
        }
    }
}

/// Waits until a processor is woken, or the strategy wants to be asked again; returns whether it was woken.
bool Pool::wait(ProcessorId processor) {
    if (!engine_.asks_again()) {
        wakes_[processor].acquire();
        return true;
    }
    return wakes_[processor].acquire_until([this] {
        const double ask_s = ask_s_.load(std::memory_order_relaxed);
        return ask_s < kNever ? start_ + std::chrono::duration_cast<Frames::Clock::duration>(
                                             std::chrono::duration<double>(ask_s))
                              : Frames::Clock::time_point::max();
    });
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
    const auto processors = engine_.decide(now_s());
    ask_s_.store(engine_.state().ask_s, std::memory_order_relaxed);
    for (const auto p : processors) {
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
