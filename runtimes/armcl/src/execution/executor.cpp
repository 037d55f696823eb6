#include "execution/executor.hpp"

#include <chrono>
#include <exception>
#include <set>

namespace parapipe {

/// A processor at work. The device is made, used and destroyed on the worker's thread.
struct Executor::Seat {
    std::unique_ptr<Device> device;
    std::vector<Turn> turns;
    std::vector<float> dense;  // room for a graph output
    Worker worker;

    ~Seat() {
        worker.call([this] { device.reset(); });
    }
};

Executor::Executor(const Plan &plan, const std::vector<float> &weights)
    : plan_(plan), times_s_(plan.operators.size()) {
    for (ProcessorId p = 0; p < plan.processors.size(); ++p) {
        auto &seat = *seats_.emplace_back(std::make_unique<Seat>());
        // One after the other: the library's functions cannot be configured side by side.
        seat.worker.call([&] {
            seat.device = make_device(plan, p, weights, overlap_);
            seat.device->configure();
        });
    }
    connect();
    for (ProcessorId p = 0; p < plan.processors.size(); ++p) {
        auto &seat = *seats_[p];
        std::set<TensorId> bound;
        for (const auto &route : routes_) {
            if (route.transfer.target == p || (route.transfer.source == p && route.shared)) {
                bound.insert(route.transfer.tensor);
            }
        }
        seat.worker.call([&] { seat.device->allocate(bound); });
        seat.turns = turns_of(plan, p, routes_);
    }
}

Executor::~Executor() = default;

std::size_t Executor::shared_routes() const {
    std::size_t count = 0;
    for (const auto &route : routes_) {
        count += route.shared;
    }
    return count;
}

void Executor::connect() {
    const auto device = [this](ProcessorId p) -> Device & { return *seats_[p]->device; };
    std::vector<Padding> padding;
    for (const auto &transfer : plan_.transfers) {
        padding.push_back(larger_of(device(transfer.source).padding(transfer.tensor),
                                    device(transfer.target).padding(transfer.tensor)));
    }
    const auto shared = shared_transfers(plan_, padding);
    for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
        const auto &transfer = plan_.transfers[i];
        Route route;
        route.transfer = transfer;
        route.shared = shared[i];
        if (route.shared) {
            device(transfer.source).extend(transfer.tensor, padding[i]);
            device(transfer.target).extend(transfer.tensor, padding[i]);
        }
        route.layout = device(transfer.target).layout(transfer.tensor);
        const bool made_by_source =
            route.shared && plan_.processors[transfer.source].backend == BackendKind::opencl;
        auto &maker = *seats_[made_by_source ? transfer.source : transfer.target];
        std::vector<std::unique_ptr<Slot>> slots;
        maker.worker.call([&] {
            for (std::size_t k = 0; k < transfer.queue_depth; ++k) {
                slots.push_back(maker.device->make_slot(transfer.tensor));
            }
        });
        route.channel = std::make_unique<Channel>(std::move(slots));
        routes_.push_back(std::move(route));
    }
}

void Executor::run(Frames &frames, const FrameFile &inputs, Results &results, bool times_each) {
    frames.start();
    std::vector<std::future<void>> ends;
    for (auto &seat : seats_) {
        ends.push_back(seat->worker.post([&, this] { run_frames(*seat, frames, inputs, results, times_each); }));
    }
    std::exception_ptr failure;
    for (auto &end : ends) {
        try {
            end.get();
        } catch (const Closed &) {
            // Another processor has failed, and says why.
        } catch (...) {
            failure = failure ? failure : std::current_exception();
        }
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

void Executor::run_frames(Seat &seat, Frames &frames, const FrameFile &inputs, Results &results, bool times_each) {
    try {
        for (std::size_t frame = 0; frames.admit(frame); ++frame) {
            for (const auto &turn : seat.turns) {
                take(seat, turn, frame, inputs, times_each);
                hand_over(seat, turn, frame, results);
                if (turn.result != kNone) {
                    frames.note_end(frame);
                }
            }
        }
        seat.device->finish();
    } catch (...) {
        for (auto &route : routes_) {
            route.channel->close();
        }
        throw;
    }
}

/// Waits for what the operator reads and for room for what it makes, and runs it.
void Executor::take(Seat &seat, const Turn &turn, std::size_t frame, const FrameFile &inputs, bool times_each) {
    auto &device = *seat.device;
    for (const std::size_t input : turn.loads) {
        const TensorId tensor = plan_.inputs[input];
        const auto *data = reinterpret_cast<const std::byte *>(inputs.data(frame, input));
        copy(data, layout_of(plan_.tensors[tensor].shape), device.map(tensor), device.layout(tensor));
        device.unmap(tensor);
    }
    for (Route *route : turn.arrivals) {
        device.bind(route->transfer.tensor, route->channel->begin_read());
    }
    for (Route *route : turn.sends) {
        if (route->shared) {
            device.bind(route->transfer.tensor, route->channel->begin_write());
        }
    }
    const auto begin = Frames::Clock::now();
    device.run(turn.op);
    if (times_each) {
        device.finish();
    }
    times_s_[turn.op].push_back(std::chrono::duration<float>(Frames::Clock::now() - begin).count());
}

/// Gives what the operator made to those that wait for it, and gives back what it was the last to read.
void Executor::hand_over(Seat &seat, const Turn &turn, std::size_t frame, Results &results) {
    auto &device = *seat.device;
    const TensorId output = plan_.operators[turn.op].output;
    const auto here = device.layout(output);
    if (turn.result != kNone) {
        const auto dense = layout_of(plan_.tensors[output].shape);
        seat.dense.resize(plan_.tensors[output].elements());
        copy(device.map(output), here, reinterpret_cast<std::byte *>(seat.dense.data()), dense);
        device.unmap(output);
        results.deliver(turn.result, frame, seat.dense.data());
    }
    for (Route *route : turn.sends) {
        if (!route->shared) {
            auto &slot = route->channel->begin_write();
            copy(device.map(output), here, slot.host(), route->layout);
            device.unmap(output);
            route->channel->end_write();
        }
    }
    for (Route *route : turn.sends) {
        if (route->shared) {
            device.leave(output);
            route->channel->end_write();
        }
    }
    for (Route *route : turn.departures) {
        device.leave(route->transfer.tensor);
        route->channel->end_read();
    }
}

}  // namespace parapipe
