// Damages plans in many ways, and runs those that are still good. Whatever happens must be an Error.
//
//   parapipe-native-fuzz FOLDER MUTATIONS SEED

#include "error.hpp"
#include "execution/executor.hpp"
#include "plan/memory.hpp"
#include "plan/read_plan.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <random>

namespace {

using namespace parapipe;
using nlohmann::json;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;  // plans that are larger are only checked

class Damage {
public:
    explicit Damage(unsigned seed) : generator_(seed) {}

    std::string done_to(const json &document) {
        auto changed = document;
        for (std::size_t i = 0; i <= below(3); ++i) {
            change(changed);
        }
        auto text = changed.dump();
        if (below(4) == 0) {
            spoil(text);
        }
        return text;
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

/// Returns whether the plan was run.
bool try_plan(const std::string &text, const std::string &folder) {
    auto plan = parse_plan(text);
    auto apart = plan;
    apart.arena.reset();
    if (std::max(memory_bytes(plan), memory_bytes(apart)) > kMostBytes) {
        return false;
    }
    // Every other plan with the runner's own loops; these keep no offsets of an arena.
    const bool loops = text.size() % 2 == 0;
    if (loops) {
        plan.arena.reset();
    }
    for (auto &processor : plan.processors) {
        processor.backend = loops ? BackendKind::plain : is_built_in(BackendKind::stub) ? BackendKind::stub : BackendKind::neon;
        processor.cores.clear();
        processor.threads = std::min(processor.threads, 2U);
    }
    const auto weights = read_weights(folder + "/" + plan.weights_file, plan);
    const auto inputs = FrameFile::random(2, plan, plan.inputs);
    Executor executor(plan, weights);
    Results results(plan, nullptr, 1);
    Frames frames(3, 0);
    executor.run(frames, inputs, results, false);
    return true;
}

}  // namespace

int main(int count, char **words) {
    if (count != 4) {
        std::cerr << "usage: parapipe-native-fuzz FOLDER MUTATIONS SEED\n";
        return 2;
    }
    const std::string folder = words[1];
    const auto document = json::parse(read_file(folder + "/plan.json"));
    Damage damage(static_cast<unsigned>(std::stoul(words[3])));
    const auto mutations = std::stoul(words[2]);
    std::size_t refused = 0;
    std::size_t ran = 0;
    for (std::size_t i = 0; i < mutations; ++i) {
        try {
            ran += try_plan(damage.done_to(document), folder);
        } catch (const std::runtime_error &) {  // an Error, or what the library throws
            ++refused;
        }
    }
    std::cout << mutations << " plans: " << refused << " refused, " << ran << " run\n";
    return 0;
}
