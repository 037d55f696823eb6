#include "execution/executor.hpp"
#include "execution/frame_memory.hpp"
#include "execution/pool.hpp"
#include "measure/statistics.hpp"
#include "strategies/strategy.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace parapipe {
namespace {

constexpr std::size_t kMeasured = 3;  // frames, for times of all tasks on all processors

}  // namespace

/// Memory for all frames that may be on their way, each in one piece.
void Executor::share_out_frames() {
    std::vector<std::size_t> size_bytes;
    for (const auto &buffer : buffers_.all) {
        size_bytes.push_back(layout(buffer).size_bytes);
    }
    const auto memory = share_out(plan_, buffers_, size_bytes);
    frame_bytes_ = memory.size_bytes;
    for (std::size_t k = 0; k < frames_under_way(made_for_); ++k) {
        auto *const begin = arenas_.emplace_back(std::make_unique<HostSlot>(frame_bytes_))->host();
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            slots_[i].push_back(std::make_unique<PlacedSlot>(begin + memory.offset_bytes[i]));
        }
    }
}

/// Frames as a strategy decides: what tasks take on each processor is measured before.
void Executor::run_decided(Frames &frames, const Inputs &inputs, Outputs &results) {
    auto tasks = tasks_of(made_for_);
    auto strategy = make_strategy(strategy_, tasks.work);
    measure_tasks(inputs, tasks);
    strategy = make_strategy(strategy_, tasks.work);
    const auto count = frames.count();
    for (OperatorId v = 0; v < plan_.operators.size(); ++v) {
        starts_s_[v].assign(count, 0.0);
        times_s_[v].assign(count, 0.0F);
        ran_on_[v].assign(count, 0);
    }
    frames.start();
    Pool pool(tasks.work, std::move(strategy), frames, frames_under_way(made_for_), spin_of(made_for_),
              [&, this](std::size_t frame) { load_all(frame, inputs); });
    std::vector<bool> is_first(tasks.work.tasks());
    for (const TaskId task : tasks.work.first) {
        is_first[task] = true;
    }
    const auto work = [&](Seat &seat) {
        try {
            pool.work(seat.number, [&](const Job &job) {
                if (is_first[job.task]) {
                    frames.note_begin(job.frame);
                }
                for (const OperatorId v : tasks.operators[job.task]) {
                    run_turn(seat, seat.turns[v], job.frame, frames, results);
                }
            });
            seat.device->finish();
        } catch (...) {
            pool.close();
            throw;
        }
    };
    std::vector<std::future<void>> ends;
    for (auto &seat : seats_) {
        ends.push_back(seat->worker.post([&, this] { work(*seat); }));
    }
    try {
        pool.feed();
    } catch (const Closed &) {
        // A processor has failed, and says why.
    } catch (...) {
        pool.close();
        wait_for(std::move(ends));
        throw;
    }
    wait_for(std::move(ends));
    for (OperatorId v = 0; v < plan_.operators.size(); ++v) {
        starts_s_[v].resize(frames.count());
        times_s_[v].resize(frames.count());
    }
}

/// Loads all graph inputs of a frame. A processor's device may be at work meanwhile.
void Executor::load_all(std::size_t frame, const Inputs &inputs) {
    for (const auto &turn : seats_.front()->turns) {
        load(turn, 0, frame, inputs, [&](TensorId tensor) {
            const auto found = std::find_if(turn.bindings.begin(), turn.bindings.end(),
                                            [tensor](const Binding &each) { return each.tensor == tensor; });
            return slot(found->buffer, frame).host() + found->offset_bytes;
        });
    }
}

/// A function may write into the padding of what it reads: those that read one tensor then run one after the other.
void Executor::note_borders() {
    std::map<std::size_t, std::set<OperatorId>> users;
    for (const auto &turn : seats_.front()->turns) {
        for (const auto &binding : turn.bindings) {
            if (!turn.view && !buffers_.all[binding.buffer].padding.none()) {
                users[binding.buffer].insert(turn.op);
            }
        }
    }
    borders_of_.resize(plan_.operators.size());
    for (const auto &[buffer, operators] : users) {
        borders_[buffer].resize(slots_[buffer].size());
        for (const OperatorId v : operators) {
            borders_of_[v].push_back(buffer);  // in the order of their numbers: nobody waits in a circle
        }
    }
}

std::vector<std::unique_lock<std::mutex>> Executor::hold_borders(const Turn &turn, std::size_t frame) {
    std::vector<std::unique_lock<std::mutex>> held;
    for (const auto buffer : borders_of_[turn.op]) {
        auto &frames = borders_.at(buffer);
        held.emplace_back(frames[frame % frames.size()]);
    }
    return held;
}

/// Runs an operator for a frame, wherever it may be.
void Executor::run_turn(Seat &seat, const Turn &turn, std::size_t frame, Frames &frames, Outputs &results) {
    prepare(seat, turn, frame);
    {
        const auto held = hold_borders(turn, frame);
        compute(seat, turn, frame, frames, false);
    }
    hand_over(seat, turn, frame, results);
    if (turn.result != kNone) {
        frames.note_end(frame);
    }
}

/// Runs all tasks on each processor in turn, one after the other, and notes the median of what they took.
void Executor::measure_tasks(const Inputs &inputs, Tasks &tasks) {
    std::vector<TaskId> order(tasks.operators.size());
    const Links links(tasks.work);
    for (TaskId task = 0; task < order.size(); ++task) {
        order[task] = task;
    }
    std::stable_sort(order.begin(), order.end(), [&links](TaskId a, TaskId b) { return links.depth[a] < links.depth[b]; });
    std::vector<std::vector<std::vector<float>>> took_s(
        order.size(), std::vector<std::vector<float>>(seats_.size()));
    for (std::size_t frame = 0; frame < kMeasured; ++frame) {
        load_all(frame, inputs);
        for (const TaskId task : order) {
            for (auto &seat : seats_) {
                seat->worker.call([&] {
                    const auto begin = Frames::Clock::now();
                    for (const OperatorId v : tasks.operators[task]) {
                        prepare(*seat, seat->turns[v], frame);
                        if (!seat->turns[v].view) {
                            seat->device->run(v);
                        }
                    }
                    took_s[task][seat->number].push_back(
                        std::chrono::duration<float>(Frames::Clock::now() - begin).count());
                });
            }
        }
    }
    for (const TaskId task : order) {
        for (const auto &seat : seats_) {
            tasks.work.time_s[task][seat->number] = lower_median(took_s[task][seat->number]);
        }
    }
}

}  // namespace parapipe
