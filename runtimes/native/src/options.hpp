#pragma once

#include "plan/plan.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace parapipe {

/// Cores to use in place of the plan's, by the name of a processor.
using Cores = std::map<std::string, std::vector<int>>;

/// What the command line says.
struct Options {
    std::string folder;
    std::string input;
    std::string check;
    std::string output;
    std::string profile;
    std::string trace;
    double tolerance = 1e-5;
    double period_s = 0;
    std::size_t frames = 100;
    std::size_t warmup = 3;
    Cores cores;
    bool governor = false;
    bool no_arena = false;
    bool json = false;
    std::string strategy = "plan";
    bool backends = false;
    bool help = false;
};

/// @throws UsageError if the arguments make no sense.
Options options_of(const std::vector<std::string> &arguments);

/// Adds what a text such as `big=0,1` says.
/// @throws UsageError if it makes no sense.
void add_cores(const std::string &text, Cores &all);

/// Takes other cores for processors (--cores), and at most as many threads.
/// @throws Error if a processor is not in the plan, or a core is not there to be used.
void choose_cores(Plan &plan, const Cores &chosen);

std::string usage();

}  // namespace parapipe
