#include "execution/frame_counts.hpp"

#include "execution/precedence.hpp"
#include "execution/views.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace parapipe {
namespace {

class FrameCounts {
public:
    FrameCounts(const Plan &plan, Buffers &buffers)
        : plan_(plan), buffers_(buffers), places_(plan.places()), makers_(plan.makers()), precedence_(plan) {}

    void count() {
        for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
            auto &buffer = of({plan_.transfers[i].tensor, plan_.transfers[i].target});
            buffer.received = buffer.received || !buffers_.shared[i];
        }
        find_spans();
        auto most = in_use();
        for (const auto &[instance, frames] : apart()) {
            auto &buffer = of(instance);
            if (buffer.seen_by_others(instance.processor)) {
                buffer.frames = std::max(buffer.frames, std::min(frames, most[buffers_.regions.at(instance).buffer]));
            }
        }
        for (auto &buffer : buffers_.all) {
            const auto turns = turns_of(buffer);
            buffer.frames = (buffer.frames + turns - 1) / turns * turns;
        }
    }

private:
    Buffer &of(const Instance &instance) { return buffers_.all[buffers_.regions.at(instance).buffer]; }

    /// Replicas work on as many frames at once, each always in the same memory.
    std::size_t turns_of(const Buffer &buffer) const {
        std::size_t turns = 1;
        for (const auto &member : buffer.members) {
            turns = buffer.members.size() == 1 && !buffer.received && buffer.frames == 1
                        ? turns  // a device's own
                        : std::lcm(turns, plan_.processors[member.processor].turns());
        }
        return turns;
    }

    /// How many frames of each instance memory apart from each other would hold.
    std::map<Instance, std::size_t> apart() const {
        std::vector<std::vector<std::size_t>> leaving(plan_.tensors.size());
        for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
            leaving[plan_.transfers[i].tensor].push_back(i);
        }
        std::map<Instance, std::size_t> held;
        for (OperatorId v = 0; v < plan_.operators.size(); ++v) {
            const Instance made{plan_.operators[v].output, places_[v]};
            std::size_t before = 0;
            for (const TensorId t : read_by(plan_, plan_.operators[v])) {
                const Instance read{t, places_[v]};
                const auto frames = held.emplace(read, spans_.at(read)).first->second;
                before = buffers_.views[v] ? std::max(before, frames) : 0;
            }
            held[made] = before + spans_.at(made);
            for (const auto i : leaving[made.tensor]) {
                const Instance target{made.tensor, plan_.transfers[i].target};
                held[target] =
                    (buffers_.shared[i] ? before : 0) + std::max(plan_.transfers[i].queue_depth, spans_.at(target));
            }
        }
        return held;
    }

    /// How many frames of each buffer are ever in use at once, by what processors wait for in any case; as good as
    /// endless where somebody writes without waiting.
    std::vector<std::size_t> in_use() const {
        std::vector<std::set<OperatorId>> users(buffers_.all.size());
        std::vector<std::set<OperatorId>> writers(buffers_.all.size());
        for (OperatorId v = 0; v < plan_.operators.size(); ++v) {
            const auto made = buffers_.regions.at({plan_.operators[v].output, places_[v]}).buffer;
            users[made].insert(v);  // a view, too, for who takes a result or copies reads it then
            if (!buffers_.views[v]) {
                writers[made].insert(v);
            }
            for (const TensorId t : read_by(plan_, plan_.operators[v])) {
                const auto read = buffers_.regions.at({t, places_[v]}).buffer;
                users[read].insert(v);
                if (makers_[t] == kNone) {  // loads it
                    writers[read].insert(v);
                }
            }
        }
        std::vector<std::size_t> most(users.size(), plan_.replicated() ? kNone : 1);
        for (std::size_t i = 0; i < users.size(); ++i) {
            if (buffers_.all[i].received) {
                most[i] = kNone;  // who copies into it is none of its users
            }
            for (const OperatorId writer : writers[i]) {
                for (const OperatorId user : users[i]) {
                    const auto frames = places_[user] == places_[writer] ? std::optional<std::size_t>(1)
                                                                         : precedence_.frames_apart(user, writer);
                    most[i] = std::max(most[i], frames.value_or(kNone));
                }
            }
        }
        return most;
    }

    /// How many frames of an instance its processor works on at once, and of a whole buffer.
    void find_spans() {
        using Span = std::pair<Moment, Moment>;
        const auto moments = moments_of(plan_);
        std::map<Instance, Span> instances;
        std::map<std::pair<std::size_t, ProcessorId>, Span> spans;
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
                extend(spans.emplace(std::pair(buffers_.regions.at(instance).buffer, places_[v]), now).first->second,
                       moments[v]);
            }
        }
        for (const auto &[instance, span] : instances) {
            spans_[instance] = frames_between(span.first, span.second);
        }
        for (const auto &[key, span] : spans) {
            auto &frames = buffers_.all[key.first].frames;
            frames = std::max(frames, frames_between(span.first, span.second));
        }
    }

    const Plan &plan_;
    Buffers &buffers_;
    std::vector<ProcessorId> places_;
    std::vector<OperatorId> makers_;
    const Precedence precedence_;
    std::map<Instance, std::size_t> spans_;
};

}  // namespace

void count_frames(const Plan &plan, Buffers &buffers) {
    FrameCounts(plan, buffers).count();
}

}  // namespace parapipe
