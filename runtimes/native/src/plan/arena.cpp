#include "plan/arena.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace parapipe {
namespace {

bool contains(const std::vector<ProcessorId> &processors, ProcessorId processor) {
    return std::find(processors.begin(), processors.end(), processor) != processors.end();
}

std::int64_t floor_of(std::int64_t numerator, std::int64_t denominator) {
    return numerator / denominator - (numerator % denominator < 0 ? 1 : 0);
}

class Waits {
public:
    Waits(const Plan &plan, const std::vector<bool> &taken)
        : plan_(plan), taken_(taken), places_(plan.places()), makers_(plan.makers()) {
        readers_.resize(plan.tensors.size());
        for (OperatorId v = 0; v < plan.operators.size(); ++v) {
            for (const TensorId t : plan.operators[v].inputs) {
                if (t != kNone && (readers_[t].empty() || readers_[t].back() != v)) {
                    readers_[t].push_back(v);
                }
            }
        }
    }

    std::vector<ArenaWait> done() {
        const auto &all = plan_.arena->places;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const OperatorId writer = taken_[i] ? writer_of(plan_, all[i]) : kNone;
            for (std::size_t j = 0; writer != kNone && j < all.size(); ++j) {
                if (taken_[j] && share(all[i], all[j])) {
                    add(writer, all[j], i == j ? frames_apart(all[i]) : 0);
                }
            }
        }
        std::vector<ArenaWait> waits;
        for (const auto &[key, last] : last_) {
            waits.push_back({std::get<0>(key), last, std::get<2>(key)});
        }
        return waits;
    }

private:
    std::int64_t size(const Place &place) const { return static_cast<std::int64_t>(plan_.tensors[place.tensor].size_bytes()); }

    bool meet(const Place &one, std::int64_t at, const Place &other, std::int64_t there) const {
        return at < there + size(other) && there < at + size(one);
    }

    bool share(const Place &one, const Place &other) const {
        return one.memory == other.memory &&
               std::any_of(one.offset_bytes.begin(), one.offset_bytes.end(), [&](std::int64_t at) {
                   return std::any_of(other.offset_bytes.begin(), other.offset_bytes.end(),
                                      [&](std::int64_t there) { return meet(one, at, other, there); });
               });
    }

    /// After so many frames, one lies where an earlier one was, or on a part of it.
    std::int64_t frames_apart(const Place &place) const {
        const auto count = place.offset_bytes.size();
        for (std::size_t apart = 1; apart < count; ++apart) {
            for (std::size_t i = 0; i < count; ++i) {
                if (meet(place, place.offset_bytes[i], place, place.offset_bytes[(i + apart) % count])) {
                    return static_cast<std::int64_t>(apart);
                }
            }
        }
        return static_cast<std::int64_t>(count);
    }

    /// @param own Frames after which the same tensor lies there again; 0 for another one.
    void add(OperatorId writer, const Place &before, std::int64_t own) {
        auto users = readers_[before.tensor];
        if (makers_[before.tensor] != kNone) {
            users.push_back(makers_[before.tensor]);
        }
        const auto &spans = plan_.arena->spans;
        for (const OperatorId user : users) {
            if (places_[user] == places_[writer] || !contains(before.processors, places_[user])) {
                continue;
            }
            const auto ahead = floor_of(spans[writer].first - spans[user].second, plan_.arena->points);
            const Key key{writer, places_[user], own > 0 ? own : -ahead};
            auto &last = last_.emplace(key, user).first->second;
            last = spans[last].second < spans[user].second ? user : last;
        }
    }

    using Key = std::tuple<OperatorId, ProcessorId, std::int64_t>;

    const Plan &plan_;
    const std::vector<bool> &taken_;
    std::vector<ProcessorId> places_;
    std::vector<OperatorId> makers_;
    std::vector<std::vector<OperatorId>> readers_;
    /// Of what must have ended of a frame on a processor, the last stands for all.
    std::map<Key, OperatorId> last_;
};

}  // namespace

OperatorId writer_of(const Plan &plan, const Place &place) {
    if (const OperatorId maker = plan.makers()[place.tensor]; maker != kNone) {
        return maker;
    }
    OperatorId first = kNone;
    for (const OperatorId v : plan.processors[place.processors.front()].operators) {
        const auto &inputs = plan.operators[v].inputs;
        const bool reads = std::find(inputs.begin(), inputs.end(), place.tensor) != inputs.end();
        if (reads && (first == kNone || plan.arena->spans[v].first < plan.arena->spans[first].first)) {
            first = v;
        }
    }
    return first;
}

std::vector<ArenaWait> arena_waits(const Plan &plan, const std::vector<bool> &taken) {
    return plan.arena ? Waits(plan, taken).done() : std::vector<ArenaWait>();
}

}  // namespace parapipe
