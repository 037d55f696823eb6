#pragma once

#include "execution/frames.hpp"
#include "execution/semaphore.hpp"
#include "execution/spin_mutex.hpp"
#include "strategies/engine.hpp"

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace parapipe {

/// Threads that do what a strategy decides: each asks it when it has ended something, and gives the others what
/// they are to do. Who has nothing to do admits frames.
class Pool {
public:
    /// What brings the inputs of a frame.
    using Load = std::function<void(std::size_t frame)>;
    /// Runs a job on the processor that asks.
    using RunJob = std::function<void(const Job &job)>;

    /// @param under_way So many frames may be on their way.
    /// @param spin How long a processor waits without sleeping.
    Pool(const Work &work, std::unique_ptr<Strategy> strategy, Frames &frames, std::size_t under_way,
         std::chrono::nanoseconds spin, Load load);

    /// Runs a processor's jobs until all are done. A processor that has none, or sees another one that has none,
    /// admits the next frame if that is due and there is room: nobody has to wake up for it.
    /// @throws Closed if another one has failed.
    void work(ProcessorId processor, const RunJob &run);
    /// Admits the first frames; all of them when they are due, if they come at a pace.
    void feed();
    /// Ends all waiting.
    void close();

private:
    double now_s() const { return std::chrono::duration<double>(Frames::Clock::now() - start_).count(); }
    std::optional<Job> end_and_begin(ProcessorId processor);
    bool admit_next(ProcessorId by);
    bool is_someone_free(ProcessorId asks) const { return !given_[asks] || !engine_.state().free.empty(); }
    bool has_room() const;
    void decide(ProcessorId asks);
    void count_frame(std::size_t frame);
    void end_at(std::size_t frame);
    bool is_done() const { return fed_ && over_.below >= *fed_; }
    void finish_if_done();
    bool wait(ProcessorId processor);

    const Work &work_;
    Frames &frames_;
    const Load load_;
    const std::size_t under_way_;
    const Frames::Clock::time_point start_ = Frames::Clock::now();
    SpinMutex mutex_;  // guards all but the semaphores
    Engine engine_;
    std::vector<std::optional<Job>> given_;  // by processor, what it is yet to begin
    std::vector<std::size_t> tasks_left_;    // by frame
    FrameSet over_;
    FrameSet begun_;
    std::size_t next_ = 0;            // frame to be admitted
    std::size_t number_over_ = 0;     // of frames
    std::size_t number_begun_ = 0;
    bool admitting_ = false;
    std::optional<std::size_t> fed_;  // so many frames there are
    std::deque<Semaphore> wakes_;     // by processor
    std::atomic<double> ask_s_;       // when the strategy wants to be asked again
    Semaphore admissions_{0};         // of frames that come at a pace
};

}  // namespace parapipe
