#include "execution/turns.hpp"

#include <algorithm>
#include <map>

namespace parapipe {
namespace {

std::size_t position_of(TensorId tensor, const std::vector<TensorId> &tensors) {
    const auto found = std::find(tensors.begin(), tensors.end(), tensor);
    return found == tensors.end() ? kNone : static_cast<std::size_t>(found - tensors.begin());
}

}  // namespace

std::vector<Turn> turns_of(const Plan &plan, ProcessorId processor, std::vector<Route> &routes) {
    std::map<TensorId, Route *> arriving;
    std::map<TensorId, std::vector<Route *>> leaving;
    for (auto &route : routes) {
        if (route.transfer.target == processor) {
            arriving.emplace(route.transfer.tensor, &route);
        }
        if (route.transfer.source == processor) {
            leaving[route.transfer.tensor].push_back(&route);
        }
    }
    std::vector<Turn> turns;
    std::map<TensorId, std::size_t> first;
    std::map<TensorId, std::size_t> last;
    for (const OperatorId v : plan.processors[processor].operators) {
        const auto &op = plan.operators[v];
        for (const TensorId t : op.inputs) {
            if (t != kNone) {
                first.emplace(t, turns.size());
                last[t] = turns.size();
            }
        }
        Turn turn;
        turn.op = v;
        turn.result = position_of(op.output, plan.outputs);
        turn.sends = leaving[op.output];
        turns.push_back(std::move(turn));
    }
    for (const auto &[tensor, position] : first) {
        if (const auto found = arriving.find(tensor); found != arriving.end()) {
            turns[position].arrivals.push_back(found->second);
            turns[last[tensor]].departures.push_back(found->second);
        } else if (const auto input = position_of(tensor, plan.inputs); input != kNone) {
            turns[position].loads.push_back(input);
        }
    }
    return turns;
}

}  // namespace parapipe
