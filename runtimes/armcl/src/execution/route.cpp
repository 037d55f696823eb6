#include "execution/route.hpp"

#include <algorithm>
#include <set>

namespace parapipe {

std::vector<bool> shared_transfers(const Plan &plan, const std::vector<Padding> &padding) {
    const auto places = plan.places();
    std::vector<std::set<ProcessorId>> readers(plan.tensors.size());
    for (OperatorId v = 0; v < plan.operators.size(); ++v) {
        for (const TensorId t : plan.operators[v].inputs) {
            if (t != kNone) {
                readers[t].insert(places[v]);
            }
        }
    }
    const auto on_cpu = [&plan](ProcessorId p) { return plan.processors[p].backend != BackendKind::opencl; };
    std::vector<bool> shared(plan.transfers.size());
    std::set<TensorId> taken;
    for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
        const auto &transfer = plan.transfers[i];
        const bool alone = readers[transfer.tensor].size() == 1;
        const bool harmless = padding[i].none() && on_cpu(transfer.source) && on_cpu(transfer.target);
        // The source's tensor lies in one place.
        shared[i] = (alone || harmless) && taken.insert(transfer.tensor).second;
    }
    return shared;
}

}  // namespace parapipe
