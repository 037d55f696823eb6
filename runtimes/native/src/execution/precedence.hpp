#pragma once

#include "execution/buffers.hpp"
#include "plan/plan.hpp"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace parapipe {

/// When a processor takes an operator for a frame: so many rounds behind the frame's first operators
/// there, and at this position of the round.
using Moment = std::pair<std::size_t, std::size_t>;

/// The moment of each operator.
std::vector<Moment> moments_of(const Plan &plan);

/// How many frames a processor has between two moments at once: each begins at the first one and is
/// kept until the last one is over.
std::size_t frames_between(const Moment &first, const Moment &last);

/// The operator that is the first on a processor to read a tensor, in the life of a frame; kNone if none does.
OperatorId first_reader(const Plan &plan, const std::vector<Moment> &moments, const Instance &instance);

/// What has ended before something else begins in any case, since processors take their turns in order and wait
/// for what they read.
class Precedence {
public:
    explicit Precedence(const Plan &plan);

    /// The least number of frames, 1 or more, after which an operator begins only once another one has ended;
    /// none if it never waits for it.
    std::optional<std::size_t> frames_apart(OperatorId first, OperatorId then) const;

private:
    using Earliest = std::vector<std::optional<Moment>>;  // by processor

    const Earliest &earliest_after(OperatorId v);

    const Plan &plan_;
    const std::vector<ProcessorId> places_;
    const std::vector<Moment> moments_;
    std::vector<std::vector<OperatorId>> next_;  // what waits for an operator, of the same frame
    /// The first turn of each processor, for the same frame, that begins once an operator has ended.
    std::vector<Earliest> earliest_;
};

}  // namespace parapipe
