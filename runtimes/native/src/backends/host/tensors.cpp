#include "backends/host/tensors.hpp"

#include "execution/precedence.hpp"
#include "execution/views.hpp"

#include <algorithm>
#include <map>

namespace parapipe {
namespace {

constexpr std::size_t kAlignment = 64;

/// A tensor, the first and the last turn of a round that need it, and its bytes. One that is needed in the
/// round after, too, is needed in all turns.
struct Need {
    TensorId tensor = kNone;
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t size_bytes = 0;
    std::size_t offset = 0;

    bool meets(const Need &other) const { return first <= other.last && other.first <= last; }
};

std::vector<Need> needs_of(const Plan &plan, ProcessorId processor, const std::set<TensorId> &bound) {
    const auto &operators = plan.processors[processor].operators;
    const auto &lags = plan.processors[processor].lags;
    std::map<TensorId, std::pair<Moment, Moment>> spans;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        auto used = read_by(plan, plan.operators[operators[i]]);
        used.push_back(plan.operators[operators[i]].output);
        for (const TensorId t : used) {
            const Moment now{lags[i], i};
            auto &span = spans.emplace(t, std::pair(now, now)).first->second;
            span = {std::min(span.first, now), std::max(span.second, now)};
        }
    }
    std::vector<Need> needs;
    for (const auto &[tensor, span] : spans) {
        if (bound.count(tensor) == 0) {
            const bool wraps = span.first.first != span.second.first;
            const auto bytes = (plan.tensors[tensor].size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
            needs.push_back({tensor, wraps ? 0 : span.first.second, wraps ? operators.size() : span.second.second, bytes, 0});
        }
    }
    return needs;
}

/// Gives each the lowest place that is free while it is needed, the largest first; returns the bytes of all.
std::size_t place(std::vector<Need> &needs) {
    std::stable_sort(needs.begin(), needs.end(), [](const Need &a, const Need &b) { return a.size_bytes > b.size_bytes; });
    std::vector<const Need *> placed;  // by offset
    std::size_t end = 0;
    for (auto &need : needs) {
        for (const auto *other : placed) {
            const bool apart = need.offset + need.size_bytes <= other->offset || other->offset + other->size_bytes <= need.offset;
            if (need.meets(*other) && !apart) {
                need.offset = other->offset + other->size_bytes;
            }
        }
        const auto behind = std::upper_bound(placed.begin(), placed.end(), need.offset,
                                             [](std::size_t offset, const Need *other) { return offset < other->offset; });
        placed.insert(behind, &need);
        end = std::max(end, need.offset + need.size_bytes);
    }
    return end;
}

}  // namespace

Tensors::Tensors(const Plan &plan, ProcessorId processor, const std::vector<float> &weights)
    : plan_(plan), processor_(processor), orders_(plan), data_(plan.tensors.size()) {
    for (TensorId t = 0; t < data_.size(); ++t) {
        if (const auto offset = plan.tensors[t].offset) {
            data_[t] = const_cast<float *>(weights.data()) + *offset / sizeof(float);
        }
    }
}

Layout Tensors::layout(TensorId tensor) const {
    return layout_of(plan_.tensors[tensor].shape, order(tensor));
}

Order Tensors::order(TensorId tensor) const {
    return plan_.tensors[tensor].constant() ? Order::nchw : orders_.of(tensor, processor_);
}

void Tensors::allocate(const std::set<TensorId> &bound) {
    auto needs = needs_of(plan_, processor_, bound);
    memory_ = std::make_unique<HostSlot>(place(needs));
    for (const auto &need : needs) {
        bind(need.tensor, memory_->host() + need.offset);
    }
}

}  // namespace parapipe
