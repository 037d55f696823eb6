#include "execution/frame_memory.hpp"

#include "execution/views.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

namespace parapipe {
namespace {

constexpr std::size_t kAlignment = 64;

/// A set of operators.
class OperatorSet {
public:
    explicit OperatorSet(std::size_t count) : words_((count + 63) / 64) {}

    void add(OperatorId v) { words_[v / 64] |= std::uint64_t{1} << (v % 64); }
    void add_all(const OperatorSet &other) {
        std::transform(words_.begin(), words_.end(), other.words_.begin(), words_.begin(), std::bit_or<>());
    }
    void retain(const OperatorSet &other) {
        std::transform(words_.begin(), words_.end(), other.words_.begin(), words_.begin(), std::bit_and<>());
    }
    bool within(const OperatorSet &other) const {
        return std::equal(words_.begin(), words_.end(), other.words_.begin(),
                          [](std::uint64_t mine, std::uint64_t theirs) { return (mine & ~theirs) == 0; });
    }

private:
    std::vector<std::uint64_t> words_;
};

/// Of each operator, all that it waits for. Without recursion: there may be thousands, one behind the other.
std::vector<OperatorSet> ancestors_of(const Plan &plan) {
    const auto count = plan.operators.size();
    const auto makers = plan.makers();
    std::vector<OperatorSet> ancestors(count, OperatorSet(count));
    std::vector<bool> known(count);
    for (OperatorId v = 0; v < count; ++v) {
        std::vector<OperatorId> left{v};
        while (!left.empty()) {
            const OperatorId at = left.back();
            const auto reads = read_by(plan, plan.operators[at]);
            const auto missing = std::find_if(reads.begin(), reads.end(), [&](TensorId t) {
                return makers[t] != kNone && !known[makers[t]];
            });
            if (!known[at] && missing != reads.end()) {
                left.push_back(makers[*missing]);
                continue;
            }
            left.pop_back();
            for (const TensorId t : reads) {
                if (makers[t] != kNone) {
                    ancestors[at].add_all(ancestors[makers[t]]);
                    ancestors[at].add(makers[t]);
                }
            }
            known[at] = true;
        }
    }
    return ancestors;
}

/// Who uses a buffer, and what all that writes to it has waited for.
struct Need {
    OperatorSet users;
    OperatorSet before;
    bool written = false;  // by an operator, else loaded
};

std::vector<Need> needs_of(const Plan &plan, const Buffers &buffers) {
    const auto count = plan.operators.size();
    const auto ancestors = ancestors_of(plan);
    std::vector<Need> needs(buffers.all.size(), Need{OperatorSet(count), OperatorSet(count)});
    const auto writes = [&](Need &need, const OperatorSet &before) {
        if (!need.written) {
            need.before.add_all(before);
        } else {
            need.before.retain(before);
        }
        need.written = true;
    };
    for (OperatorId v = 0; v < count; ++v) {
        auto &made = needs[buffers.regions.at({plan.operators[v].output, 0}).buffer];
        made.users.add(v);
        if (!buffers.views[v]) {
            writes(made, ancestors[v]);
        }
        for (const TensorId t : read_by(plan, plan.operators[v])) {
            needs[buffers.regions.at({t, 0}).buffer].users.add(v);
        }
    }
    for (const TensorId t : plan.inputs) {
        if (const auto found = buffers.regions.find({t, 0}); found != buffers.regions.end()) {
            writes(needs[found->second.buffer], OperatorSet(count));  // loaded before all else
        }
    }
    return needs;
}

}  // namespace

FrameMemory share_out(const Plan &plan, const Buffers &buffers, const std::vector<std::size_t> &size_bytes) {
    const auto needs = needs_of(plan, buffers);
    const auto apart = [&](std::size_t a, std::size_t b) {
        const bool padded = !buffers.all[a].padding.none() || !buffers.all[b].padding.none();
        return !padded && (needs[a].users.within(needs[b].before) || needs[b].users.within(needs[a].before));
    };
    std::vector<std::size_t> order(size_bytes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size_bytes[a] > size_bytes[b]; });
    FrameMemory memory{std::vector<std::size_t>(size_bytes.size()), 0};
    std::vector<std::size_t> placed;  // by offset
    const auto end_of = [&](std::size_t i) { return memory.offset_bytes[i] + size_bytes[i]; };
    for (const auto i : order) {
        auto &offset = memory.offset_bytes[i];
        for (const auto other : placed) {
            const bool meet = offset < end_of(other) && memory.offset_bytes[other] < end_of(i);
            if (meet && !apart(i, other)) {
                offset = (end_of(other) + kAlignment - 1) / kAlignment * kAlignment;
            }
        }
        placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                       [&](std::size_t a, std::size_t b) {
                                           return memory.offset_bytes[a] < memory.offset_bytes[b];
                                       }),
                      i);
        memory.size_bytes = std::max(memory.size_bytes, end_of(i));
    }
    return memory;
}

}  // namespace parapipe
