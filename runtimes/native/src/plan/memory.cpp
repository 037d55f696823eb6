#include "plan/memory.hpp"

#include "error.hpp"

#include <unistd.h>

#include <set>

namespace parapipe {

std::uint64_t memory_bytes(const Plan &plan) {
    std::uint64_t bytes = plan.weights_size_bytes;
    if (plan.arena) {
        for (const auto &memory : plan.arena->memories) {
            bytes += memory.size_bytes;
        }
        return bytes;
    }
    for (const auto &processor : plan.processors) {
        std::set<TensorId> tensors;
        for (const OperatorId v : processor.operators) {
            const auto &op = plan.operators[v];
            tensors.insert(op.output);
            tensors.insert(op.inputs.begin(), op.inputs.end());
        }
        tensors.erase(kNone);
        for (const TensorId t : tensors) {
            bytes += plan.tensors[t].size_bytes() * (plan.tensors[t].constant() ? 1 : processor.turns());
        }
    }
    for (const auto &transfer : plan.transfers) {
        bytes += (transfer.queue_depth - 1) * plan.tensors[transfer.tensor].size_bytes();
    }
    return bytes;
}

void check_memory(const Plan &plan, std::uint64_t available_bytes) {
    const auto bytes = memory_bytes(plan);
    if (bytes > available_bytes) {
        throw Error(text_of("plan.json: the plan needs ", bytes >> 20, " MiB or more, and this machine has ",
                            available_bytes >> 20));
    }
}

std::uint64_t memory_here_bytes() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
}

}  // namespace parapipe
