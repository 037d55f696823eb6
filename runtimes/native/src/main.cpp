#include "error.hpp"
#include "execution/executor.hpp"
#include "interrupt.hpp"
#include "measure/profile.hpp"
#include "measure/report.hpp"
#include "measure/trace.hpp"
#include "options.hpp"
#include "plan/memory.hpp"
#include "plan/read_plan.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <new>
#include <optional>

namespace {

using namespace parapipe;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kInterrupted = 130;

/// One line, whatever stands in a name from a file.
std::string line_of(std::string text) {
    std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    return text;
}

void write_text(const std::string &path, const std::string &text) {
    const auto partial = path + ".partial";
    std::ofstream file(partial, std::ios::binary);
    file << text;
    file.close();
    if (!file || std::rename(partial.c_str(), path.c_str()) != 0) {
        throw Error(path + ": cannot be written; choose another place");
    }
}

int run(const Options &options) {
    Frames frames(options.warmup + options.frames, options.period_s);
    const Interrupt interrupt([&frames] { frames.stop(); });
    auto plan = read_plan(options.folder);
    choose_cores(plan, options.cores);
    if (options.no_arena) {
        plan.arena.reset();
    }
    check_backends(plan);
    check_memory(plan, memory_here_bytes());
    const auto weights = read_weights(options.folder + "/" + plan.weights_file, plan);
    const auto inputs = options.input.empty() || plan.inputs.empty() ? FrameFile::random(1, plan, plan.inputs)
                                                                     : FrameFile(options.input, plan, plan.inputs);
    std::optional<FrameFile> expected;
    if (!options.check.empty()) {
        expected.emplace(options.check, plan, plan.outputs);
        if (expected->frames() != inputs.frames()) {
            throw Error(text_of(options.check, ": has ", expected->frames(), " frames, and ", options.input, " has ",
                                inputs.frames(), "; give files that go together"));
        }
    }
    Executor executor(plan, weights, options.strategy);
    Results results(plan, expected ? &*expected : nullptr, options.output.empty() ? 0 : inputs.frames());
    std::cerr << "running " << options.warmup << " + " << options.frames << " frames" << std::endl;
    executor.run(frames, inputs, results, !options.profile.empty());

    const Run done{plan,
                   options,
                   executor,
                   results,
                   statistics_of(frames.times(), options.warmup),
                   operator_times(plan, executor, options.warmup),
                   frames.stopped()};
    std::cout << (options.json ? report_json(done) : report_text(done)) << std::flush;
    if (!options.output.empty()) {
        results.write(options.output, frames.count());
    }
    if (!options.profile.empty() && done.statistics.frames > 0) {
        write_text(options.profile, profile_csv(plan, done.operators));
    }
    if (!options.trace.empty()) {
        write_text(options.trace, trace_json(plan, executor, frames));
    }
    if (!agrees(done)) {
        throw Error(text_of("the results differ from ", options.check, " by more than ", options.tolerance,
                            " of their scale"));
    }
    return done.interrupted ? kInterrupted : kDone;
}

}  // namespace

int main(int count, char **words) {
    try {
        const auto options = parapipe::options_of({words + 1, words + count});
        if (options.help) {
            std::cout << parapipe::usage();
            return kDone;
        }
        if (options.backends) {
            for (const auto &[name, kind] : parapipe::backend_kinds()) {
                std::cout << (parapipe::is_built_in(kind) ? name + "\n" : "");
            }
            return kDone;
        }
        return run(options);
    } catch (const parapipe::UsageError &error) {
        std::cerr << "parapipe-native: " << line_of(error.what()) << "; see --help\n";
        return kUsage;
    } catch (const std::bad_alloc &) {
        std::cerr << "parapipe-native: there is not enough memory for this plan\n";
    } catch (const std::exception &error) {
        std::cerr << "parapipe-native: " << line_of(error.what()) << "\n";
    }
    return kFailed;
}
