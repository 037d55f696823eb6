#include "options.hpp"

#include "error.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

namespace parapipe {
namespace {

double number_of(const std::string &text, const std::string &option, double least) {
    std::size_t used = 0;
    double number = std::numeric_limits<double>::quiet_NaN();
    try {
        number = std::stod(text, &used);
    } catch (const std::exception &) {
        used = 0;
    }
    if (used != text.size() || text.empty() || !std::isfinite(number) || number < least) {
        throw UsageError(text_of(option, " takes a number of ", least, " or more, not '", text, "'"));
    }
    return number;
}

std::size_t count_of(const std::string &text, const std::string &option, std::size_t least) {
    const bool digits = !text.empty() && text.size() < 10 &&
                        std::all_of(text.begin(), text.end(), [](char c) { return '0' <= c && c <= '9'; });
    if (!digits || std::stoul(text) < least) {
        throw UsageError(text_of(option, " takes a whole number of ", least, " or more, not '", text, "'"));
    }
    return std::stoul(text);
}

}  // namespace

void add_cores(const std::string &text, Cores &all) {
    const auto equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
        throw UsageError("--cores takes PROCESSOR=CORE,CORE,..., not '" + text + "'");
    }
    auto &cores = all[text.substr(0, equals)];
    cores.clear();
    std::size_t begin = equals + 1;
    while (begin <= text.size()) {
        const auto end = std::min(text.find(',', begin), text.size());
        cores.push_back(static_cast<int>(count_of(text.substr(begin, end - begin), "--cores", 0)));
        begin = end + 1;
    }
}

namespace {

std::set<int> cores_here() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::set<int> cores;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        for (int core = 0; core < CPU_SETSIZE; ++core) {
            if (CPU_ISSET(core, &set)) {
                cores.insert(core);
            }
        }
    }
    return cores;
}

}  // namespace

std::string usage() {
    return "usage: parapipe-native [OPTION]... FOLDER\n"
           "Runs a plan that 'parapipe export PLAN FOLDER --to native' wrote, and measures it.\n"
           "\n"
           "  --frames N         frames to measure (100)\n"
           "  --warmup N         frames to run before them (3)\n"
           "  --period SECONDS   admit a frame every so often; 0: as soon as it can start (0)\n"
           "  --input FILE       frames to run on, in turn; without it, numbers that look random\n"
           "  --check FILE       compare the results with these; exit code 1 if they differ\n"
           "  --tolerance X      largest difference allowed, over the largest expected number (1e-5)\n"
           "  --output FILE      write the results of one frame for each in --input\n"
           "  --profile FILE     wait for and time each operator; write rows for 'parapipe profile --import'\n"
           "  --trace FILE       write when each operator of each frame began, and how long it took\n"
           "  --strategy NAME    what decides which processor runs what: plan, ready-pool, steal, streams (plan)\n"
           "  --cores NAME=N,N   use these cores for a processor; may be given several times\n"
           "  --no-arena         let every tensor have memory of its own, not the plan's offsets\n"
           "  --governor         say how the clocks of the cores are set\n"
           "  --json             print one JSON document\n"
           "  --backends         print which back ends this runner was built with\n"
           "  --help             print this\n";
}

Options options_of(const std::vector<std::string> &arguments) {
    Options options;
    const std::map<std::string, std::function<void(const std::string &)>> with_value = {
        {"--input", [&](const std::string &text) { options.input = text; }},
        {"--check", [&](const std::string &text) { options.check = text; }},
        {"--output", [&](const std::string &text) { options.output = text; }},
        {"--profile", [&](const std::string &text) { options.profile = text; }},
        {"--strategy", [&](const std::string &text) { options.strategy = text; }},
        {"--trace", [&](const std::string &text) { options.trace = text; }},
        {"--tolerance", [&](const std::string &text) { options.tolerance = number_of(text, "--tolerance", 0); }},
        {"--period", [&](const std::string &text) { options.period_s = number_of(text, "--period", 0); }},
        {"--frames", [&](const std::string &text) { options.frames = count_of(text, "--frames", 1); }},
        {"--warmup", [&](const std::string &text) { options.warmup = count_of(text, "--warmup", 0); }},
        {"--cores", [&](const std::string &text) { add_cores(text, options.cores); }},
    };
    const std::map<std::string, bool *> flags = {
        {"--governor", &options.governor}, {"--no-arena", &options.no_arena}, {"--json", &options.json},
        {"--backends", &options.backends}, {"--help", &options.help}};
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto &argument = arguments[i];
        const auto equals = argument.find('=');
        const auto name = argument.rfind("--", 0) == 0 ? argument.substr(0, equals) : argument;
        if (const auto flag = flags.find(argument); flag != flags.end()) {
            *flag->second = true;
        } else if (const auto option = with_value.find(name); option != with_value.end()) {
            if (equals == std::string::npos && i + 1 == arguments.size()) {
                throw UsageError(name + " takes a value");
            }
            option->second(equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1));
        } else if (argument.rfind('-', 0) == 0) {
            throw UsageError("unknown option " + argument);
        } else if (!options.folder.empty()) {
            throw UsageError("one folder can be run at a time, not '" + argument + "' too");
        } else {
            options.folder = argument;
        }
    }
    if (options.folder.empty() && !options.help && !options.backends) {
        throw UsageError("no folder was given");
    }
    if (!options.profile.empty() && options.strategy != "plan") {
        throw UsageError("--profile follows the plan; leave out --strategy");
    }
    if (!options.check.empty() && options.input.empty()) {
        throw UsageError("--check needs the frames that gave those results: --input");
    }
    return options;
}

void choose_cores(Plan &plan, const Cores &chosen) {
    for (const auto &[name, cores] : chosen) {
        const auto found = std::find_if(plan.processors.begin(), plan.processors.end(),
                                        [&name = name](const auto &processor) { return processor.name == name; });
        if (found == plan.processors.end()) {
            throw Error("--cores: the plan has no processor '" + name + "'");
        }
        found->cores = cores;
        found->threads = std::min(found->threads, static_cast<unsigned>(cores.size()));
    }
    const auto here = cores_here();
    for (const auto &processor : plan.processors) {
        for (const int core : processor.cores) {
            if (here.count(core) == 0) {
                throw Error(text_of("processor '", processor.name, "' needs core ", core,
                                    ", which is not there or not for this process; name others by --cores ",
                                    processor.name, "=..."));
            }
        }
    }
}

}  // namespace parapipe
