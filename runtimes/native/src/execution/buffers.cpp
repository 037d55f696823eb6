#include "execution/buffers.hpp"

#include "execution/views.hpp"

#include <algorithm>
#include <set>

namespace parapipe {
namespace {

using Numbers = std::vector<std::size_t>;

constexpr std::size_t kRows = 2;  // the axis, counted among four

class Allocation {
public:
    Allocation(const Plan &plan, const Orders &orders, const std::vector<bool> &views,
               const std::function<Padding(const Instance &)> &padding)
        : plan_(plan), orders_(orders), places_(plan.places()), makers_(plan.makers()), views_(views) {
        for (OperatorId v = 0; v < plan.operators.size(); ++v) {
            for (const TensorId t : read_by(plan, plan.operators[v])) {
                add({t, places_[v]}, padding);
                if (!views[v]) {
                    readers_[region({t, places_[v]}).buffer].insert(places_[v]);
                }
            }
            add({plan.operators[v].output, places_[v]}, padding);
        }
    }

    Buffers done() {
        for (const OperatorId v : cuts_and_joins()) {
            views_[v] = is_cut(v) ? cut(v) : join(v);
        }
        for (const auto &transfer : plan_.transfers) {
            unite({transfer.tensor, transfer.source}, {transfer.tensor, transfer.target});
        }
        std::vector<bool> shared;
        for (const auto &transfer : plan_.transfers) {
            shared.push_back(region({transfer.tensor, transfer.source}) == region({transfer.tensor, transfer.target}));
        }
        count_frames(shared);
        Buffers done{{}, {}, std::move(shared), std::move(views_), {}};
        std::map<std::size_t, std::size_t> numbers;
        for (const auto &[instance, region] : regions_) {
            const auto [number, is_new] = numbers.emplace(region.buffer, done.all.size());
            if (is_new) {
                done.all.push_back(buffers_[region.buffer]);
            }
            done.regions[instance] = {number->second, region.start};
        }
        return done;
    }

private:
    void add(const Instance &instance, const std::function<Padding(const Instance &)> &padding) {
        if (regions_.emplace(instance, Region{buffers_.size(), {}}).second) {
            buffers_.push_back({instance, {instance}, padding(instance)});
            readers_.emplace_back();
            dense_.push_back(false);
        }
    }

    const Region &region(const Instance &instance) const { return regions_.at(instance); }

    /// Views, first the cuts, then the joins, the largest first: what a smaller one joins may lie there
    /// already, one behind the other.
    std::vector<OperatorId> cuts_and_joins() const {
        std::vector<OperatorId> found;
        for (OperatorId v = 0; v < plan_.operators.size(); ++v) {
            if (views_[v]) {
                found.push_back(v);
            }
        }
        const auto joins = std::stable_partition(found.begin(), found.end(), [this](OperatorId v) { return is_cut(v); });
        std::stable_sort(joins, found.end(), [this](OperatorId one, OperatorId other) {
            return made_by(one).elements() > made_by(other).elements();
        });
        return found;
    }

    bool is_cut(OperatorId v) const { return plan_.operators[v].type == "Slice"; }
    const Tensor &made_by(OperatorId v) const { return plan_.tensors[plan_.operators[v].output]; }

    Extents extents_of(const Instance &instance) const { return parapipe::extents_of(plan_, instance.tensor); }

    Order order(const Instance &instance) const { return orders_.of(instance.tensor, instance.processor); }

    bool whole(const Instance &instance) const {
        return extents_of(instance) == extents_of(buffers_[region(instance).buffer].root);
    }

    /// Lets a Slice's output lie in its input.
    bool cut(OperatorId v) {
        const auto &op = plan_.operators[v];
        const auto &input = region({op.inputs.front(), places_[v]});
        const auto from = region({op.output, places_[v]}).buffer;
        const auto axis = axis_of(plan_, op);
        return unite_at(input.buffer, from, sum_of(input.start, start_of(op)), axis != kNone && axis >= kRows);
    }

    /// Lets a buffer lie in another one, if that can be.
    /// @param rows Whether rows of it have to follow upon each other, for a reason of their own.
    bool unite_at(std::size_t into, std::size_t from, const Extents &start, bool rows = false) {
        const bool dense = rows || dense_[into] || dense_[from];
        if (!fit({into, from}, dense)) {
            return false;
        }
        dense_[into] = dense;
        move(from, into, start);
        return true;
    }

    /// Lets a Concat's inputs lie in its output, one behind the other.
    bool join(OperatorId v) {
        const auto &op = plan_.operators[v];
        const Instance made{op.output, places_[v]};
        const auto into = region(made);
        const auto axis = axis_of(plan_, op);
        if (follow_upon_each_other(v, axis)) {
            const auto first = region({op.inputs.front(), places_[v]});
            return whole(made) && unite_at(first.buffer, into.buffer, first.start, axis >= kRows);
        }
        Numbers all{into.buffer};
        bool dense = dense_[into.buffer] || axis >= kRows;
        for (const TensorId t : op.inputs) {
            const Instance part{t, places_[v]};
            const auto from = region(part).buffer;
            if (!whole(part) || std::count(all.begin(), all.end(), from) > 0) {
                return false;
            }
            dense = dense || dense_[from];
            all.push_back(from);
        }
        if (!fit(all, dense)) {
            return false;
        }
        dense_[into.buffer] = dense;
        auto start = into.start;
        for (const TensorId t : op.inputs) {
            const Instance part{t, places_[v]};
            move(region(part).buffer, into.buffer, start);
            start[axis] += extents_of(part)[axis];
        }
        return true;
    }

    /// Whether the inputs of a Concat lie one behind the other already.
    bool follow_upon_each_other(OperatorId v, std::size_t axis) const {
        auto next = region({plan_.operators[v].inputs.front(), places_[v]});
        for (const TensorId t : plan_.operators[v].inputs) {
            if (!(region({t, places_[v]}) == next)) {
                return false;
            }
            next.start[axis] += extents_of({t, places_[v]})[axis];
        }
        return true;
    }

    /// Lets the ends of a transfer lie in one place, if that can be.
    void unite(const Instance &source, const Instance &target) {
        const auto one = region(source);
        const auto other = region(target);
        const bool gpu = uses_gpu(one.buffer) || uses_gpu(other.buffer);
        if (one.buffer == other.buffer || (gpu && !(whole(source) && whole(target))) || order(source) != order(target)) {
            return;
        }
        if (whole(target)) {
            unite_at(one.buffer, other.buffer, one.start);
        } else if (whole(source)) {
            unite_at(other.buffer, one.buffer, other.start);
        } else if (one.start == other.start && agree(one.buffer, other.buffer)) {
            unite_at(one.buffer, other.buffer, {});
        }
    }

    /// Whether two buffers of the same extents hold the same, as where two processors join the same parts:
    /// what lies in one place is one tensor, there where it is made and where it arrives.
    bool agree(std::size_t one, std::size_t other) const {
        const auto &ones = buffers_[one].members;
        const auto &others = buffers_[other].members;
        return extents_of(buffers_[one].root) == extents_of(buffers_[other].root) &&
               std::all_of(ones.begin(), ones.end(), [&](const Instance &a) {
                   return std::all_of(others.begin(), others.end(), [&](const Instance &b) {
                       return made_of_parts(a) || made_of_parts(b) || !meet(a, b) || (same_place(a, b) && handed_over(a, b));
                   });
               });
    }

    bool made_of_parts(const Instance &instance) const {
        const OperatorId v = makers_[instance.tensor];
        return v != kNone && views_[v] && places_[v] == instance.processor;
    }

    bool handed_over(const Instance &one, const Instance &other) const {
        const OperatorId v = one.tensor == other.tensor ? makers_[one.tensor] : kNone;
        return v != kNone && (places_[v] == one.processor || places_[v] == other.processor);
    }

    bool same_place(const Instance &one, const Instance &other) const {
        return region(one).start == region(other).start;
    }

    bool meet(const Instance &one, const Instance &other) const {
        return overlap(region(one).start, extents_of(one), region(other).start, extents_of(other));
    }

    /// Whether buffers can be one.
    /// @param dense Whether rows of it have to follow upon each other.
    bool fit(const Numbers &numbers, bool dense) const {
        std::set<ProcessorId> readers;
        Padding padding;
        bool gpu = false;
        for (const auto number : numbers) {
            readers.insert(readers_[number].begin(), readers_[number].end());
            padding = larger_of(padding, buffers_[number].padding);
            gpu = gpu || uses_gpu(number);
        }
        return (!dense || padding.none()) && ((padding.none() && !gpu) || readers.size() <= 1);
    }

    bool uses_gpu(std::size_t buffer) const {
        return plan_.processors[buffers_[buffer].maker(plan_).processor].backend == BackendKind::opencl;
    }

    void move(std::size_t from, std::size_t into, const Extents &start) {
        auto &buffer = buffers_[into];
        for (const auto &member : buffers_[from].members) {
            auto &moved = regions_.at(member);
            moved = {into, sum_of(moved.start, start)};
            buffer.members.push_back(member);
        }
        buffer.padding = larger_of(buffer.padding, buffers_[from].padding);
        readers_[into].insert(readers_[from].begin(), readers_[from].end());
        buffers_[from].members.clear();
    }

    /// A buffer has memory for as many frames as a processor works on; one that several see, for as many as
    /// memory apart from each other would hold on the longest way through it. So nobody waits for longer.
    void count_frames(const std::vector<bool> &shared) {
        find_spans();
        std::vector<std::vector<std::size_t>> leaving(plan_.tensors.size());
        for (std::size_t i = 0; i < shared.size(); ++i) {
            leaving[plan_.transfers[i].tensor].push_back(i);
            auto &buffer = buffers_[region({plan_.transfers[i].tensor, plan_.transfers[i].target}).buffer];
            buffer.received = buffer.received || !shared[i];
        }
        std::map<Instance, std::size_t> held;
        for (OperatorId v = 0; v < plan_.operators.size(); ++v) {
            const Instance made{plan_.operators[v].output, places_[v]};
            std::size_t before = 0;
            for (const TensorId t : read_by(plan_, plan_.operators[v])) {
                const Instance read{t, places_[v]};
                const auto frames = held.emplace(read, spans_.at(read)).first->second;
                before = views_[v] ? std::max(before, frames) : 0;
            }
            held[made] = before + spans_.at(made);
            for (const auto i : leaving[made.tensor]) {
                const Instance target{made.tensor, plan_.transfers[i].target};
                held[target] = (shared[i] ? before : 0) + std::max(plan_.transfers[i].queue_depth, spans_.at(target));
            }
        }
        for (const auto &[instance, frames] : held) {
            auto &buffer = buffers_[region(instance).buffer];
            if (buffer.seen_by_others(instance.processor)) {
                buffer.frames = std::max(buffer.frames, frames);
            }
        }
    }

    /// How many frames of an instance its processor works on at once, and of a whole buffer.
    void find_spans() {
        using Span = std::pair<Moment, Moment>;
        const auto moments = moments_of(plan_);
        std::map<Instance, Span> instances;
        std::map<std::pair<std::size_t, ProcessorId>, Span> buffers;
        const auto extend = [](Span &span, const Moment &moment) {
            span = {std::min(span.first, moment), std::max(span.second, moment)};
        };
        for (OperatorId v = 0; v < plan_.operators.size(); ++v) {
            auto used = read_by(plan_, plan_.operators[v]);
            used.push_back(plan_.operators[v].output);
            for (const TensorId t : used) {
                const Instance instance{t, places_[v]};
                const Span now{moments[v], moments[v]};
                extend(instances.emplace(instance, now).first->second, moments[v]);
                extend(buffers.emplace(std::pair(region(instance).buffer, places_[v]), now).first->second, moments[v]);
            }
        }
        for (const auto &[instance, span] : instances) {
            spans_[instance] = frames_between(span.first, span.second);
        }
        for (const auto &[key, span] : buffers) {
            auto &frames = buffers_[key.first].frames;
            frames = std::max(frames, frames_between(span.first, span.second));
        }
    }

    const Plan &plan_;
    const Orders &orders_;
    std::vector<ProcessorId> places_;
    std::vector<OperatorId> makers_;
    std::vector<bool> views_;
    std::map<Instance, Region> regions_;
    std::vector<Buffer> buffers_;
    std::vector<std::set<ProcessorId>> readers_;  // by buffer
    std::vector<bool> dense_;                     // by buffer: rows have to follow upon each other
    std::map<Instance, std::size_t> spans_;
};

}  // namespace

bool Buffer::seen_by_others(ProcessorId processor) const {
    return received || std::any_of(members.begin(), members.end(), [processor](const Instance &member) {
               return member.processor != processor;
           });
}

const Instance &Buffer::maker(const Plan &plan) const {
    const auto gpu = std::find_if(members.begin(), members.end(), [&plan](const Instance &member) {
        return plan.processors[member.processor].backend == BackendKind::opencl;
    });
    return gpu == members.end() ? root : *gpu;
}

bool Buffers::overlap(const Plan &plan, const Instance &one, const Instance &other) const {
    const auto &here = regions.at(one);
    const auto &there = regions.at(other);
    return here.buffer == there.buffer && parapipe::overlap(here.start, extents_of(plan, one.tensor), there.start,
                                                            extents_of(plan, other.tensor));
}

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

Buffers buffers_of(const Plan &plan, const Orders &orders, const std::vector<bool> &views,
                   const std::function<Padding(const Instance &)> &padding) {
    return Allocation(plan, orders, views, padding).done();
}

}  // namespace parapipe
