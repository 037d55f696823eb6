#include "execution/tasks.hpp"

#include "error.hpp"
#include "execution/orders.hpp"
#include "execution/precedence.hpp"
#include "execution/views.hpp"
#include "plan/waits.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace parapipe {
namespace {

constexpr std::size_t kLeastSlots = 2;  // or neighbours would wait for each other

class Builder {
public:
    explicit Builder(const Plan &plan) : plan_(plan), places_(plan.places()), makers_(plan.makers()), moments_(moments_of(plan)) {}

    Tasks done() {
        add_tasks();
        auto &work = tasks_.work;
        work.processors = plan_.processors.size();
        const auto count = tasks_.operators.size();
        work.time_s.assign(count, std::vector<double>(work.processors, 0.0));
        work.reads.resize(count);
        for (OperatorId v = 0; v < plan_.operators.size(); ++v) {
            for (const TensorId t : read_by(plan_, plan_.operators[v])) {
                add_read(t, v);
            }
        }
        for (TaskId task = 0; task < count; ++task) {
            if (work.reads[task].empty()) {
                first_.insert(task);
            }
        }
        work.first.assign(first_.begin(), first_.end());
        for (const auto &[ends, slots] : slots_) {
            work.room.push_back({ends.first, ends.second, slots});
        }
        return std::move(tasks_);
    }

private:
    /// A task for each source, in the order of its processor.
    void add_tasks() {
        task_of_.resize(plan_.operators.size());
        std::map<std::string, TaskId> numbers;
        for (ProcessorId p = 0; p < plan_.processors.size(); ++p) {
            if (plan_.processors[p].is_replica()) {
                continue;
            }
            auto &order = tasks_.work.orders.emplace_back(Work::Order{{}, {p}});
            const auto &replicas = plan_.processors[p].replicas;
            order.processors.insert(order.processors.end(), replicas.begin(), replicas.end());
            for (const OperatorId v : plan_.processors[p].operators) {
                const auto [found, is_new] = numbers.emplace(plan_.operators[v].source, tasks_.operators.size());
                if (is_new) {
                    tasks_.operators.emplace_back();
                    order.tasks.push_back(found->second);
                    tasks_.work.lag.push_back(moments_[v].first);
                }
                tasks_.operators[found->second].push_back(v);
                task_of_[v] = found->second;
            }
        }
        for (auto &operators : tasks_.operators) {
            std::sort(operators.begin(), operators.end());  // its lags apart, each after what it reads
        }
    }

    void add_read(TensorId tensor, OperatorId reader) {
        const TaskId task = task_of_[reader];
        const OperatorId maker = makers_[tensor];
        if (maker == kNone) {
            first_.insert(task);
            return;
        }
        const TaskId producer = task_of_[maker];
        if (producer == task) {
            return;
        }
        const auto [number, is_new] = numbers_.emplace(tensor, tasks_.work.tensors.size());
        if (is_new) {
            const std::vector<double> nothing(plan_.processors.size(), 0.0);
            tasks_.work.tensors.push_back({producer, std::vector<std::vector<double>>(plan_.processors.size(), nothing)});
        }
        auto &reads = tasks_.work.reads[task];
        if (std::find(reads.begin(), reads.end(), number->second) == reads.end()) {
            reads.push_back(number->second);
        }
        const auto slots = slots_between(tensor, maker, reader);
        auto &fewest = slots_.emplace(std::pair(producer, task), slots).first->second;
        fewest = std::min(fewest, slots);
    }

    std::size_t slots_between(TensorId tensor, OperatorId maker, OperatorId reader) const {
        for (const auto &transfer : plan_.transfers) {
            if (transfer.tensor == tensor && transfer.target == places_[reader]) {
                return transfer.queue_depth;
            }
        }
        return std::max(kLeastSlots, frames_between(moments_[maker], moments_[reader]));
    }

    const Plan &plan_;
    const std::vector<ProcessorId> places_;
    const std::vector<OperatorId> makers_;
    const std::vector<Moment> moments_;
    Tasks tasks_;
    std::vector<TaskId> task_of_;
    std::map<TensorId, std::size_t> numbers_;
    std::map<std::pair<TaskId, TaskId>, std::size_t> slots_;
    std::set<TaskId> first_;
};

/// What tasks wait for: what they read, room, admission; and their turn, where each processor keeps to the plan.
std::vector<Wait> waits_of(const Work &work, std::size_t under_way, bool in_order) {
    std::vector<Wait> waits;
    std::vector<bool> is_last(work.tasks(), true);
    for (TaskId task = 0; task < work.tasks(); ++task) {
        for (const auto tensor : work.reads[task]) {
            waits.push_back({work.tensors[tensor].producer, task, 0});
            is_last[work.tensors[tensor].producer] = false;
        }
    }
    for (const auto &room : work.room) {
        waits.push_back({room.first, room.then, static_cast<std::int64_t>(room.slots)});
    }
    for (TaskId task = 0; task < work.tasks(); ++task) {
        for (const TaskId first : work.first) {
            if (is_last[task]) {
                waits.push_back({task, first, static_cast<std::int64_t>(under_way)});
            }
        }
    }
    for (const auto &order : work.orders) {
        const auto count = order.tasks.size();
        for (std::size_t i = 0; in_order && i < count; ++i) {
            const auto [task, next] = std::pair(order.tasks[i], order.tasks[(i + 1) % count]);
            const auto rounds = i + 1 == count ? order.processors.size() : 0;
            waits.push_back({task, next, static_cast<std::int64_t>(work.lag[task] + rounds) -
                                             static_cast<std::int64_t>(work.lag[next])});
        }
    }
    return waits;
}

/// Operators of one source are one task: even in a plan that can be run, one may wait for another in between.
void check_tasks(const Plan &plan, const std::string &strategy) {
    const auto tasks = tasks_of(plan);
    const auto waits = waits_of(tasks.work, frames_under_way(plan), strategy == "steal");
    if (const auto found = one_in_circle(waits, tasks.work.tasks()); found != kNone) {
        throw Error("plan.json: operators of source '" + plan.operators[tasks.operators[found].front()].source +
                    "' would wait for ever by the strategy '" + strategy +
                    "', which runs those of one source one after the other; take 'plan'");
    }
}

}  // namespace

std::unique_ptr<const Plan> plan_together(const Plan &plan, const std::string &strategy) {
    if (strategy == "plan") {
        return nullptr;
    }
    for (const auto &processor : plan.processors) {
        if (processor.backend != plan.processors.front().backend || processor.backend == BackendKind::opencl) {
            throw Error("the strategy '" + strategy +
                        "' needs CPUs that all compute with one library, or all in plain loops: libraries keep tensors "
                        "in memory differently, and a GPU runs what it is given in order; take 'plan'");
        }
    }
    check_tasks(plan, strategy);
    return std::make_unique<const Plan>(on_one_processor(plan));
}

Tasks tasks_of(const Plan &plan) {
    return Builder(plan).done();
}

std::size_t frames_under_way(const Plan &plan) {
    std::size_t frames = plan.stages + 1;
    for (const auto &processor : plan.processors) {
        frames += processor.lags.empty() ? 0 : *std::max_element(processor.lags.begin(), processor.lags.end());
        frames += processor.replicas.size();
    }
    return frames;
}

}  // namespace parapipe
