#include "strategies/work.hpp"

#include <algorithm>

namespace parapipe {
namespace {

/// Without recursion: there may be thousands of tasks, one behind the other.
std::vector<std::size_t> depths_of(const std::vector<std::vector<TaskId>> &producers) {
    std::vector<std::size_t> depths(producers.size(), kNone);
    for (TaskId task = 0; task < producers.size(); ++task) {
        std::vector<TaskId> left{task};
        while (!left.empty()) {
            const TaskId at = left.back();
            const auto missing = std::find_if(producers[at].begin(), producers[at].end(),
                                              [&depths](TaskId u) { return depths[u] == kNone; });
            if (missing != producers[at].end()) {
                left.push_back(*missing);
                continue;
            }
            left.pop_back();
            depths[at] = 0;
            for (const TaskId u : producers[at]) {
                depths[at] = std::max(depths[at], depths[u] + 1);
            }
        }
    }
    return depths;
}

}  // namespace

Links::Links(const Work &work)
    : producers(work.tasks()), readers(work.tasks()), makes(work.tasks()), read_by(work.tensors.size()),
      holds(work.tasks()), waits_for_room(work.tasks()), waits(work.tasks()), order_of(work.tasks(), kNone) {
    for (TaskId task = 0; task < work.tasks(); ++task) {
        for (const auto tensor : work.reads[task]) {
            const TaskId u = work.tensors[tensor].producer;
            read_by[tensor].push_back(task);
            if (std::find(producers[task].begin(), producers[task].end(), u) == producers[task].end()) {
                producers[task].push_back(u);
                readers[u].push_back(task);
            }
        }
        const bool is_first = std::find(work.first.begin(), work.first.end(), task) != work.first.end();
        waits[task] = producers[task].size() + (is_first ? 1 : 0);
    }
    for (std::size_t tensor = 0; tensor < work.tensors.size(); ++tensor) {
        makes[work.tensors[tensor].producer].push_back(tensor);
        for (const auto &row : work.tensors[tensor].moved_s) {
            moves = moves || std::any_of(row.begin(), row.end(), [](double time_s) { return time_s != 0; });
        }
    }
    for (const auto &each : work.room) {
        holds[each.first].emplace_back(each.then, each.slots);
        waits_for_room[each.then].emplace_back(each.first, each.slots);
    }
    for (std::size_t i = 0; i < work.orders.size(); ++i) {
        for (const TaskId task : work.orders[i].tasks) {
            order_of[task] = i;
        }
    }
    depth = depths_of(producers);
}

ProcessorId planned(const Work &work, const Links &links, const Job &job) {
    const auto &processors = work.orders[links.order_of[job.task]].processors;
    return processors[job.frame % processors.size()];
}

}  // namespace parapipe
