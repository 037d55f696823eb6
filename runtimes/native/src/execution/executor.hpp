#pragma once

#include "execution/buffers.hpp"
#include "execution/frames.hpp"
#include "execution/host_slot.hpp"
#include "execution/orders.hpp"
#include "execution/results.hpp"
#include "execution/seat.hpp"
#include "execution/standing.hpp"
#include "execution/tasks.hpp"
#include "execution/turns.hpp"
#include "plan/plan.hpp"

#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace parapipe {

/// Runs a plan: a thread and a device for each processor, and memory that they share.
///
/// In the plan's order, each processor takes its turns, and memory is that of the plan. With another strategy, each
/// processor can run every operator: the plan is looked at as one of a single processor, of which every thread has
/// a device, and every frame on its way has memory of its own.
class Executor {
public:
    /// Makes devices and memory ready for the first frame.
    /// @param strategy What decides which processor runs what.
    /// @throws Error if a device cannot do what the plan wants of it, or there is no such strategy.
    Executor(const Plan &plan, const std::vector<float> &weights, const std::string &strategy = "plan");
    ~Executor();
    Executor(const Executor &) = delete;
    Executor &operator=(const Executor &) = delete;

    /// Runs frames until all are done or none is admitted any more.
    /// @param times_each Whether to wait for each operator, so that times of a GPU are those of the
    ///     operator and not of handing it over.
    void run(Frames &frames, const Inputs &inputs, Outputs &results, bool times_each);

    /// Lets every processor wait for frames, until this object ends; then `run_batch` allocates nothing.
    void stand_by();
    /// Runs frames in the plan's order, and waits for the last one; only after `stand_by`, one call at a time.
    /// @throws What a processor has thrown; then nothing can be run any more.
    void run_batch(Frames &frames, const Inputs &inputs, Outputs &results);

    /// Whether another strategy than the plan decides.
    bool decides() const { return together_ != nullptr; }
    /// Whether operators may run on other processors than their own.
    bool varies() const { return decides() || made_for_.replicated(); }
    /// The processor that ran an operator for a frame.
    ProcessorId ran_on(OperatorId op, std::size_t frame) const { return varies() ? ran_on_[op][frame] : places_[op]; }

    /// Seconds of each operator in each frame.
    const std::vector<std::vector<float>> &times_s() const { return times_s_; }
    /// Seconds from the start of the run to the start of each operator in each frame.
    const std::vector<std::vector<double>> &starts_s() const { return starts_s_; }
    const Overlap &overlap() const { return overlap_; }
    std::size_t shared_transfers() const;
    /// Concats and Slices, and those of them that copy nothing.
    std::size_t joins_and_cuts() const;
    std::size_t views() const;
    /// Bytes that transfers, Concats and Slices copy for each frame.
    std::size_t copied_bytes() const;
    /// Bytes of the arenas, those of a frame's tensors that lie in them, and those of all others, of all
    /// frames on their way and with padding.
    std::size_t arena_bytes() const;
    /// Operators that are computed by plain loops, for lack of a fast function.
    std::vector<OperatorId> plain() const;
    std::size_t inside_bytes() const;
    std::size_t outside_bytes() const;

private:
    Device &device(ProcessorId processor) const;
    void stand_down();
    LayoutOf layouts() const;
    Layout layout(const Buffer &buffer) const;
    Padding padding(const Instance &instance) const;
    void configure();
    void allocate();
    void share_out_frames();
    void make_slots(std::size_t buffer);
    void place_slots(std::size_t buffer);
    Slot &slot(std::size_t buffer, std::size_t frame) { return *slots_[buffer][frame % slots_[buffer].size()]; }
    void run_frames(Seat &seat, Frames &frames, const Inputs &inputs, Outputs &results, bool times_each);
    void prepare(Seat &seat, const Turn &turn, std::size_t frame);
    void load(const Turn &turn, ProcessorId processor, std::size_t frame, const Inputs &inputs,
              const std::function<std::byte *(TensorId)> &memory);
    void compute(Seat &seat, const Turn &turn, std::size_t frame, const Frames &frames, bool times_each);
    void run_decided(Frames &frames, const Inputs &inputs, Outputs &results);
    void measure_tasks(const Inputs &inputs, Tasks &tasks);
    void load_all(std::size_t frame, const Inputs &inputs);
    void note_borders();
    std::vector<std::unique_lock<std::mutex>> hold_borders(const Turn &turn, std::size_t frame);
    void run_turn(Seat &seat, const Turn &turn, std::size_t frame, Frames &frames, Outputs &results);
    void wait_for(std::vector<std::future<void>> ends);
    void hand_over(Seat &seat, const Turn &turn, std::size_t frame, Outputs &results);

    const Plan &made_for_;
    const std::string strategy_;
    /// The plan as one of a single processor, where a strategy decides.
    const std::unique_ptr<const Plan> together_;
    const Plan &plan_;
    const std::vector<ProcessorId> places_;
    const Orders orders_;
    Overlap overlap_;
    Buffers buffers_;
    Semaphores semaphores_;
    std::vector<std::unique_ptr<Seat>> seats_;
    /// Of each buffer that is more than a device's own memory, one for each frame.
    std::vector<std::vector<std::unique_ptr<Slot>>> slots_;
    /// Where a strategy decides, of each buffer whose padding several operators may write to, one for each frame;
    /// and by operator the numbers of those that it uses.
    std::map<std::size_t, std::deque<std::mutex>> borders_;
    std::vector<std::vector<std::size_t>> borders_of_;
    /// One for each memory of the plan; where a strategy decides, one for each frame on its way.
    std::vector<std::unique_ptr<HostSlot>> arenas_;
    std::size_t frame_bytes_ = 0;
    std::vector<std::vector<float>> times_s_;
    std::vector<std::vector<double>> starts_s_;
    std::vector<std::vector<ProcessorId>> ran_on_;  // by operator and frame
    std::mutex delivering_;
    std::unique_ptr<Standing> standing_;
    std::mutex noting_;
};

}  // namespace parapipe
