#include "execution/precedence.hpp"

#include <algorithm>

namespace parapipe {

std::vector<Moment> moments_of(const Plan &plan) {
    std::vector<Moment> moments(plan.operators.size());
    for (const auto &processor : plan.processors) {
        for (std::size_t i = 0; i < processor.operators.size(); ++i) {
            moments[processor.operators[i]] = {processor.lags[i], i};
        }
    }
    return moments;
}

std::size_t frames_between(const Moment &first, const Moment &last) {
    return last.first - first.first + (first.second <= last.second ? 1 : 0);
}

OperatorId first_reader(const Plan &plan, const std::vector<Moment> &moments, const Instance &instance) {
    OperatorId first = kNone;
    for (const OperatorId v : plan.processors[instance.processor].operators) {
        const auto &inputs = plan.operators[v].inputs;
        const bool reads = std::find(inputs.begin(), inputs.end(), instance.tensor) != inputs.end();
        if (reads && (first == kNone || moments[v] < moments[first])) {
            first = v;
        }
    }
    return first;
}

Precedence::Precedence(const Plan &plan)
    : plan_(plan), places_(plan.places()), moments_(moments_of(plan)), next_(plan.operators.size()),
      earliest_(plan.operators.size()) {
    for (const auto &processor : plan.processors) {
        auto order = processor.operators;
        std::sort(order.begin(), order.end(), [this](OperatorId a, OperatorId b) { return moments_[a] < moments_[b]; });
        for (std::size_t i = 1; i < order.size(); ++i) {
            next_[order[i - 1]].push_back(order[i]);
        }
    }
    const auto makers = plan.makers();
    for (const auto &transfer : plan.transfers) {
        next_[makers[transfer.tensor]].push_back(first_reader(plan, moments_, {transfer.tensor, transfer.target}));
    }
    for (OperatorId v = 0; v < plan.operators.size(); ++v) {
        earliest_after(v);
    }
}

/// Without recursion: there may be thousands of operators, one behind the other.
const Precedence::Earliest &Precedence::earliest_after(OperatorId v) {
    std::vector<OperatorId> left{v};
    while (!left.empty()) {
        const OperatorId at = left.back();
        const auto missing = std::find_if(next_[at].begin(), next_[at].end(),
                                          [this](OperatorId next) { return earliest_[next].empty(); });
        if (missing != next_[at].end()) {
            left.push_back(*missing);
            continue;
        }
        left.pop_back();
        Earliest earliest(plan_.processors.size());
        earliest[places_[at]] = moments_[at];
        for (const OperatorId next : next_[at]) {
            for (ProcessorId p = 0; p < earliest.size(); ++p) {
                const auto &there = earliest_[next][p];
                if (there && (!earliest[p] || *there < *earliest[p])) {
                    earliest[p] = there;
                }
            }
        }
        earliest_[at] = std::move(earliest);
    }
    return earliest_[v];
}

std::optional<std::size_t> Precedence::frames_apart(OperatorId first, OperatorId then) const {
    const auto &after = earliest_[first][places_[then]];
    if (!after) {
        return std::nullopt;
    }
    const auto [lag, position] = moments_[then];
    const auto rounds = after->first + (after->second < position ? 0 : 1);
    return rounds > lag + 1 ? rounds - lag : 1;
}

}  // namespace parapipe
