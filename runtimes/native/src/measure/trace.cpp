#include "measure/trace.hpp"

#include <nlohmann/json.hpp>

namespace parapipe {

std::string trace_json(const Plan &plan, const Executor &executor, const Frames &frames) {
    nlohmann::json document = {{"schema", "parapipe/native-trace/1"},
                               {"frames", nlohmann::json::array()},
                               {"operators", nlohmann::json::array()}};
    for (const auto &times : frames.times()) {
        document["frames"].push_back({frames.since_start_s(times.begin), frames.since_start_s(times.end)});
    }
    const auto places = plan.places();
    for (OperatorId v = 0; v < plan.operators.size(); ++v) {
        document["operators"].push_back({{"id", plan.operators[v].id},
                                         {"source", plan.operators[v].source},
                                         {"processor", plan.processors[places[v]].name},
                                         {"starts_s", executor.starts_s()[v]},
                                         {"times_s", executor.times_s()[v]}});
        if (!plan.operators[v].includes.empty()) {
            document["operators"].back()["includes"] = plan.operators[v].includes;
        }
        if (executor.varies()) {
            auto &names = document["operators"].back()["processors"] = nlohmann::json::array();
            for (std::size_t frame = 0; frame < executor.times_s()[v].size(); ++frame) {
                names.push_back(plan.processors[executor.ran_on(v, frame)].name);
            }
        }
    }
    return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace parapipe
