#include "program/description.hpp"

#include "error.hpp"
#include "plan/check_plan.hpp"

#include <algorithm>

namespace parapipe {

using Cluster = Description::Cluster;

namespace {

Attributes attributes_of(std::initializer_list<Attribute> listed) {
    Attributes attributes;
    for (const auto &each : listed) {
        attributes.set(each.name, each.value);
    }
    return attributes;
}

}  // namespace

Description::Description(const char *model, const char *platform, double latency_s, double period_s) {
    plan_.model = model;
    plan_.platform = platform;
    plan_.predicted = Predicted{latency_s, period_s, period_s};
}

void Description::stream(const char *name, BackendKind backend, std::vector<int> cores, unsigned threads,
                         std::size_t stage, std::initializer_list<Turn> turns) {
    Processor processor{name, backend, std::move(cores), threads, 0, stage, {}, {}};
    auto least = turns.size() == 0 ? 0 : turns.begin()->lag;
    for (const auto &turn : turns) {
        least = std::min(least, turn.lag);
    }
    for (const auto &turn : turns) {
        if (turn.cluster >= clusters_.size()) {
            throw Error(text_of("stream '", name, "' takes cluster ", turn.cluster, ", which the source does not have"));
        }
        for (const OperatorId v : clusters_[turn.cluster]) {
            processor.operators.push_back(v);
            processor.lags.push_back(turn.lag - least);
        }
    }
    plan_.processors.push_back(std::move(processor));
    plan_.stages = std::max(plan_.stages, stage + 1);
}

TensorId Description::add_tensor(Tensor tensor) {
    if (!tensors_.emplace(tensor.name, plan_.tensors.size()).second) {
        throw Error("tensor '" + tensor.name + "' stands twice in the source of this program");
    }
    plan_.tensors.push_back(std::move(tensor));
    return plan_.tensors.size() - 1;
}

TensorId Description::tensor(const std::string &name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
        throw Error("tensor '" + name + "' is used in the source of this program before it is there");
    }
    return found->second;
}

void Description::constant(const char *name, Shape shape, std::uint64_t offset_bytes) {
    add_tensor({name, std::move(shape), offset_bytes});
}

void Description::input(const char *name, Shape shape) {
    plan_.inputs.push_back(add_tensor({name, std::move(shape), {}}));
}

Cluster Description::cluster() {
    clusters_.emplace_back();
    return Cluster(*this);
}

Cluster &Cluster::op(const char *type, const char *output, Shape shape, std::initializer_list<const char *> inputs,
                     std::initializer_list<Attribute> attributes) {
    auto &plan = description_.plan_;
    Operator made;
    made.id = made.source = output;
    made.type = type;
    for (const std::string name : inputs) {
        made.inputs.push_back(name.empty() ? kNone : description_.tensor(name));
    }
    made.output = description_.add_tensor({output, std::move(shape), {}});
    made.attributes = attributes_of(attributes);
    description_.clusters_.back().push_back(plan.operators.size());
    plan.operators.push_back(std::move(made));
    description_.spans_.emplace_back(0, 0);
    return *this;
}

Cluster &Cluster::then(const char *type, std::initializer_list<Attribute> attributes) {
    description_.plan_.operators.back().activation = Activation{type, attributes_of(attributes)};
    return *this;
}

Cluster &Cluster::of(const char *source) {
    description_.plan_.operators.back().source = source;
    return *this;
}

Cluster &Cluster::during(std::int64_t start, std::int64_t end) {
    description_.spans_.back() = {start, end};
    return *this;
}

void Description::transfer(const char *tensor, ProcessorId from, ProcessorId to, std::size_t queue_depth) {
    transfers_.emplace_back(Transfer{kNone, from, to, queue_depth}, tensor);
}

void Description::pool(const char *name, std::size_t size_bytes, std::int64_t points) {
    arena_.points = points;
    arena_.memories.push_back({name, size_bytes});
}

void Description::place(const char *tensor, std::vector<ProcessorId> streams, const char *pool, Integers offset_bytes) {
    const auto &pools = arena_.memories;
    const auto found = std::find_if(pools.begin(), pools.end(), [pool](const Memory &each) { return each.name == pool; });
    const auto number = static_cast<std::size_t>(found - pools.begin());
    places_.emplace_back(Place{kNone, std::move(streams), number, std::move(offset_bytes)}, tensor);
}

Plan Description::plan() const {
    auto plan = plan_;
    for (const auto &name : outputs_) {
        plan.outputs.push_back(tensor(name));
    }
    for (const auto &[transfer, name] : transfers_) {
        plan.transfers.push_back(transfer);
        plan.transfers.back().tensor = tensor(name);
    }
    if (!arena_.memories.empty()) {
        plan.arena = arena_;
        plan.arena->spans = spans_;
        for (const auto &[place, name] : places_) {
            if (place.memory == arena_.memories.size()) {
                throw Error("'" + name + "' lies in a pool that the source of this program does not have");
            }
            plan.arena->places.push_back(place);
            plan.arena->places.back().tensor = tensor(name);
        }
    }
    return plan;
}

}  // namespace parapipe
