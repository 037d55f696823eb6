#pragma once

#include "strategies/state.hpp"

#include <memory>
#include <string>
#include <vector>

namespace parapipe {

/// Decides what processors do next; one is made for each run. It is asked whenever a processor is free and
/// something has happened, and again until it gives nobody anything more. The rules are those of
/// parapipe/strategies, and so are the names.
class Strategy {
public:
    virtual ~Strategy() = default;
    /// Whether the plan's processor of a task gets what the task reads as soon as it is made.
    virtual bool follows_plan() const = 0;
    /// Whether it may want to be asked again though nothing has happened.
    virtual bool asks_again() const { return false; }
    /// Gives free processors something to do by `State::execute`, or lets them wait.
    virtual void schedule(State &state) = 0;
};

/// @throws Error if there is none of that name.
std::unique_ptr<Strategy> make_strategy(const std::string &name, const Work &work);

/// Those that there are.
std::vector<std::string> strategy_names();

std::unique_ptr<Strategy> make_follow(const Work &work);
std::unique_ptr<Strategy> make_ready_pool(const Work &work);
std::unique_ptr<Strategy> make_steal(const Work &work);
std::unique_ptr<Strategy> make_streams(const Work &work);

}  // namespace parapipe
