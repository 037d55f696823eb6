#include "plan/plan.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace parapipe {

std::size_t elements_of(const Shape &shape) {
    return static_cast<std::size_t>(
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

std::string text_of_shape(const Shape &shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        text += (i ? ", " : "") + std::to_string(shape[i]);
    }
    return text + "]";
}

std::vector<ProcessorId> Plan::places() const {
    std::vector<ProcessorId> places(operators.size(), kNone);
    for (ProcessorId p = 0; p < processors.size(); ++p) {
        for (const OperatorId v : processors[p].operators) {
            places[v] = p;
        }
    }
    return places;
}

std::vector<OperatorId> Plan::makers() const {
    std::vector<OperatorId> makers(tensors.size(), kNone);
    for (OperatorId v = 0; v < operators.size(); ++v) {
        makers[operators[v].output] = v;
    }
    return makers;
}

bool Plan::replicated() const {
    return std::any_of(processors.begin(), processors.end(), [](const auto &each) { return each.is_replica(); });
}

Plan on_one_processor(Plan plan) {
    plan.processors.resize(1);
    auto &processor = plan.processors.front();
    processor.replicas.clear();
    processor.first = kNone;
    processor.stage = 0;
    processor.operators.resize(plan.operators.size());
    std::iota(processor.operators.begin(), processor.operators.end(), OperatorId{0});
    processor.lags.assign(plan.operators.size(), 0);
    plan.stages = 1;
    plan.transfers.clear();
    plan.arena.reset();
    return plan;
}

}  // namespace parapipe
