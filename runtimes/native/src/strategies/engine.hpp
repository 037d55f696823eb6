#pragma once

#include "strategies/state.hpp"
#include "strategies/strategy.hpp"

#include <memory>
#include <vector>

namespace parapipe {

/// Keeps dependencies and room, and asks a strategy what free processors do. It knows no clock: who runs jobs,
/// for real or in a simulation, tells it what has happened and when. A job waits for a number of things, and is
/// ready when all have happened.
class Engine {
public:
    Engine(const Work &work, std::unique_ptr<Strategy> strategy, std::size_t frames);

    State &state() { return state_; }
    const State &state() const { return state_; }
    bool asks_again() const { return strategy_->asks_again(); }

    /// Says that the next frame has been admitted.
    void admit(double now_s);
    /// Asks the strategy until it gives nobody anything more; returns who was given something.
    std::vector<ProcessorId> decide(double now_s);
    /// When a processor begins what it was just given: once all is there.
    double begin_s(ProcessorId processor);
    /// Says that a processor has ended what it was doing.
    void end(ProcessorId processor, double now_s);
    /// Says how many frames there are: no other one begins.
    void end_before(std::size_t frames);
    /// Whether there is nothing left that could begin.
    bool is_all_begun() const;

private:
    void count_down(const Job &job, ProcessorId by);
    void update_places(const Job &job, ProcessorId processor, double now_s);

    const Work &work_;
    std::unique_ptr<Strategy> strategy_;
    State state_;
};

}  // namespace parapipe
