#include "strategies/strategy.hpp"

#include "error.hpp"

#include <map>

namespace parapipe {
namespace {

using MakeStrategy = std::unique_ptr<Strategy> (*)(const Work &work);

const std::map<std::string, MakeStrategy> kStrategies = {
    {"plan", make_follow}, {"ready-pool", make_ready_pool}, {"steal", make_steal}, {"streams", make_streams}};

}  // namespace

std::unique_ptr<Strategy> make_strategy(const std::string &name, const Work &work) {
    const auto found = kStrategies.find(name);
    if (found == kStrategies.end()) {
        std::string names;
        for (const auto &each : strategy_names()) {
            names += (names.empty() ? "" : ", ") + each;
        }
        throw Error("there is no strategy '" + name + "' here; choose one of " + names);
    }
    return found->second(work);
}

std::vector<std::string> strategy_names() {
    std::vector<std::string> names;
    for (const auto &[name, make] : kStrategies) {
        names.push_back(name);
    }
    return names;
}

}  // namespace parapipe
