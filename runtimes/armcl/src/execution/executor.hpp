#pragma once

#include "execution/device.hpp"
#include "execution/frames.hpp"
#include "execution/results.hpp"
#include "execution/route.hpp"
#include "execution/turns.hpp"
#include "execution/worker.hpp"
#include "plan/plan.hpp"

#include <memory>
#include <vector>

namespace parapipe {

/// Runs a plan: a thread and a device for each processor, a channel for each transfer.
class Executor {
public:
    /// Makes devices and channels ready for the first frame.
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
    const Overlap &overlap() const { return overlap_; }
    std::size_t shared_routes() const;
    std::size_t routes() const { return routes_.size(); }

private:
    struct Seat;

    void connect();
    void run_frames(Seat &seat, Frames &frames, const FrameFile &inputs, Results &results, bool times_each);
    void take(Seat &seat, const Turn &turn, std::size_t frame, const FrameFile &inputs, bool times_each);
    void hand_over(Seat &seat, const Turn &turn, std::size_t frame, Results &results);

    const Plan &plan_;
    Overlap overlap_;
    std::vector<Route> routes_;
    std::vector<std::unique_ptr<Seat>> seats_;
    std::vector<std::vector<float>> times_s_;
};

}  // namespace parapipe
