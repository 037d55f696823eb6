#pragma once

#include "plan/plan.hpp"

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace parapipe {

using TaskId = std::size_t;

/// A task for one frame.
struct Job {
    TaskId task = kNone;
    std::size_t frame = 0;

    bool operator==(const Job &other) const { return task == other.task && frame == other.frame; }
    bool operator<(const Job &other) const { return std::tie(task, frame) < std::tie(other.task, other.frame); }
};

/// What is to be done for every frame, as parapipe/strategies/work.py has it. A task is what a processor does at
/// one go. Times are seconds; infinite where a processor cannot run a task.
struct Work {
    /// What one task makes and others read.
    struct Made {
        TaskId producer = kNone;
        /// To move it, by the processors that it goes from and to.
        std::vector<std::vector<double>> moved_s;
    };
    /// What the plan has processors do in a round: tasks in this order, frames in turn if there are several.
    struct Order {
        std::vector<TaskId> tasks;
        std::vector<ProcessorId> processors;
    };
    /// `then` may begin a frame once `first` has ended the frame so many before and all earlier ones.
    struct Room {
        TaskId then = kNone;
        TaskId first = kNone;
        std::size_t slots = 1;
    };

    std::size_t processors = 0;
    /// By task and processor.
    std::vector<std::vector<double>> time_s;
    std::vector<Made> tensors;
    /// By task, numbers of tensors.
    std::vector<std::vector<std::size_t>> reads;
    std::vector<Room> room;
    std::vector<Order> orders;
    /// Of each task: in round r the plan has it done for frame r - lag.
    std::vector<std::size_t> lag;
    /// Tasks that wait for a frame's admission.
    std::vector<TaskId> first;

    std::size_t tasks() const { return reads.size(); }
};

/// What follows from it.
struct Links {
    explicit Links(const Work &work);

    std::vector<std::vector<TaskId>> producers;
    std::vector<std::vector<TaskId>> readers;
    /// Tensors that each task makes, and tasks that read each tensor.
    std::vector<std::vector<std::size_t>> makes;
    std::vector<std::vector<TaskId>> read_by;
    /// How many tasks lie on the longest way to each task.
    std::vector<std::size_t> depth;
    /// Tasks that each task makes room for, those that it waits for, and how many frames lie between.
    std::vector<std::vector<std::pair<TaskId, std::size_t>>> holds;
    std::vector<std::vector<std::pair<TaskId, std::size_t>>> waits_for_room;
    /// Producers, and admission, that each task waits for in every frame.
    std::vector<std::size_t> waits;
    /// Order of each task.
    std::vector<std::size_t> order_of;
    /// Whether any tensor takes any time to move.
    bool moves = false;
};

/// The processor that the plan has do a job.
ProcessorId planned(const Work &work, const Links &links, const Job &job);

}  // namespace parapipe
