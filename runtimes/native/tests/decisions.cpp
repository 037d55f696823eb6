// Sends frames through what a strategy decides, on a simulated clock, as parapipe/simulate/strategies.py does.
//
//   parapipe-native-decisions FILE
//
// Writes what was done, and by whom: a list of [processor, task, frame, start, end].

#include "error.hpp"
#include "strategies/engine.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <map>

namespace {

using namespace parapipe;
using nlohmann::json;

Work work_of(const json &document) {
    Work work;
    work.processors = document["processors"];
    for (const auto &row : document["time_s"]) {
        auto &times = work.time_s.emplace_back();
        for (const auto &time : row) {  // null where a processor cannot run a task
            times.push_back(time.is_null() ? std::numeric_limits<double>::infinity() : time.get<double>());
        }
    }
    for (const auto &each : document["tensors"]) {
        work.tensors.push_back({each["producer"], each["moved_s"]});
    }
    work.reads = document["reads"].get<std::vector<std::vector<std::size_t>>>();
    for (const auto &each : document["room"]) {
        work.room.push_back({each[0], each[1], each[2]});
    }
    for (const auto &each : document["orders"]) {
        work.orders.push_back({each["tasks"], each["processors"]});
    }
    work.lag = document["lag"].get<std::vector<std::size_t>>();
    work.first = document["first"].get<std::vector<TaskId>>();
    return work;
}

class Replay {
public:
    explicit Replay(const json &document)
        : document_(document), work_(work_of(document["work"])), frames_(document["frames"]),
          engine_(work_, make_strategy(document["strategy"], work_), frames_) {}

    json run() {
        auto left = frames_ * work_.tasks();
        while (left > 0) {
            while (admit() || begin_jobs()) {
            }
            now_s_ = next_event_s();
            left -= end_due_jobs();
        }
        return spans_;
    }

private:
    /// None if that is not known, or there is none.
    std::optional<double> next_admission_s() const {
        if (admitted_ == frames_) {
            return std::nullopt;
        }
        if (!document_["interval_s"].is_null()) {
            return static_cast<double>(admitted_) * document_["interval_s"].get<double>();
        }
        const std::size_t waiting = document_["waiting"];
        const bool may = admitted_ < waiting || begun_.count(admitted_ - waiting) > 0;
        return may ? std::optional(now_s_) : std::nullopt;
    }

    bool admit() {
        const auto due_s = next_admission_s();
        if (!due_s || *due_s > now_s_) {
            return false;
        }
        ++admitted_;
        engine_.admit(now_s_);
        return true;
    }

    bool begin_jobs() {
        const auto processors = engine_.decide(now_s_);
        for (const auto p : processors) {
            const auto [task, frame] = engine_.state().running[p]->job;
            const double start = engine_.begin_s(p);
            const double end = start + work_.time_s[task][p] * document_["took"][task][frame][p].get<double>();
            spans_.push_back({p, task, frame, start, end});
            ends_s_[p] = end;
            begun_.insert(frame);
        }
        return !processors.empty();
    }

    double next_event_s() const {
        auto next = next_admission_s();
        for (const auto &[p, end] : ends_s_) {
            next = next ? std::min(*next, end) : end;
        }
        if (!next) {
            throw Error("all processors wait for ever");
        }
        return std::min(*next, engine_.state().ask_s);
    }

    std::size_t end_due_jobs() {
        std::size_t count = 0;
        const std::map<ProcessorId, double, std::greater<>> ends(ends_s_.begin(), ends_s_.end());
        for (const auto &[p, end] : ends) {
            if (end <= now_s_) {
                ends_s_.erase(p);
                engine_.end(p, now_s_);
                ++count;
            }
        }
        return count;
    }

    const json &document_;
    const Work work_;
    const std::size_t frames_;
    Engine engine_;
    double now_s_ = 0;
    std::size_t admitted_ = 0;
    std::set<std::size_t> begun_;
    std::map<ProcessorId, double> ends_s_;  // of what runs
    json spans_ = json::array();
};

}  // namespace

int main(int count, char **words) {
    try {
        std::ifstream file(count == 2 ? words[1] : "");
        const auto document = json::parse(file);
        std::cout << Replay(document).run().dump() << "\n";
        return 0;
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
