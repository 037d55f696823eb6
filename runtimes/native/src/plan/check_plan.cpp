#include "plan/check_plan.hpp"

#include "error.hpp"
#include "execution/orders.hpp"
#include "operators/catalogue.hpp"
#include "operators/support.hpp"
#include "plan/arena.hpp"
#include "plan/waits.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace parapipe {
namespace {

template <class... Parts>
[[noreturn]] void refuse(const Parts &...parts) {
    throw Error("plan.json: " + text_of(parts...));
}

void check_constants(const Plan &plan) {
    for (const auto &tensor : plan.tensors) {
        if (tensor.constant() && *tensor.offset + tensor.size_bytes() > plan.weights_size_bytes) {
            refuse("constant '", tensor.name, "' reaches beyond the end of the weights file");
        }
    }
}

/// Every activation is a graph input or made once, before it is read.
void check_order(const Plan &plan) {
    std::vector<bool> known(plan.tensors.size());
    for (TensorId t = 0; t < plan.tensors.size(); ++t) {
        known[t] = plan.tensors[t].constant();
    }
    for (const TensorId t : plan.inputs) {
        if (known[t]) {
            refuse("graph input '", plan.tensors[t].name, "' is a constant, or is listed twice");
        }
        known[t] = true;
    }
    for (const auto &op : plan.operators) {
        for (const TensorId t : op.inputs) {
            if (t != kNone && !known[t]) {
                refuse("operator '", op.id, "' reads '", plan.tensors[t].name, "', which is not made before it");
            }
        }
        if (known[op.output]) {
            refuse("operator '", op.id, "' makes '", plan.tensors[op.output].name,
                   "', which is a constant, a graph input or made already");
        }
        known[op.output] = true;
    }
    const auto unmade = std::find(known.begin(), known.end(), false);
    if (unmade != known.end()) {
        refuse("no operator makes tensor '", plan.tensors[static_cast<std::size_t>(unmade - known.begin())].name, "'");
    }
}

void check_outputs(const Plan &plan) {
    const auto makers = plan.makers();
    if (plan.outputs.empty()) {
        refuse("outputs is empty, and at least one should be there");
    }
    if (std::set<TensorId>(plan.outputs.begin(), plan.outputs.end()).size() != plan.outputs.size()) {
        refuse("outputs names a tensor twice");
    }
    for (const TensorId t : plan.outputs) {
        if (makers[t] == kNone) {
            refuse("graph output '", plan.tensors[t].name, "' is made by no operator");
        }
    }
}

void check_shapes(const Plan &plan) {
    for (const auto &op : plan.operators) {
        const auto shape = output_shape(op, plan);
        const auto &output = plan.tensors[op.output];
        if (shape != output.shape) {
            refuse("operator '", op.id, "' (", op.type, ") gives the shape ", text_of_shape(shape), " but tensor '",
                   output.name, "' has ", text_of_shape(output.shape));
        }
    }
}

/// Names all operators that their processors' backends cannot compute.
void check_support(const Plan &plan) {
    const auto places = plan.places();
    std::string obstacles;
    for (OperatorId v = 0; v < plan.operators.size(); ++v) {
        const auto &op = plan.operators[v];
        const auto obstacle = obstacle_of(plan, op, plan.processors[places[v]].backend);
        if (!obstacle.empty()) {
            obstacles += text_of(obstacles.empty() ? "" : "; ", "operator '", op.id, "' (", op.type, ") ", obstacle);
        }
    }
    if (!obstacles.empty()) {
        refuse(obstacles);
    }
}

void check_places(const Plan &plan) {
    std::vector<int> times(plan.operators.size());
    std::size_t gpus = 0;
    for (const auto &processor : plan.processors) {
        if (processor.operators.empty() && !processor.is_replica()) {
            refuse("processor '", processor.name, "' runs no operator in any stage");
        }
        gpus += processor.backend == BackendKind::opencl;
        for (const OperatorId v : processor.operators) {
            ++times[v];
        }
    }
    for (OperatorId v = 0; v < plan.operators.size(); ++v) {
        if (times[v] != 1) {
            refuse("operator '", plan.operators[v].id, "' is placed ", times[v], " times, and should be once");
        }
    }
    if (gpus > 1) {
        refuse("two processors are \"opencl\", and the library drives one GPU");
    }
    std::map<std::string, ProcessorId> sources;
    const auto places = plan.places();
    for (OperatorId v = 0; v < plan.operators.size(); ++v) {
        if (sources.emplace(plan.operators[v].source, places[v]).first->second != places[v]) {
            refuse("operators of source '", plan.operators[v].source, "' stand on different processors");
        }
    }
}

/// A processor with replicas has a stage to itself and works on one frame at a time; they are identical to it.
void check_replicas(const Plan &plan) {
    for (const auto &processor : plan.processors) {
        if (processor.replicas.empty()) {
            continue;
        }
        for (const auto &other : plan.processors) {
            if (other.stage == processor.stage && !other.is_replica() && &other != &processor) {
                refuse("processor '", processor.name, "' has replicas, and shares its stage with '", other.name, "'");
            }
        }
        if (std::any_of(processor.lags.begin(), processor.lags.end(), [](std::size_t lag) { return lag > 0; })) {
            refuse("processor '", processor.name, "' has replicas, and operators of several lags");
        }
        if (processor.backend == BackendKind::opencl) {
            refuse("processor '", processor.name, "' has replicas, and ARM Compute Library drives one GPU");
        }
        for (const ProcessorId r : processor.replicas) {
            const auto &replica = plan.processors[r];
            if (replica.backend != processor.backend || replica.threads != processor.threads) {
                refuse("replica '", replica.name, "' is not identical to '", processor.name, "'");
            }
        }
    }
    if (plan.arena && plan.replicated()) {
        refuse("arena is there, and its offsets do not hold for replicas");
    }
}

void check_transfers(const Plan &plan) {
    using Key = std::pair<TensorId, ProcessorId>;
    const auto places = plan.places();
    const auto makers = plan.makers();
    std::set<Key> needed;
    for (OperatorId v = 0; v < plan.operators.size(); ++v) {
        for (const TensorId t : plan.operators[v].inputs) {
            if (t != kNone && makers[t] != kNone && places[makers[t]] != places[v]) {
                needed.emplace(t, places[v]);
            }
        }
    }
    for (const auto &transfer : plan.transfers) {
        const auto &name = plan.tensors[transfer.tensor].name;
        const OperatorId maker = makers[transfer.tensor];
        if (maker == kNone || places[maker] != transfer.source) {
            refuse("transfer of '", name, "' starts at '", plan.processors[transfer.source].name,
                   "', which does not make it");
        }
        if (needed.erase({transfer.tensor, transfer.target}) == 0) {
            refuse("transfer of '", name, "' to '", plan.processors[transfer.target].name,
                   "' is listed twice or not needed there");
        }
    }
    if (!needed.empty()) {
        refuse("there is no transfer of '", plan.tensors[needed.begin()->first].name, "' to '",
               plan.processors[needed.begin()->second].name, "', which reads it");
    }
}

void check_arena(const Plan &plan) {
    if (!plan.arena) {
        return;
    }
    const auto places = plan.places();
    const auto makers = plan.makers();
    std::set<std::pair<TensorId, ProcessorId>> placed;
    for (const auto &place : plan.arena->places) {
        const auto &tensor = plan.tensors[place.tensor];
        const auto &memory = plan.arena->memories[place.memory];
        for (const auto offset : place.offset_bytes) {
            if (offset % static_cast<std::int64_t>(sizeof(float)) != 0) {
                refuse("'", tensor.name, "' lies at ", offset, " of '", memory.name, "', no multiple of 4");
            }
            if (static_cast<std::size_t>(offset) + tensor.size_bytes() > memory.size_bytes) {
                refuse("'", tensor.name, "' reaches beyond the end of the arena of '", memory.name, "'");
            }
        }
        for (const ProcessorId p : place.processors) {
            if (!placed.emplace(place.tensor, p).second) {
                refuse("'", tensor.name, "' has two places for '", plan.processors[p].name, "'");
            }
        }
        const OperatorId maker = makers[place.tensor];
        const bool first = maker == kNone ? writer_of(plan, place) != kNone : places[maker] == place.processors.front();
        if (tensor.constant() || !first) {
            refuse("the place of '", tensor.name, "' begins with a processor that does not make or load it");
        }
    }
}

std::vector<Wait> waits_of(const Plan &plan) {
    const auto makers = plan.makers();
    const auto places = plan.places();
    std::map<std::pair<TensorId, ProcessorId>, std::size_t> slots;
    for (const auto &transfer : plan.transfers) {
        slots[{transfer.tensor, transfer.target}] = transfer.queue_depth;
    }
    std::vector<Wait> waits;
    for (OperatorId v = 0; v < plan.operators.size(); ++v) {
        for (const TensorId t : plan.operators[v].inputs) {
            if (t != kNone && makers[t] != kNone) {
                waits.push_back({makers[t], v, 0});
                if (const auto found = slots.find({t, places[v]}); found != slots.end()) {
                    waits.push_back({v, makers[t], static_cast<std::int64_t>(found->second)});
                }
            }
        }
    }
    for (const auto &processor : plan.processors) {
        const auto count = processor.operators.size();
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t next = (i + 1) % count;
            const auto frames = static_cast<std::int64_t>(processor.lags[i]) -
                                static_cast<std::int64_t>(processor.lags[next]) +
                                (next == 0 ? static_cast<std::int64_t>(processor.turns()) : 0);
            waits.push_back({processor.operators[i], processor.operators[next], frames});
        }
    }
    if (plan.arena) {
        for (const auto &wait : arena_waits(plan, std::vector<bool>(plan.arena->places.size(), true))) {
            waits.push_back({wait.first, wait.then, wait.frames});
        }
    }
    return waits;
}

void check_no_circle(const Plan &plan) {
    const auto found = one_in_circle(waits_of(plan), plan.operators.size());
    if (found != kNone) {
        refuse("operator '", plan.operators[found].id,
               "' would wait for ever: the orders of the processors and the transfers lead in a circle");
    }
}

}  // namespace

void check_plan(const Plan &plan) {
    check_constants(plan);
    check_order(plan);
    check_outputs(plan);
    check_shapes(plan);
    check_places(plan);
    check_replicas(plan);
    check_support(plan);
    check_transfers(plan);
    check_arena(plan);
    check_no_circle(plan);
}

}  // namespace parapipe
