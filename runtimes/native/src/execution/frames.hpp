#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

namespace parapipe {

/// Which frames are run, and when each began and ended.
class Frames {
public:
    using Clock = std::chrono::steady_clock;

    struct Times {
        Clock::time_point begin = Clock::time_point::max();
        Clock::time_point end = Clock::time_point::min();
    };

    /// @param period_s Seconds between admissions; 0 to admit a frame as soon as it can start.
    /// @param timed Whether to note when frames and operators begin and end.
    Frames(std::size_t count, double period_s, bool timed = true);
    /// Begins with frame 0 again; nothing may be running.
    void restart(std::size_t count);
    bool timed() const { return timed_; }

    /// Sets the time that periods are counted from.
    void start();
    double since_start_s(Clock::time_point time) const { return std::chrono::duration<double>(time - start_).count(); }
    /// Says whether a processor may begin a frame, once that is due. After `stop` only frames go on that some
    /// processor has begun.
    bool admit(std::size_t frame);
    /// Whether frames come at a pace, and not as soon as they can start.
    bool paced() const { return period_.count() > 0; }
    bool is_due(std::size_t frame) const { return !paced() || Clock::now() >= due(frame); }
    void wait_until_due(std::size_t frame) const;
    /// Notes that an operator of a frame starts; the first one counts.
    void note_begin(std::size_t frame);
    /// Notes that an output of a frame is there.
    void note_end(std::size_t frame);
    /// Lets no further frame begin.
    void stop();
    bool stopped() const;
    /// Frames that are run or will be.
    std::size_t count() const;

    /// To be read when all is done.
    const std::vector<Times> &times() const { return times_; }

private:
    Clock::time_point due(std::size_t frame) const {
        return start_ + std::chrono::duration_cast<Clock::duration>(frame * period_);
    }

    mutable std::mutex mutex_;
    Clock::time_point start_;
    std::chrono::duration<double> period_;
    std::size_t count_;
    const bool timed_;
    std::size_t begun_ = 0;
    bool stopped_ = false;
    std::vector<Times> times_;
};

}  // namespace parapipe
