#include "execution/turns.hpp"

#include "execution/precedence.hpp"
#include "execution/views.hpp"
#include "plan/arena.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <thread>

namespace parapipe {
namespace {

std::size_t position_of(TensorId tensor, const std::vector<TensorId> &tensors) {
    const auto found = std::find(tensors.begin(), tensors.end(), tensor);
    return found == tensors.end() ? kNone : static_cast<std::size_t>(found - tensors.begin());
}

/// Somebody who reads or writes an instance.
struct Use {
    Instance instance;
    /// The turn in which it happens, and its processor.
    ProcessorId processor = kNone;
    OperatorId op = kNone;
    /// Number of the copy that it is, in its turn; kNone if it is none.
    std::size_t copy = kNone;
};

class Score {
public:
    Score(const Plan &plan, const Buffers &buffers, const LayoutOf &layouts, Semaphores &semaphores)
        : plan_(plan), buffers_(buffers), layouts_(layouts), semaphores_(semaphores), spin_(spin_of(plan)),
          places_(plan.places()), makers_(plan.makers()), moments_(moments_of(plan)), precedence_(plan), turns_(plan.processors.size()) {}

    std::vector<std::vector<Turn>> done() {
        for (ProcessorId p = 0; p < plan_.processors.size(); ++p) {
            add_turns(p);
        }
        for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
            add_transfer(plan_.transfers[i], buffers_.shared[i]);
        }
        std::map<std::size_t, std::vector<Use>> reads;
        for (const auto &read : reads_) {
            reads[buffers_.regions.at(read.instance).buffer].push_back(read);
        }
        for (const auto &write : writes_) {
            if (const auto number = buffers_.regions.at(write.instance).buffer; buffers_.all[number].place == kNone) {
                add_claims(write, reads[number]);
            }
        }
        for (const auto &wait : arena_waits(plan_, buffers_.places)) {
            const auto [waits, says] = count(wait.frames, 1);
            turn(wait.then).claims.push_back(waits);
            turn(wait.first).hands_on.push_back(says);
        }
        return std::move(turns_);
    }

private:
    Turn &turn(OperatorId v) { return turns_[places_[v]][moments_[v].second]; }

    /// The two ends of a count of frames: who waits, and who says.
    /// @param before So many frames may be had before anything is said.
    /// @param turns With how many remainders frames are told apart.
    std::pair<Signal, Signal> count(std::int64_t before, std::size_t turns) {
        std::vector<Semaphore *> counts;
        const auto whole = static_cast<std::int64_t>(turns);
        for (std::int64_t k = 0; k < whole; ++k) {
            const auto own = whole == 1 ? before : before / whole + (k < before % whole ? 1 : 0);
            counts.push_back(&semaphores_.emplace_back(own, spin_));
        }
        const auto ahead = whole == 1 ? 0 : static_cast<std::size_t>(before);
        return {Signal(counts, 0), Signal(counts, ahead)};
    }

    /// Of the frames of two processors, which of their replicas meet depends on the remainder by this.
    std::size_t turns_between(ProcessorId one, ProcessorId other) const {
        return std::lcm(plan_.processors[one].turns(), plan_.processors[other].turns());
    }

    void add_turns(ProcessorId p) {
        const auto &processor = plan_.processors[p];
        for (std::size_t i = 0; i < processor.operators.size(); ++i) {
            const OperatorId v = processor.operators[i];
            const auto &op = plan_.operators[v];
            Turn turn;
            turn.op = v;
            turn.view = buffers_.views[v];
            turn.lag = processor.lags[i];
            turn.result = position_of(op.output, plan_.outputs);
            if (turn.result != kNone) {
                reads_.push_back({{op.output, p}, p, v});
            }
            bind({op.output, p}, turn);
            for (const TensorId t : op.inputs) {
                if (t != kNone && !plan_.tensors[t].constant()) {
                    bind({t, p}, turn);
                }
            }
            if (!turn.view) {
                writes_.push_back({{op.output, p}, p, v});
                for (const auto &binding : turn.bindings) {
                    reads_.push_back({{binding.tensor, p}, p, v});
                }
            }
            turns_[p].push_back(std::move(turn));
        }
        const auto first = std::min_element(processor.lags.begin(), processor.lags.end());
        if (first != processor.lags.end()) {
            turns_[p][static_cast<std::size_t>(first - processor.lags.begin())].first = true;
        }
        add_loads(p);
        add_takes(p);
    }

    void bind(const Instance &instance, Turn &turn) {
        if (!buffers_.of(instance).single()) {
            turn.bindings.push_back(binding(instance));
        }
    }

    Binding binding(const Instance &instance) const {
        const auto &region = buffers_.regions.at(instance);
        const auto strides = layout_of(plan_, buffers_.all[region.buffer], layouts_).strides;
        return {instance.tensor, region.buffer,
                std::inner_product(strides.begin(), strides.end(), region.start.begin(), std::size_t{0})};
    }

    void add_loads(ProcessorId p) {
        for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
            if (const OperatorId v = first_reader(plan_, moments_, {plan_.inputs[i], p}); v != kNone) {
                turn(v).loads.push_back(load({plan_.inputs[i], p}, i));
                writes_.push_back({{plan_.inputs[i], p}, p, v});
            }
        }
    }

    /// What lies between the first and the last element of a graph input that a processor reads.
    Load load(const Instance &input, std::size_t position) const {
        const auto whole = extents_of(plan_, input.tensor);
        Extents begin = whole;
        Extents end{};
        for (const OperatorId v : plan_.processors[input.processor].operators) {
            const auto &op = plan_.operators[v];
            if (std::find(op.inputs.begin(), op.inputs.end(), input.tensor) != op.inputs.end()) {
                const bool cut = buffers_.views[v] && op.type == "Slice";
                const auto start = cut ? start_of(op) : Extents{};
                const auto stop = sum_of(start, cut ? extents_of(plan_, op.output) : whole);
                for (std::size_t axis = 0; axis < kMostDimensions; ++axis) {
                    begin[axis] = std::min(begin[axis], start[axis]);
                    end[axis] = std::max(end[axis], stop[axis]);
                }
            }
        }
        Load load{position, begin, {}};
        std::transform(end.begin(), end.end(), begin.begin(), load.extents.begin(), std::minus<>());
        return load;
    }

    /// A GPU has a buffer that others see from its first use in a frame to its last.
    void add_takes(ProcessorId p) {
        std::map<std::size_t, std::pair<OperatorId, OperatorId>> uses;
        for (const OperatorId v : plan_.processors[p].operators) {
            for (const auto &binding : turn(v).bindings) {
                const auto number = binding.buffer;
                if (buffers_.all[number].seen_by_others(p)) {
                    auto &[first, last] = uses.emplace(number, std::pair(v, v)).first->second;
                    first = moments_[v] < moments_[first] ? v : first;
                    last = moments_[last] < moments_[v] ? v : last;
                }
            }
        }
        for (const auto &[number, ends] : uses) {
            turn(ends.first).takes.push_back(number);
            turn(ends.second).leaves.push_back(number);
        }
    }

    void add_transfer(const Transfer &transfer, bool shared) {
        const auto [waits, says] = count(0, turns_between(transfer.source, transfer.target));
        auto &sending = turn(makers_[transfer.tensor]);
        turn(first_reader(plan_, moments_, {transfer.tensor, transfer.target})).arrivals.push_back(waits);
        if (shared) {
            sending.sends.push_back(says);
            return;
        }
        const Instance source{transfer.tensor, transfer.source};
        const Instance target{transfer.tensor, transfer.target};
        reads_.push_back({source, transfer.source, sending.op});
        writes_.push_back({target, transfer.source, sending.op, sending.copies.size()});
        sending.copies.push_back({binding(target), layouts_(target), {}, says});
    }

    /// Lets who writes wait for all others that read the same in the frame that was there before. Within a
    /// processor, the order of its turns does it.
    void add_claims(const Use &write, const std::vector<Use> &reads) {
        std::map<ProcessorId, OperatorId> last;
        for (const auto &read : reads) {
            if (read.processor != write.processor && buffers_.overlap(plan_, read.instance, write.instance)) {
                auto &latest = last.emplace(read.processor, read.op).first->second;
                latest = moments_[latest] < moments_[read.op] ? read.op : latest;
            }
        }
        auto &writing = turn(write.op);
        auto &claims = write.copy == kNone ? writing.claims : writing.copies[write.copy].claims;
        const auto frames = buffers_.of(write.instance).frames;
        for (const auto &[processor, v] : last) {
            const auto apart = plan_.replicated() ? std::nullopt : precedence_.frames_apart(v, write.op);
            if (apart && *apart <= frames) {
                continue;  // it waits for that one in any case
            }
            const auto [waits, says] = count(static_cast<std::int64_t>(frames), turns_between(processor, write.processor));
            claims.push_back(waits);
            turn(v).releases.push_back(says);
        }
    }

    const Plan &plan_;
    const Buffers &buffers_;
    const LayoutOf &layouts_;
    Semaphores &semaphores_;
    const std::chrono::nanoseconds spin_;
    std::vector<ProcessorId> places_;
    std::vector<OperatorId> makers_;
    std::vector<Moment> moments_;
    const Precedence precedence_;
    std::vector<std::vector<Turn>> turns_;
    std::vector<Use> writes_;
    std::vector<Use> reads_;
};

}  // namespace

std::chrono::nanoseconds spin_of(const Plan &plan) {
    constexpr std::chrono::nanoseconds most = std::chrono::milliseconds(1);
    std::size_t threads = 0;
    std::set<int> cores;
    bool shared = false;
    for (const auto &processor : plan.processors) {
        threads += processor.threads;
        for (const int core : processor.cores) {
            shared = !cores.insert(core).second || shared;
        }
    }
    if (shared || threads > std::thread::hardware_concurrency()) {
        return std::chrono::nanoseconds(0);
    }
    const auto frame = plan.predicted ? std::chrono::duration<double>(plan.predicted->latency_s) : most;
    return frame < most ? std::chrono::duration_cast<std::chrono::nanoseconds>(frame) : most;
}

std::vector<std::vector<Turn>> turns_of(const Plan &plan, const Buffers &buffers, const LayoutOf &layouts,
                                        Semaphores &semaphores) {
    return Score(plan, buffers, layouts, semaphores).done();
}

}  // namespace parapipe
