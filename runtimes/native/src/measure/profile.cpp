#include "measure/profile.hpp"

#include "error.hpp"
#include "measure/clocks.hpp"

#include <algorithm>
#include <iomanip>
#include <map>
#include <sstream>

namespace parapipe {
namespace {

constexpr const char *kColumns[] = {"type",  "kernel", "strides", "attributes", "inputs",
                                    "output", "dtype",  "class",   "macs",       "size_bytes"};

std::string quoted(const std::string &cell) {
    if (cell.find_first_of(",\"\n\r") == std::string::npos) {
        return cell;
    }
    std::string text = "\"";
    for (const char c : cell) {
        text += c == '"' ? "\"\"" : std::string(1, c);
    }
    return text + "\"";
}

}  // namespace

std::string profile_csv(const Plan &plan, const std::vector<OperatorTimes> &times) {
    std::map<std::pair<ProcessorId, std::string>, std::vector<float>> rows;
    for (const auto &op : times) {
        const auto row = plan.profile.find(op.source);
        if (row == plan.profile.end()) {
            continue;
        }
        if (plan.processors[op.processor].frequency_hz <= 0) {
            throw Error("--profile: processor '" + plan.processors[op.processor].name +
                        "' has no frequency_hz in plan.json; export the plan again");
        }
        std::string cells;
        for (const char *column : kColumns) {
            cells += quoted(row->second.cells.at(column)) + ",";
        }
        cells += "\n" + quoted(row->second.cells.at("then"));
        auto &samples = rows[{op.processor, cells}];
        samples.insert(samples.end(), op.times_s.begin(), op.times_s.end());
    }
    if (rows.empty()) {
        throw Error("--profile: plan.json says of no operator what its row would be; export the plan again");
    }
    std::ostringstream csv;
    for (const char *column : kColumns) {
        csv << column << ",";
    }
    csv << "processor,frequency_hz,time_s,rows,spread,method,then,observed_hz,load,noisy\n" << std::fixed;
    for (const auto &[key, samples] : rows) {
        const auto &processor = plan.processors[key.first];
        const auto split = key.second.find('\n');
        const double time_s = lower_median(samples);
        const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
        csv << key.second.substr(0, split) << quoted(processor.name) << "," << std::setprecision(0)
            << processor.frequency_hz << "," << std::setprecision(9) << std::max(time_s, 1e-9) << ","
            << samples.size() << "," << std::setprecision(4)
            << static_cast<double>(*most - *least) / std::max(time_s, 1e-9) << ",timed,"
            << key.second.substr(split + 1) << "," << std::setprecision(0);
        if (const auto hertz = observed_hz(processor)) {
            csv << *hertz;
        }
        csv << ",,\n";
    }
    return csv.str();
}

}  // namespace parapipe
