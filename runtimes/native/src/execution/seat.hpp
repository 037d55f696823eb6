#pragma once

#include "execution/device.hpp"
#include "execution/turns.hpp"
#include "execution/worker.hpp"

#include <memory>
#include <vector>

namespace parapipe {

/// A processor at work. The device is made, used and destroyed on the worker's thread.
struct Seat {
    /// Of the plan, and of the plan by which memory is shared out.
    ProcessorId number = kNone;
    ProcessorId processor = kNone;
    /// Of so many that take turns on frames, it has those of this number.
    std::size_t turn = 0;
    std::size_t of = 1;
    /// The plan that the device has, if it is the only processor of it.
    std::unique_ptr<const Plan> plan;
    std::unique_ptr<Device> device;
    std::vector<Turn> turns;
    std::vector<std::size_t> done;  // by turn, the frames that are done
    std::vector<float> dense;       // room for a graph output
    Worker worker;

    ~Seat() {
        worker.call([this] { device.reset(); });
    }
};

}  // namespace parapipe
