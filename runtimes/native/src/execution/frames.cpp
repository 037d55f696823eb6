#include "execution/frames.hpp"

#include <algorithm>
#include <thread>

namespace parapipe {

Frames::Frames(std::size_t count, double period_s, bool timed) : period_(period_s), count_(count), timed_(timed) {}

void Frames::restart(std::size_t count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    count_ = count;
    begun_ = 0;
    stopped_ = false;
    times_.clear();
}

void Frames::start() {
    start_ = Clock::now();
}

void Frames::wait_until_due(std::size_t frame) const {
    if (paced()) {
        std::this_thread::sleep_until(due(frame));
    }
}

bool Frames::admit(std::size_t frame) {
    wait_until_due(frame);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (frame >= (stopped_ ? begun_ : count_)) {
        return false;
    }
    begun_ = std::max(begun_, frame + 1);
    times_.resize(timed_ ? begun_ : 0);
    return true;
}

void Frames::note_begin(std::size_t frame) {
    if (!timed_) {
        return;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    times_[frame].begin = std::min(times_[frame].begin, Clock::now());
}

void Frames::note_end(std::size_t frame) {
    if (!timed_) {
        return;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    times_[frame].end = std::max(times_[frame].end, Clock::now());
}

void Frames::stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
}

bool Frames::stopped() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stopped_;
}

std::size_t Frames::count() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stopped_ ? begun_ : count_;
}

}  // namespace parapipe
