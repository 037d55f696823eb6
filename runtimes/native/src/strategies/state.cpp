#include "strategies/state.hpp"

#include "error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace parapipe {

void FrameSet::add(std::size_t frame) {
    others.insert(frame);
    while (!others.empty() && *others.begin() == below) {
        others.erase(others.begin());
        ++below;
    }
}

void Pace::add(double took, double predicted) {
    const double kept = window_s != 0 ? std::exp(-predicted / window_s) : 0.0;
    took_s = kept * took_s + took;
    predicted_s = kept * predicted_s + predicted;
}

Agenda::Agenda(const Work &work, ProcessorId processor) : work_(work) {
    for (const auto &order : work.orders) {
        const auto found = std::find(order.processors.begin(), order.processors.end(), processor);
        if (found != order.processors.end() && !order.tasks.empty()) {
            order_ = &order;
            number_ = static_cast<std::size_t>(found - order.processors.begin());
            break;
        }
    }
    if (order_ != nullptr) {
        most_lag_ = *std::max_element(work.lag.begin(), work.lag.end());
        round_ = std::numeric_limits<std::size_t>::max();
        for (const TaskId task : order_->tasks) {
            round_ = std::min(round_, work.lag[task]);
        }
    }
}

/// What the plan has the processor do next, without an end.
Job Agenda::next() {
    while (true) {
        if (in_round_ == order_->tasks.size()) {
            in_round_ = 0;
            ++round_;
        }
        const TaskId task = order_->tasks[in_round_++];
        if (work_.lag[task] <= round_ && (round_ - work_.lag[task]) % order_->processors.size() == number_) {
            return {task, round_ - work_.lag[task]};
        }
    }
}

State::State(const Work &done, bool follows, std::size_t count)
    : work(done), links(done), follows_plan(follows), running(done.processors), last(done.processors),
      frames(count), begun(done.tasks()), ended(done.tasks()) {
    for (ProcessorId p = 0; p < done.processors; ++p) {
        free.push_back(p);
        agendas_.emplace_back(done, p);
        double own_s = 0;
        for (const auto &order : done.orders) {
            if (std::find(order.processors.begin(), order.processors.end(), p) != order.processors.end()) {
                for (const TaskId task : order.tasks) {
                    own_s += done.time_s[task][p];
                }
            }
        }
        paces.push_back({own_s});
    }
}

void State::execute(const Job &job, ProcessorId on) {
    const auto place = std::find(free.begin(), free.end(), on);
    const auto found = ready.find(job);
    if (place == free.end() || found == ready.end() || !runs(job.task, on)) {
        throw Error("a strategy gives a processor what it cannot do now");
    }
    const double begin = begin_s(job, on);
    running[on] = Running{job, begin, begin + seconds(job, on), count_++};
    free.erase(place);
    ready.erase(found);
    begun[job.task].add(job.frame);
    assigned.push_back(on);
}

bool State::runs(TaskId task, ProcessorId processor) const {
    return work.time_s[task][processor] < std::numeric_limits<double>::infinity();
}

std::optional<Job> State::planned_next(ProcessorId processor) {
    agendas_[processor].drop_begun(*this);
    return agendas_[processor].at(0, *this);
}

std::optional<Job> State::planned_at(ProcessorId processor, std::size_t position) {
    return agendas_[processor].at(position, *this);
}

double State::begin_s(const Job &job, ProcessorId processor) const {
    double begin = now_s;
    if (links.moves) {
        for (const auto tensor : work.reads[job.task]) {
            if (places.count({tensor, job.frame}) > 0) {
                begin = std::max(begin, there_s(tensor, job, processor));
            }
        }
    }
    return begin;
}

double State::there_s(std::size_t tensor, const Job &job, ProcessorId processor) const {
    const auto &place = places.at({tensor, job.frame});
    if (processor == place.processor) {
        return now_s;
    }
    if (const auto came = place.came_s.find(processor); came != place.came_s.end()) {
        return std::max(now_s, came->second.first);
    }
    const double moved = work.tensors[tensor].moved_s[place.processor][processor];
    return std::max(now_s, sent_s(tensor, job, processor) + moved);
}

double State::sent_s(std::size_t tensor, const Job &job, ProcessorId processor) const {
    const bool pushed = follows_plan && planned(job) == processor;
    return pushed ? places.at({tensor, job.frame}).made_s : now_s;
}

std::size_t State::waits_of(const Job &job) const {
    auto waits = links.waits[job.task];
    for (const auto &[other, slots] : links.waits_for_room[job.task]) {
        waits += job.frame >= slots ? 1 : 0;
    }
    return waits;
}

}  // namespace parapipe
