#include "execution/pool.hpp"

#include <algorithm>
#include <utility>

namespace parapipe {
namespace {

constexpr std::int64_t kWaiting = 2;  // so many frames are admitted of which nothing has begun

}  // namespace

Pool::Pool(const Work &work, std::unique_ptr<Strategy> strategy, std::size_t frames, std::size_t under_way,
           std::chrono::nanoseconds spin)
    : work_(work), engine_(work, std::move(strategy), frames), given_(work.processors), tasks_left_(frames, work.tasks()),
      may_wait_(kWaiting), rooms_(static_cast<std::int64_t>(under_way)) {
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
        }
        if (!job) {
            return;  // all is done
        }
        while (job) {
            run(*job);
            job = end_and_begin(processor);
        }
    }
}

std::optional<Job> Pool::end_and_begin(ProcessorId processor) {
    const std::lock_guard<SpinMutex> lock(mutex_);
    const auto frame = engine_.state().running[processor]->job.frame;
    engine_.end(processor, now_s());
    count_frame(frame);
    decide(processor);
    finish_if_done();
    return std::exchange(given_[processor], std::nullopt);
}

void Pool::count_frame(std::size_t frame) {
    if (--tasks_left_[frame] == 0) {
        const auto before = over_.below;
        over_.add(frame);
        for (auto each = before; each < over_.below; ++each) {
            rooms_.release();
        }
    }
}

/// Asks the strategy; wakes those that are given something, but for who asks.
void Pool::decide(ProcessorId asks) {
    for (const auto p : engine_.decide(now_s())) {
        const Job job = engine_.state().running[p]->job;
        given_[p] = job;
        if (!begun_.contains(job.frame)) {
            begun_.add(job.frame);
            may_wait_.release();
        }
        if (p != asks) {
            wakes_[p].release();
        }
    }
}

void Pool::finish_if_done() {
    if (fed_ && over_.below >= *fed_) {
        for (auto &wake : wakes_) {
            wake.release();
        }
    }
}

void Pool::feed(Frames &frames, const std::function<void(std::size_t frame)> &load) {
    std::size_t frame = 0;
    for (; frame < tasks_left_.size(); ++frame) {
        may_wait_.acquire();
        rooms_.acquire();
        if (!frames.admit(frame)) {
            break;
        }
        load(frame);
        const std::lock_guard<SpinMutex> lock(mutex_);
        engine_.admit(now_s());
        decide(kNone);
    }
    const std::lock_guard<SpinMutex> lock(mutex_);
    fed_ = frame;
    engine_.end_before(frame);
    finish_if_done();
}

void Pool::close() {
    may_wait_.close();
    rooms_.close();
    for (auto &wake : wakes_) {
        wake.close();
    }
}

}  // namespace parapipe
