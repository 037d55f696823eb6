#include "program/program.hpp"

#include "error.hpp"
#include "gpu/works.hpp"
#include "plan/check_plan.hpp"
#include "plan/read_plan.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace parapipe {
namespace {

using gpu::Event;
using gpu::Graph;
using gpu::Lane;
using gpu::Work;

constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// @throws Error with all that keeps a plan from running on a GPU.
void check_streams(const Plan &plan) {
    std::string obstacles;
    const auto add = [&obstacles](const std::string &what) { obstacles += (obstacles.empty() ? "" : "; ") + what; };
    for (const auto &each : plan.processors) {
        if (each.backend != BackendKind::cuda) {
            add("stream '" + each.name + "' is of no GPU");
        }
        if (each.stage != 0 || std::any_of(each.lags.begin(), each.lags.end(), [](std::size_t lag) { return lag > 0; })) {
            add("stream '" + each.name + "' works on several frames at a time");
        }
    }
    for (const auto &op : plan.operators) {
        if (!gpu::has_work(op.type)) {
            add("operator '" + op.id + "' (" + op.type + ") has no function on a GPU");
        }
    }
    if (!obstacles.empty()) {
        throw Error("network.cpp: " + obstacles);
    }
}

/// Bytes from the start of the pool for every tensor: constants, the plan's places, then all others.
struct Offsets {
    std::vector<std::size_t> of;
    std::vector<bool> placed;
    std::size_t end = 0;
};

Offsets offsets_of(const Plan &plan, bool share) {
    Offsets offsets{std::vector<std::size_t>(plan.tensors.size()), std::vector<bool>(plan.tensors.size()), 0};
    for (TensorId t = 0; t < plan.tensors.size(); ++t) {
        if (plan.tensors[t].constant()) {
            offsets.of[t] = static_cast<std::size_t>(*plan.tensors[t].offset);
            offsets.placed[t] = true;
        }
    }
    std::vector<std::size_t> begins;
    offsets.end = aligned(plan.weights_size_bytes);
    if (share && plan.arena) {
        for (const auto &memory : plan.arena->memories) {
            begins.push_back(offsets.end);
            offsets.end += aligned(memory.size_bytes);
        }
        for (const auto &place : plan.arena->places) {
            offsets.of[place.tensor] = begins[place.memory] + static_cast<std::size_t>(place.offset_bytes.front());
            offsets.placed[place.tensor] = true;
        }
    }
    for (TensorId t = 0; t < plan.tensors.size(); ++t) {
        if (!offsets.placed[t]) {
            offsets.of[t] = offsets.end;
            offsets.end += aligned(plan.tensors[t].size_bytes());
        }
    }
    return offsets;
}

/// Which clusters wait for which: for what they read, and for bytes that others have used before in the plan.
class Waits {
public:
    Waits(const Plan &plan, const std::vector<std::vector<OperatorId>> &clusters)
        : plan_(plan), before_(clusters.size()), own_(plan.operators.size()) {
        for (std::size_t k = 0; k < clusters.size(); ++k) {
            for (const OperatorId v : clusters[k]) {
                own_[v] = k;
            }
        }
        const auto makers = plan.makers();
        for (OperatorId v = 0; v < plan.operators.size(); ++v) {
            for (const TensorId t : plan.operators[v].inputs) {
                if (t != kNone && makers[t] != kNone) {
                    add(makers[t], v);
                }
            }
        }
        for (const auto &processor : plan.processors) {
            for (std::size_t i = 1; i < processor.operators.size(); ++i) {
                add(processor.operators[i - 1], processor.operators[i]);
            }
        }
    }

    void add_shared_bytes(const Offsets &offsets) {
        const auto makers = plan_.makers();
        const auto &spans = plan_.arena->spans;
        const auto users = users_of(makers);
        for (const auto &one : plan_.arena->places) {
            for (const auto &other : plan_.arena->places) {
                if (one.tensor == other.tensor || !meet(offsets, one.tensor, other.tensor)) {
                    continue;
                }
                for (const OperatorId writer : writers_of(other, makers)) {
                    for (const OperatorId user : users[one.tensor]) {
                        if (spans[user].second <= spans[writer].first) {
                            add(user, writer);
                        }
                    }
                }
            }
        }
    }

    const std::set<std::size_t> &before(std::size_t cluster) const { return before_[cluster]; }

    /// An order in which none waits for a later one; empty if there is none.
    std::vector<std::size_t> order() const {
        std::vector<std::size_t> order;
        std::vector<bool> done(before_.size());
        for (bool more = true; more;) {
            more = false;
            for (std::size_t k = 0; k < before_.size(); ++k) {
                const bool ready = std::all_of(before_[k].begin(), before_[k].end(), [&](std::size_t each) { return done[each]; });
                if (!done[k] && ready) {
                    order.push_back(k);
                    done[k] = more = true;
                }
            }
        }
        return order.size() == before_.size() ? order : std::vector<std::size_t>();
    }

private:
    void add(OperatorId first, OperatorId then) {
        if (own_[first] != own_[then]) {
            before_[own_[then]].insert(own_[first]);
        }
    }

    bool meet(const Offsets &offsets, TensorId one, TensorId other) const {
        return offsets.of[one] < offsets.of[other] + plan_.tensors[other].size_bytes() &&
               offsets.of[other] < offsets.of[one] + plan_.tensors[one].size_bytes();
    }

    std::vector<std::vector<OperatorId>> users_of(const std::vector<OperatorId> &makers) const {
        std::vector<std::vector<OperatorId>> users(plan_.tensors.size());
        for (TensorId t = 0; t < users.size(); ++t) {
            if (makers[t] != kNone) {
                users[t].push_back(makers[t]);
            }
        }
        for (OperatorId v = 0; v < plan_.operators.size(); ++v) {
            for (const TensorId t : plan_.operators[v].inputs) {
                if (t != kNone) {
                    users[t].push_back(v);
                }
            }
        }
        return users;
    }

    /// Who makes what lies there; a graph input is brought before anything runs.
    static std::vector<OperatorId> writers_of(const Place &place, const std::vector<OperatorId> &makers) {
        const OperatorId maker = makers[place.tensor];
        return maker == kNone ? std::vector<OperatorId>() : std::vector<OperatorId>{maker};
    }

    const Plan &plan_;
    std::vector<std::set<std::size_t>> before_;
    std::vector<std::size_t> own_;  // cluster of each operator
};

/// Whether a graph input may be brought before a frame: no operator that ends before the plan loads it has its
/// bytes.
bool inputs_lie_apart(const Plan &plan, const Offsets &offsets) {
    return std::none_of(plan.inputs.begin(), plan.inputs.end(), [&](TensorId input) {
        return std::any_of(plan.arena->places.begin(), plan.arena->places.end(), [&](const Place &place) {
            const auto t = place.tensor;
            const auto made = plan.makers()[t];
            return t != input && made != kNone && offsets.of[t] < offsets.of[input] + plan.tensors[input].size_bytes() &&
                   offsets.of[input] < offsets.of[t] + plan.tensors[t].size_bytes() &&
                   std::any_of(plan.operators.begin(), plan.operators.end(), [&](const Operator &op) {
                       const auto reader = static_cast<std::size_t>(&op - plan.operators.data());
                       return std::find(op.inputs.begin(), op.inputs.end(), input) != op.inputs.end() &&
                              plan.arena->spans[made].first < plan.arena->spans[reader].second && made != reader;
                   });
        });
    });
}

}  // namespace

struct Program::Loaded {
    Loaded(const Description &description, const std::string &file) : plan(description.plan()) {
        check_plan(plan);
        check_streams(plan);
        const auto &clusters = description.clusters();
        auto waits = std::make_unique<Waits>(plan, clusters);
        offsets = offsets_of(plan, true);
        shares = plan.arena.has_value() && inputs_lie_apart(plan, offsets);
        if (shares) {
            waits->add_shared_bytes(offsets);
            shares = !waits->order().empty();
        }
        if (!shares) {  // clusters would wait for each other in a circle: no two tensors share bytes
            waits = std::make_unique<Waits>(plan, clusters);
            offsets = offsets_of(plan, false);
        }
        order = waits->order();
        if (order.empty()) {
            throw Error("network.cpp: clusters wait for each other in a circle");
        }
        pool = std::make_unique<gpu::Memory>(offsets.end);
        for (const auto offset : offsets.of) {
            data.push_back(reinterpret_cast<float *>(pool->data() + offset));
        }
        add_lanes();
        const auto weights = read_weights(file, plan);
        lanes.front()->bring(pool->data(), weights.data(), weights.size() * sizeof(float));
        lanes.front()->synchronize();
        capture(clusters);
        for (std::size_t k = 0; k < clusters.size(); ++k) {
            done.push_back(std::make_unique<Event>());
            std::vector<std::size_t> others;
            std::copy_if(waits->before(k).begin(), waits->before(k).end(), std::back_inserter(others),
                         [&](std::size_t each) { return stream_of[each] != stream_of[k]; });
            before.push_back(std::move(others));
        }
    }

    void add_lanes() {
        const auto places = plan.places();
        for (std::size_t p = 0; p < plan.processors.size(); ++p) {
            lanes.push_back(std::make_unique<Lane>());
        }
        for (const OperatorId maker : plan.makers()) {
            maker_lane.push_back(maker == kNone ? 0 : places[maker]);
        }
    }

    /// Makes the operators of each cluster ready, and captures them as one graph.
    void capture(const std::vector<std::vector<OperatorId>> &clusters) {
        const auto places = plan.places();
        std::vector<std::vector<Work>> works(clusters.size());
        for (std::size_t k = 0; k < clusters.size(); ++k) {
            stream_of.push_back(places[clusters[k].front()]);
            for (const OperatorId v : clusters[k]) {
                if (auto work = gpu::work_of(plan, plan.operators[v], data, *lanes[stream_of[k]])) {
                    works[k].push_back(std::move(work));
                }
            }
        }
        for (auto &lane : lanes) {
            lane->reserve();
        }
        for (const std::size_t k : order) {  // once without capturing, so that libraries load what they need
            for (const auto &work : works[k]) {
                work(*lanes[stream_of[k]]);
            }
            lanes[stream_of[k]]->synchronize();
        }
        for (std::size_t k = 0; k < clusters.size(); ++k) {
            auto &lane = *lanes[stream_of[k]];
            lane.capture();
            for (const auto &work : works[k]) {
                work(lane);
            }
            graphs.push_back(lane.captured());
        }
        kept = std::move(works);  // some hold memory
    }

    void run(const float *const *inputs, float *const *outputs) {
        for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
            const auto t = plan.inputs[i];
            lanes.front()->bring(data[t], inputs[i], plan.tensors[t].size_bytes());
        }
        lanes.front()->record(loaded);
        for (std::size_t p = 1; p < lanes.size(); ++p) {
            lanes[p]->wait(loaded);
        }
        for (const std::size_t k : order) {
            auto &lane = *lanes[stream_of[k]];
            for (const std::size_t other : before[k]) {
                lane.wait(*done[other]);
            }
            lane.launch(*graphs[k]);
            lane.record(*done[k]);
        }
        for (auto &lane : lanes) {
            lane->synchronize();
        }
        for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
            const auto t = plan.outputs[i];
            lanes[maker_lane[t]]->fetch(outputs[i], data[t], plan.tensors[t].size_bytes());
        }
        for (auto &lane : lanes) {
            lane->synchronize();
        }
    }

    const Plan plan;
    Offsets offsets;
    bool shares = false;
    std::unique_ptr<gpu::Memory> pool;
    std::vector<float *> data;  // by tensor
    std::vector<std::unique_ptr<Lane>> lanes;
    std::vector<std::size_t> maker_lane;  // by tensor
    std::vector<std::size_t> stream_of;   // by cluster
    std::vector<std::size_t> order;
    std::vector<std::vector<std::size_t>> before;
    std::vector<std::vector<Work>> kept;
    std::vector<std::unique_ptr<Graph>> graphs;
    std::vector<std::unique_ptr<Event>> done;
    Event loaded;
};

Program::Program(const Description &description, const std::string &weights, const Cores & /*cores*/)
    : loaded_(std::make_unique<Loaded>(description, weights)) {}

Program::~Program() = default;

void Program::run(const float *const *inputs, float *const *outputs, std::size_t frames) {
    const auto &plan = loaded_->plan;
    for (std::size_t frame = 0; frame < frames; ++frame) {
        loaded_->run(inputs + frame * plan.inputs.size(), outputs + frame * plan.outputs.size());
    }
}

const Plan &Program::plan() const {
    return loaded_->plan;
}

std::size_t Program::pool_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t m = 0; loaded_->shares && m < loaded_->plan.arena->memories.size(); ++m) {
        bytes += loaded_->plan.arena->memories[m].size_bytes;
    }
    return bytes;
}

std::size_t Program::inside_bytes() const {
    std::size_t bytes = 0;
    for (const auto &place : loaded_->shares ? loaded_->plan.arena->places : std::vector<Place>()) {
        bytes += loaded_->plan.tensors[place.tensor].size_bytes();
    }
    return bytes;
}

std::size_t Program::outside_bytes() const {
    std::size_t bytes = 0;
    for (const auto &tensor : loaded_->plan.tensors) {
        bytes += tensor.constant() ? 0 : tensor.size_bytes();
    }
    return bytes - inside_bytes();
}

}  // namespace parapipe
