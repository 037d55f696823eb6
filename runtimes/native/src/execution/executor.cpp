#include "execution/executor.hpp"

#include "execution/placing.hpp"
#include "execution/views.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <utility>

namespace parapipe {

Executor::Executor(const Plan &plan, const std::vector<float> &weights, const std::string &strategy)
    : made_for_(plan), strategy_(strategy), together_(plan_together(plan, strategy)), plan_(together_ ? *together_ : plan),
      places_(plan.places()), orders_(plan_), times_s_(plan.operators.size()), starts_s_(plan.operators.size()),
      ran_on_(plan.operators.size()) {
    for (ProcessorId p = 0; p < plan.processors.size(); ++p) {
        auto &seat = *seats_.emplace_back(std::make_unique<Seat>());
        const auto &processor = plan.processors[p];
        seat.number = p;
        seat.processor = decides() ? 0 : processor.is_replica() ? processor.first : p;
        if (decides() || processor.is_replica()) {
            auto own = decides() ? on_one_processor(plan) : plan;
            own.processors[seat.processor].cores = processor.cores;
            own.processors[seat.processor].threads = processor.threads;
            seat.plan = std::make_unique<const Plan>(std::move(own));
        }
        if (const auto &replicas = plan_.processors[seat.processor].replicas; !replicas.empty()) {
            const auto own = std::find(replicas.begin(), replicas.end(), p);
            seat.of = 1 + replicas.size();
            seat.turn = own == replicas.end() ? 0 : 1 + static_cast<std::size_t>(own - replicas.begin());
        }
        seat.worker.call([&] {
            seat.device = make_device(seat.plan ? *seat.plan : plan, seat.processor, weights, overlap_);
            for (const OperatorId v : plan_.processors[seat.processor].operators) {
                seat.device->add_tensors(v);
            }
        });
    }
    configure();
    allocate();
    const auto turns = turns_of(plan_, buffers_, layouts(), semaphores_);
    for (auto &seat : seats_) {
        seat->turns = turns[seat->processor];
    }
    if (decides()) {
        note_borders();
    }
}

Device &Executor::device(ProcessorId processor) const {
    return *seats_[processor]->device;
}

LayoutOf Executor::layouts() const {
    return [this](const Instance &instance) { return device(instance.processor).layout(instance.tensor); };
}

Layout Executor::layout(const Buffer &buffer) const {
    return layout_of(plan_, buffer, layouts());
}

/// What the functions of any of the processors ask for around it.
Padding Executor::padding(const Instance &instance) const {
    Padding padding;
    for (const auto &seat : seats_) {
        if (seat->processor == instance.processor) {
            padding = larger_of(padding, seat->device->padding(instance.tensor));
        }
    }
    return padding;
}

std::size_t Executor::shared_transfers() const {
    const auto shared = std::count(buffers_.shared.begin(), buffers_.shared.end(), true);
    return decides() ? made_for_.transfers.size() : static_cast<std::size_t>(shared);
}

std::size_t Executor::joins_and_cuts() const {
    return static_cast<std::size_t>(std::count_if(plan_.operators.begin(), plan_.operators.end(), [](const auto &op) {
        return op.type == "Concat" || op.type == "Slice";
    }));
}

std::size_t Executor::views() const {
    return static_cast<std::size_t>(std::count(buffers_.views.begin(), buffers_.views.end(), true));
}

std::vector<OperatorId> Executor::plain() const {
    std::vector<OperatorId> found;
    for (ProcessorId p = 0; p < plan_.processors.size(); ++p) {
        for (const OperatorId v : plan_.processors[p].operators) {
            if (device(p).plain(v)) {
                found.push_back(v);
            }
        }
    }
    return found;
}

std::size_t Executor::copied_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
        bytes += buffers_.shared[i] ? 0 : plan_.tensors[plan_.transfers[i].tensor].size_bytes();
    }
    for (OperatorId v = 0; v < plan_.operators.size(); ++v) {
        const auto &op = plan_.operators[v];
        const bool copies = (op.type == "Concat" || op.type == "Slice") && !buffers_.views[v];
        bytes += copies ? plan_.tensors[op.output].size_bytes() : 0;
    }
    return bytes;
}

std::size_t Executor::arena_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t m = 0; plan_.arena && m < plan_.arena->memories.size(); ++m) {
        bytes += plan_.arena->memories[m].size_bytes;
    }
    return bytes;
}

std::size_t Executor::inside_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < buffers_.places.size(); ++i) {
        bytes += buffers_.places[i] ? plan_.tensors[plan_.arena->places[i].tensor].size_bytes() : 0;
    }
    return bytes;
}

std::size_t Executor::outside_bytes() const {
    std::size_t bytes = frame_bytes_ * (decides() ? frames_under_way(made_for_) : 0);
    for (const auto &buffer : buffers_.all) {
        bytes += buffer.place == kNone && !decides() ? buffer.frames * layout(buffer).size_bytes : 0;
    }
    return bytes;
}

/// Makes functions for all operators but views. Which these can be depends on the padding that the
/// functions ask for; so those that cannot get a function, too, and so on.
void Executor::configure() {
    std::vector<std::vector<bool>> configured(seats_.size(), std::vector<bool>(plan_.operators.size()));
    auto views = possible_views(plan_, orders_);
    do {
        for (auto &seat : seats_) {
            // One after the other: the library's functions cannot be configured side by side.
            seat->worker.call([&] {
                for (const OperatorId v : plan_.processors[seat->processor].operators) {
                    if (!views[v] && !configured[seat->number][v]) {
                        seat->device->configure(v);
                        configured[seat->number][v] = true;
                    }
                }
            });
        }
        buffers_ = buffers_of(plan_, orders_, views, [this](const Instance &instance) { return padding(instance); });
    } while (std::exchange(views, buffers_.views) != buffers_.views);
    buffers_.places = take_places(plan_, buffers_);
    for (auto &buffer : buffers_.all) {
        buffer.frames = decides() ? frames_under_way(made_for_) : buffer.frames;
    }
}

void Executor::allocate() {
    slots_.resize(buffers_.all.size());
    for (std::size_t m = 0; plan_.arena && m < plan_.arena->memories.size(); ++m) {
        arenas_.push_back(std::make_unique<HostSlot>(plan_.arena->memories[m].size_bytes));
    }
    std::vector<std::set<TensorId>> bound(plan_.processors.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const auto &buffer = buffers_.all[i];
        if (buffer.single()) {
            continue;
        }
        for (const auto &member : buffer.members) {
            for (auto &seat : seats_) {
                if (seat->processor == member.processor) {
                    seat->device->extend(member.tensor, buffer.padding);
                }
            }
            bound[member.processor].insert(member.tensor);
        }
        if (!decides()) {
            buffer.place == kNone ? make_slots(i) : place_slots(i);
        }
    }
    if (decides()) {
        share_out_frames();
    }
    for (auto &seat : seats_) {
        seat->worker.call([&] { seat->device->allocate(bound[seat->processor]); });
    }
}

void Executor::make_slots(std::size_t buffer) {
    const auto &made = buffers_.all[buffer];
    const auto &maker = made.maker(plan_);
    auto &seat = *seats_[maker.processor];
    seat.worker.call([&] {
        for (std::size_t k = 0; k < made.frames; ++k) {
            auto &slot = slots_[buffer].emplace_back(
                made.has_whole(plan_) ? seat.device->make_slot(maker.tensor)
                                      : std::make_unique<HostSlot>(layout(made).size_bytes));
            if (!made.seen_by_others(seat.processor)) {
                seat.device->take(*slot);
            }
        }
    });
}

/// Lets a buffer lie at its offsets in an arena.
void Executor::place_slots(std::size_t buffer) {
    const auto &place = plan_.arena->places[buffers_.all[buffer].place];
    for (const auto offset : place.offset_bytes) {
        slots_[buffer].push_back(std::make_unique<PlacedSlot>(arenas_[place.memory]->host() + offset));
    }
}

void Executor::run(Frames &frames, const Inputs &inputs, Outputs &results, bool times_each) {
    if (decides()) {
        run_decided(frames, inputs, results);
        return;
    }
    frames.start();
    std::vector<std::future<void>> ends;
    for (auto &seat : seats_) {
        ends.push_back(seat->worker.post([&, this] { run_frames(*seat, frames, inputs, results, times_each); }));
    }
    wait_for(std::move(ends));
}

/// @throws What a thread has thrown, but for those that only ended because another one had failed.
void Executor::wait_for(std::vector<std::future<void>> ends) {
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

namespace {

/// Lets nobody wait for bytes that were used in a turn, if all its frames are done.
void hand_on_for_good(const Turn &turn, std::size_t done, std::size_t end) {
    if (done == end) {
        for (const auto &handed : turn.hands_on) {
            handed.open();
        }
    }
}

}  // namespace

/// Takes its turns in order, round after round: those with a lag work on an earlier frame.
void Executor::run_frames(Seat &seat, Frames &frames, const Inputs &inputs, Outputs &results, bool times_each) {
    try {
        std::size_t end = kNone;
        std::size_t most = 0;
        for (const auto &turn : seat.turns) {
            most = std::max(most, turn.lag);
        }
        auto &done = seat.done;
        done.assign(seat.turns.size(), 0);
        for (std::size_t round = seat.turn; end == kNone || round < end + most; round += seat.of) {
            bool admitted = end != kNone;
            for (std::size_t i = 0; i < seat.turns.size(); ++i) {
                const auto &turn = seat.turns[i];
                if (turn.lag == 0 && !admitted) {
                    admitted = true;
                    end = frames.admit(round) ? kNone : round;
                    for (std::size_t j = 0; j < done.size(); ++j) {
                        hand_on_for_good(seat.turns[j], done[j], end);
                    }
                }
                if (turn.lag <= round && round - turn.lag < end) {
                    const std::size_t frame = round - turn.lag;
                    prepare(seat, turn, frame);
                    load(turn, seat.processor, frame, inputs, [&seat](TensorId tensor) { return seat.device->map(tensor); });
                    for (const auto &load : turn.loads) {
                        seat.device->unmap(plan_.inputs[load.position]);
                    }
                    if (turn.first) {
                        frames.note_begin(frame);
                    }
                    compute(seat, turn, frame, frames, times_each);
                    hand_over(seat, turn, frame, results);
                    done[i] = frame + 1;
                    hand_on_for_good(turn, done[i], end);
                    if (turn.result != kNone) {
                        frames.note_end(frame);
                    }
                }
            }
        }
        seat.device->finish();
    } catch (...) {
        for (auto &semaphore : semaphores_) {
            semaphore.close();
        }
        throw;
    }
}

/// Waits for what the operator reads and for room for what it makes.
void Executor::prepare(Seat &seat, const Turn &turn, std::size_t frame) {
    auto &device = *seat.device;
    for (const auto &arrival : turn.arrivals) {
        arrival.acquire(frame);
    }
    for (const auto &claim : turn.claims) {
        claim.acquire(frame);
    }
    for (const std::size_t buffer : turn.takes) {
        device.take(slot(buffer, frame));
    }
    for (const auto &binding : turn.bindings) {
        device.bind(binding.tensor, slot(binding.buffer, frame), binding.offset_bytes);
    }
}

/// Brings as much of the graph inputs as is read.
void Executor::load(const Turn &turn, ProcessorId processor, std::size_t frame, const Inputs &inputs,
                    const std::function<std::byte *(TensorId)> &memory) {
    for (const auto &[position, start, extents] : turn.loads) {
        const TensorId tensor = plan_.inputs[position];
        const auto *data = reinterpret_cast<const std::byte *>(inputs.data(frame, position));
        copy(data, part_of(layout_of(plan_.tensors[tensor].shape), start, extents), memory(tensor),
             part_of(device(processor).layout(tensor), start, extents));
    }
}

namespace {

/// Notes something of a frame; of those before that were not run, nothing.
template <class Value>
void note(std::vector<Value> &values, std::size_t frame, Value value) {
    values.resize(std::max(values.size(), frame + 1));
    values[frame] = value;
}

}  // namespace

void Executor::compute(Seat &seat, const Turn &turn, std::size_t frame, const Frames &frames, bool times_each) {
    if (!frames.timed()) {
        if (!turn.view) {
            seat.device->run(turn.op);
        }
        return;
    }
    const auto begin = Frames::Clock::now();
    if (!turn.view) {
        seat.device->run(turn.op);
    }
    if (times_each) {
        seat.device->finish();
    }
    const auto time_s = std::chrono::duration<float>(Frames::Clock::now() - begin).count();
    auto lock = std::unique_lock<std::mutex>(noting_, std::defer_lock);
    if (made_for_.replicated() && !decides()) {
        lock.lock();  // another processor may note times of the same operator
    }
    if (varies()) {
        note(ran_on_[turn.op], frame, seat.number);
    }
    note(starts_s_[turn.op], frame, frames.since_start_s(begin));
    note(times_s_[turn.op], frame, time_s);
}

/// Gives what the operator made to those that wait for it, and gives back what it was the last to read.
void Executor::hand_over(Seat &seat, const Turn &turn, std::size_t frame, Outputs &results) {
    auto &device = *seat.device;
    const TensorId output = plan_.operators[turn.op].output;
    const auto here = device.layout(output);
    if (turn.result != kNone) {
        const auto dense = layout_of(plan_.tensors[output].shape);
        seat.dense.resize(plan_.tensors[output].elements());
        copy(device.map(output), here, reinterpret_cast<std::byte *>(seat.dense.data()), dense);
        device.unmap(output);
        const std::lock_guard<std::mutex> lock(delivering_);
        results.deliver(turn.result, frame, seat.dense.data());
    }
    for (const auto &made : turn.copies) {
        for (const auto &claim : made.claims) {
            claim.acquire(frame);
        }
        auto *const there = slot(made.target.buffer, frame).host() + made.target.offset_bytes;
        copy(device.map(output), here, there, made.layout);
        device.unmap(output);
        made.filled.release(frame);
    }
    for (const std::size_t buffer : turn.leaves) {
        device.leave(slot(buffer, frame));
    }
    for (const auto &sent : turn.sends) {
        sent.release(frame);
    }
    for (const auto &released : turn.releases) {
        released.release(frame);
    }
    for (const auto &handed : turn.hands_on) {
        handed.release(frame);
    }
}

}  // namespace parapipe
