#pragma once

#include "execution/frames.hpp"
#include "execution/semaphore.hpp"
#include "execution/spin_mutex.hpp"
#include "strategies/engine.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace parapipe {

/// Threads that do what a strategy decides: each asks it when it has ended something, and gives the others what
/// they are to do. Whoever feeds it admits frames.
class Pool {
public:
    /// @param under_way So many frames may be on their way.
    /// @param spin How long a processor waits without sleeping.
    Pool(const Work &work, std::unique_ptr<Strategy> strategy, std::size_t frames, std::size_t under_way,
         std::chrono::nanoseconds spin);

    using RunJob = std::function<void(const Job &job)>;

    /// Runs a processor's jobs until all are done.
    /// @throws Closed if another one has failed.
    void work(ProcessorId processor, const RunJob &run);
    /// Admits frames, as they are due and as long as few wait, until there are no more.
    /// @param load Brings the inputs of a frame.
    void feed(Frames &frames, const std::function<void(std::size_t frame)> &load);
    /// Ends all waiting.
    void close();

private:
    double now_s() const { return std::chrono::duration<double>(Frames::Clock::now() - start_).count(); }
    std::optional<Job> end_and_begin(ProcessorId processor);
    void decide(ProcessorId asks);
    void count_frame(std::size_t frame);
    void finish_if_done();

    const Work &work_;
    const Frames::Clock::time_point start_ = Frames::Clock::now();
    SpinMutex mutex_;  // guards all but the semaphores
    Engine engine_;
    std::vector<std::optional<Job>> given_;  // by processor, what it is yet to begin
    std::vector<std::size_t> tasks_left_;    // by frame
    FrameSet over_;
    FrameSet begun_;
    std::optional<std::size_t> fed_;  // so many frames there are
    std::deque<Semaphore> wakes_;     // by processor
    Semaphore may_wait_;              // so many more frames may be admitted of which nothing has begun
    Semaphore rooms_;                 // so many more frames may be on their way
};

}  // namespace parapipe
