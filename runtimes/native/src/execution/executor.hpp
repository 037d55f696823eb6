#pragma once

#include "execution/buffers.hpp"
#include "execution/device.hpp"
#include "execution/frames.hpp"
#include "execution/host_slot.hpp"
#include "execution/orders.hpp"
#include "execution/results.hpp"
#include "execution/turns.hpp"
#include "execution/worker.hpp"
#include "plan/plan.hpp"

#include <memory>
#include <vector>

namespace parapipe {

/// Runs a plan: a thread and a device for each processor, and memory that they share.
class Executor {
public:
    /// Makes devices and memory ready for the first frame.
    /// @throws Error if a device cannot do what the plan wants of it.
    Executor(const Plan &plan, const std::vector<float> &weights);
    ~Executor();
    Executor(const Executor &) = delete;
    Executor &operator=(const Executor &) = delete;

    /// Runs frames until all are done or none is admitted any more.
    /// @param times_each Whether to wait for each operator, so that times of a GPU are those of the
    ///     operator and not of handing it over.
    void run(Frames &frames, const FrameFile &inputs, Results &results, bool times_each);

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
    struct Seat;

    Device &device(ProcessorId processor) const;
    LayoutOf layouts() const;
    Layout layout(const Buffer &buffer) const;
    void configure();
    void allocate();
    void make_slots(std::size_t buffer);
    void place_slots(std::size_t buffer);
    Slot &slot(std::size_t buffer, std::size_t frame) { return *slots_[buffer][frame % slots_[buffer].size()]; }
    void run_frames(Seat &seat, Frames &frames, const FrameFile &inputs, Results &results, bool times_each);
    void prepare(Seat &seat, const Turn &turn, std::size_t frame, const FrameFile &inputs);
    void compute(Seat &seat, const Turn &turn, const Frames &frames, bool times_each);
    void hand_over(Seat &seat, const Turn &turn, std::size_t frame, Results &results);

    const Plan &plan_;
    const Orders orders_;
    Overlap overlap_;
    Buffers buffers_;
    Semaphores semaphores_;
    std::vector<std::unique_ptr<Seat>> seats_;
    /// Of each buffer that is more than a device's own memory, one for each frame.
    std::vector<std::vector<std::unique_ptr<Slot>>> slots_;
    /// One for each memory of the plan.
    std::vector<std::unique_ptr<HostSlot>> arenas_;
    std::vector<std::vector<float>> times_s_;
    std::vector<std::vector<double>> starts_s_;
};

}  // namespace parapipe
