// Damages plans in many ways, and runs those that are still good. Whatever happens must be an Error.
//
//   parapipe-native-fuzz FOLDER MUTATIONS SEED [STRATEGY...]
//
// Runs go by each of the strategies in turn, or by "plan" alone. One that takes more than a minute ends the
// program with exit code 3 and the plan: processors wait for each other.

#include "error.hpp"
#include "execution/executor.hpp"
#include "execution/tasks.hpp"
#include "plan/memory.hpp"
#include "plan/read_plan.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <limits>
#include <map>
#include <random>
#include <set>

namespace {

using namespace parapipe;
using nlohmann::json;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;  // plans that are larger are only checked
constexpr std::size_t kFrames = 6;
constexpr unsigned kMostSeconds = 60;
constexpr int kStuck = 3;

/// Changes that leave most plans good, or nearly so.
class MildDamage {
public:
    MildDamage(std::mt19937 &generator, json &root) : generator_(generator), root_(root) {}

    void change() {
        switch (below(10)) {
            case 0: return swap_operators();
            case 1: return change_lags();
            case 2: return move_operator();
            case 3: return change_processor();
            case 4: return change_arena();
            case 5: return add_replica();
            case 6: return change_durations();
            case 7: return change_queue();
            case 8: return change_sources();
            default: return change_number();
        }
    }

private:
    std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_); }
    bool chance() { return below(2) == 0; }
    json &any(json &array) { return array[below(array.size())]; }
    json &any_seat() { return any(any(root_["stages"])["processors"]); }

    void swap_operators() {
        auto &seat = any_seat();
        auto &operators = seat["operators"];
        const auto a = below(operators.size());
        const auto b = chance() ? below(operators.size()) : std::min(a + 1, operators.size() - 1);
        std::swap(operators[a], operators[b]);
        if (seat.contains("lags") && chance()) {
            std::swap(seat["lags"][a], seat["lags"][b]);
        }
    }

    void change_lags() {
        auto &seat = any_seat();
        if (!seat.contains("lags")) {
            seat["lags"] = std::vector<int>(seat["operators"].size(), 0);
        }
        const auto more = static_cast<int>(below(3)) - 1;
        const auto from = below(seat["lags"].size());
        for (auto i = from; i < (chance() ? from + 1 : seat["lags"].size()); ++i) {
            seat["lags"][i] = seat["lags"][i].get<int>() + more;
        }
    }

    /// Takes all operators of a source to another processor, and transfers with them at times.
    void move_operator() {
        auto &from = any_seat();
        auto &to = any_seat();
        if (&from == &to) {
            return;
        }
        const auto source = source_of(any(from["operators"]).get<std::string>());
        json kept = json::array();
        json kept_lags = json::array();
        for (std::size_t i = 0; i < from["operators"].size(); ++i) {
            const auto name = from["operators"][i].get<std::string>();
            if (source_of(name) != source) {
                kept.push_back(name);
                kept_lags.push_back(from.contains("lags") ? from["lags"][i] : json(0));
                continue;
            }
            auto &operators = to["operators"];
            const auto at = static_cast<std::ptrdiff_t>(below(operators.size() + 1));
            operators.insert(operators.begin() + at, name);
            if (to.contains("lags")) {
                to["lags"].insert(to["lags"].begin() + at, from.contains("lags") ? from["lags"][i] : json(0));
            }
        }
        from["operators"] = kept;
        if (from.contains("lags")) {
            from["lags"] = kept_lags;
        }
        if (below(4) != 0) {
            mend_transfers();
        }
    }

    std::string source_of(const std::string &name) {
        for (const auto &op : root_["operators"]) {
            if (op["id"] == name) {
                return op.value("source", name);
            }
        }
        return name;
    }

    /// Writes the transfers anew that the places of operators call for.
    void mend_transfers() {
        std::map<std::string, std::string> place_of_operator;
        for (const auto &stage : root_["stages"]) {
            for (const auto &seat : stage["processors"]) {
                for (const auto &op : seat["operators"]) {
                    place_of_operator[op] = seat["name"];
                }
            }
        }
        std::map<std::string, std::string> maker;
        for (const auto &op : root_["operators"]) {
            maker[op["outputs"][0]] = place_of_operator[op["id"]];
        }
        std::set<std::tuple<std::string, std::string, std::string>> needed;
        for (const auto &op : root_["operators"]) {
            for (const auto &name : op["inputs"]) {
                const auto found = maker.find(name);
                if (found != maker.end() && found->second != place_of_operator[op["id"]]) {
                    needed.emplace(name, found->second, place_of_operator[op["id"]]);
                }
            }
        }
        root_["transfers"] = json::array();
        for (const auto &[tensor, source, target] : needed) {
            root_["transfers"].push_back({{"tensor", tensor}, {"from", source}, {"to", target}, {"queue_depth", 1 + below(4)}});
        }
    }

    void change_processor() {
        auto &processor = any(root_["processors"]);
        switch (below(3)) {
            case 0: processor["threads"] = below(6); return;
            case 1: processor["cores"] = std::vector<std::size_t>{below(4), below(5000)}; return;
            default: processor["cores"] = std::vector<std::size_t>{0}; processor["threads"] = 1;
        }
    }

    void change_arena() {
        if (!root_.contains("arena")) {
            return;
        }
        auto &arena = root_["arena"];
        auto &places = arena["places"];
        if (chance() && !places.empty()) {
            auto &offsets = any(places)["offset_bytes"];
            auto &offset = any(offsets);
            offset = chance() ? offset.get<std::int64_t>() + 4 * (static_cast<std::int64_t>(below(33)) - 16)
                              : any(any(places)["offset_bytes"]).get<std::int64_t>();
            if (below(4) == 0) {
                offsets.push_back(offset);
            }
            return;
        }
        auto &spans = arena["spans"];
        auto span = spans.begin();
        std::advance(span, static_cast<std::ptrdiff_t>(below(spans.size())));
        auto &bound = (*span)[below(2)];
        bound = bound.get<std::int64_t>() + static_cast<std::int64_t>(below(5)) - 2;
    }

    /// Lets another processor take turns with one, or takes one away.
    void add_replica() {
        auto &seat = any_seat();
        if (seat.contains("replicas") && chance()) {
            const auto name = seat["replicas"].back();
            seat["replicas"].erase(seat["replicas"].size() - 1);
            if (seat["replicas"].empty()) {
                seat.erase("replicas");
            }
            auto &all = root_["processors"];
            all.erase(std::find_if(all.begin(), all.end(), [&](const json &each) { return each["name"] == name; }));
            return;
        }
        const auto &all = root_["processors"];
        auto same = *std::find_if(all.begin(), all.end(), [&](const json &each) { return each["name"] == seat["name"]; });
        const auto name = "more" + std::to_string(all.size());
        same["name"] = name;
        root_["processors"].push_back(same);
        if (!seat.contains("replicas")) {
            seat["replicas"] = json::array();
        }
        seat["replicas"].push_back(name);
    }

    /// How long to wait without sleeping follows from these.
    void change_durations() {
        constexpr double kDurations[] = {0, -1, 1e-12, 1e-3, 1e9, 1e18, 1e300, std::numeric_limits<double>::max()};
        for (const char *name : {"latency_s", "period_s", "sustained_period_s"}) {
            root_["predicted"][name] = kDurations[below(std::size(kDurations))];
        }
    }

    void change_queue() {
        if (!root_["transfers"].empty()) {
            auto &depth = any(root_["transfers"])["queue_depth"];
            depth = chance() ? depth.get<int>() + static_cast<int>(below(3)) - 1 : static_cast<int>(below(1030));
        }
    }

    /// Makes one task of two operators, or two of one.
    void change_sources() {
        auto &op = any(root_["operators"]);
        op["source"] = chance() ? op["id"] : any(root_["operators"])["id"];
    }

    /// Changes some number by one.
    void change_number() {
        std::vector<json *> numbers;
        std::vector<json *> left{&any(root_["operators"])};
        if (chance()) {
            auto tensor = root_["tensors"].begin();
            std::advance(tensor, static_cast<std::ptrdiff_t>(below(root_["tensors"].size())));
            left = {&*tensor};
        }
        while (!left.empty()) {
            auto &at = *left.back();
            left.pop_back();
            if (at.is_number_integer()) {
                numbers.push_back(&at);
            }
            for (auto child = at.begin(); at.is_structured() && child != at.end(); ++child) {
                left.push_back(&*child);
            }
        }
        if (!numbers.empty()) {
            auto &number = *numbers[below(numbers.size())];
            number = number.get<std::int64_t>() + (chance() ? 1 : -1);
        }
    }

    std::mt19937 &generator_;
    json &root_;
};

class Damage {
public:
    explicit Damage(unsigned seed) : generator_(seed) {}

    /// One of three is mostly spoilt; the others are changed a little.
    std::string done_to(const json &document) {
        auto changed = document;
        const bool mild = below(3) != 0;
        try {
            for (std::size_t i = 0; i <= below(3); ++i) {
                mild ? MildDamage(generator_, changed).change() : change(changed);
            }
        } catch (const json::exception &) {
            // What was to be changed is not there any more.
        }
        auto text = changed.dump();
        if (!mild && below(4) == 0) {
            spoil(text);
        }
        return text;
    }

    /// Numbers of weights: some as they are, some huge, some none at all.
    std::vector<float> weights(std::vector<float> values) {
        constexpr float kNumbers[] = {0.0F, 3e38F, std::numeric_limits<float>::infinity(),
                                      std::numeric_limits<float>::quiet_NaN()};
        for (std::size_t i = 0; below(4) == 0 && i < values.size(); i += 1 + below(16)) {
            values[i] = kNumbers[below(std::size(kNumbers))];
        }
        return values;
    }

    std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_); }

    /// Changes bytes, or cuts off the end.
    void spoil(std::string &text) {
        for (std::size_t i = 0; i <= below(4) && !text.empty(); ++i) {
            text[below(text.size())] = static_cast<char>(below(256));
        }
        if (below(4) == 0) {
            text.resize(below(text.size() + 1));
        }
    }

private:
    /// Goes down to some value and replaces, removes, doubles or moves it.
    void change(json &root) {
        json *at = &root;
        while (at->is_structured() && !at->empty() && below(8) != 0) {
            auto child = at->begin();
            std::advance(child, static_cast<std::ptrdiff_t>(below(at->size())));
            if (below(12) == 0) {
                at->erase(child);
                return;
            }
            if (at->is_array() && below(12) == 0) {
                const json copy = *child;
                at->push_back(copy);
                return;
            }
            at = &*child;
        }
        *at = value(*at, root);
    }

    json value(const json &old, const json &root) {
        switch (below(10)) {
            case 0: return nullptr;
            case 1: return -1;
            case 2: return std::int64_t{1} << below(63);
            case 3: return 0.5;
            case 4: return "x";
            case 5: return json::array();
            case 6: return json::object();
            case 7: return old.is_number_integer() && old.get<std::int64_t>() < 1000000 ? json(old.get<std::int64_t>() + 1) : json(2);
            case 8: return old.is_array() ? json(std::vector<std::int64_t>(below(10), static_cast<std::int64_t>(below(4)))) : json("conv");
            default: return any_name(root);
        }
    }

    json any_name(const json &root) {
        const auto &tensors = root.contains("tensors") && root["tensors"].is_object() ? root["tensors"] : json::object();
        if (tensors.empty()) {
            return "";
        }
        auto it = tensors.begin();
        std::advance(it, static_cast<std::ptrdiff_t>(below(tensors.size())));
        return it.key();
    }

    std::mt19937 generator_;
};

/// Each in turn.
struct Strategies {
    std::vector<std::string> names;
    std::size_t next = 0;

    const std::string &take() { return names[next++ % names.size()]; }
};

std::string what_runs;  // said if it does not end

/// Returns whether the plan was run.
bool try_plan(const std::string &text, const std::string &folder, Damage &damage, Strategies &strategies) {
    auto plan = parse_plan(text);
    auto apart = plan;
    apart.arena.reset();
    const auto bytes = std::max(memory_bytes(plan), memory_bytes(apart));
    if (bytes > kMostBytes || plan.processors.size() > 8) {
        return false;
    }
    const auto &strategy = strategies.take();
    // Every other plan with the runner's own loops; these keep no offsets of an arena.
    const bool loops = damage.below(2) == 0 || strategy != "plan";
    if (loops) {
        plan.arena.reset();
    }
    const bool cores = damage.below(8) == 0;
    for (auto &processor : plan.processors) {
        processor.backend = loops ? BackendKind::plain : is_built_in(BackendKind::stub) ? BackendKind::stub : BackendKind::neon;
        if (!cores) {
            processor.cores.clear();
        }
        processor.threads = std::min(processor.threads, 2U);
    }
    if (strategy != "plan" && bytes * frames_under_way(plan) > kMostBytes * 16) {
        return false;
    }
    const auto weights = damage.weights(read_weights(folder + "/" + plan.weights_file, plan));
    const auto inputs = FrameFile::random(2, plan, plan.inputs);
    Executor executor(plan, weights, strategy);
    Results results(plan, nullptr, 1);
    Frames frames(kFrames, damage.below(8) == 0 ? 1e-4 : 0);
    what_runs = text_of("a plan does not end by the strategy '", strategy, "':\n", text, "\n");
    alarm(kMostSeconds);
    executor.run(frames, inputs, results, false);
    alarm(0);
    return true;
}

void stuck(int /*signal*/) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, what_runs.data(), what_runs.size());
    _exit(kStuck);
}

}  // namespace

int main(int count, char **words) {
    if (count < 4) {
        std::cerr << "usage: parapipe-native-fuzz FOLDER MUTATIONS SEED [STRATEGY...]\n";
        return 2;
    }
    std::signal(SIGALRM, stuck);
    const std::string folder = words[1];
    const auto document = json::parse(read_file(folder + "/plan.json"));
    Damage damage(static_cast<unsigned>(std::stoul(words[3])));
    const auto mutations = std::stoul(words[2]);
    Strategies strategies{{words + 4, words + count}};
    if (strategies.names.empty()) {
        strategies.names = {"plan"};
    }
    std::size_t refused = 0;
    std::size_t ran = 0;
    for (std::size_t i = 0; i < mutations; ++i) {
        try {
            ran += try_plan(damage.done_to(document), folder, damage, strategies);
        } catch (const std::runtime_error &) {  // an Error, or what the library throws
            ++refused;
        }
        alarm(0);
    }
    std::cout << mutations << " plans: " << refused << " refused, " << ran << " run\n";
    return 0;
}
