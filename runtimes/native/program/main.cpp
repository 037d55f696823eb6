// Runs the network on frames of a file, or on numbers that look random, and says how long it took.
#include "network.hpp"

#include "error.hpp"
#include "execution/results.hpp"
#include "measure/statistics.hpp"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>

using @NAMESPACE@::Network;

namespace {

using Clock = std::chrono::steady_clock;

const char *const kUsage =
    "usage: @NAME@ [OPTION VALUE]...\n"
    "  --frames N          frames to measure (100), after three that do not count\n"
    "  --batch N           frames of one call of run() (all): 1 for the time of a single frame\n"
    "  --input FILE        frames to run on, in turn: float32, all graph inputs of a frame in order\n"
    "  --check FILE        compare the results with these; exit code 1 if they differ\n"
    "  --tolerance X       largest difference allowed, over the largest expected number (1e-4)\n"
    "  --output FILE       write the results of one frame for each in --input\n"
    "  --weights FILE      weights.bin, if it is not in the working folder\n"
    "  --cores NAME=N,N    use these cores for a stream; may be given several times\n";

struct Options {
    std::map<std::string, std::string> values = {{"--frames", "100"},   {"--batch", "0"},  {"--input", ""},
                                                 {"--check", ""},       {"--output", ""}, {"--tolerance", "1e-4"},
                                                 {"--weights", "weights.bin"}};
    parapipe::Cores cores;

    std::size_t count(const std::string &name) const {
        const auto &text = values.at(name);
        if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) {
            throw parapipe::UsageError(name + " takes a whole number, not '" + text + "'");
        }
        return std::stoul(text);
    }
};

Options options_of(int count, char **words) {
    Options options;
    for (int i = 1; i < count; i += 2) {
        const std::string name = words[i];
        const bool cores = name == "--cores";
        if (!cores && options.values.count(name) == 0) {
            throw parapipe::UsageError("unknown option " + name);
        }
        if (i + 1 == count) {
            throw parapipe::UsageError(name + " takes a value");
        }
        const std::string value = words[i + 1];
        if (cores) {
            parapipe::add_cores(value, options.cores);
        } else {
            options.values[name] = value;
        }
    }
    return options;
}

/// Room for results, and where each frame of a call is read and written.
struct Batch {
    Batch(const parapipe::Plan &plan, std::size_t frames) : outputs(frames), inputs(frames) {
        for (auto &frame : outputs) {
            for (std::size_t i = 0; i < frame.size(); ++i) {
                rooms.emplace_back(plan.tensors[plan.outputs[i]].elements());
                frame[i] = rooms.back().data();
            }
        }
    }

    std::vector<std::vector<float>> rooms;
    std::vector<Network::Outputs> outputs;
    std::vector<Network::Inputs> inputs;
};

int run(const Options &options) {
    Network network;
    network.load(options.values.at("--weights"), options.cores);
    const auto &plan = network.program().plan();
    const auto &input = options.values.at("--input");
    const auto &check = options.values.at("--check");
    const auto frames = options.count("--frames");
    const auto batch = options.count("--batch") == 0 ? std::max<std::size_t>(frames, 1) : options.count("--batch");
    const auto file = input.empty() || plan.inputs.empty() ? parapipe::FrameFile::random(1, plan, plan.inputs)
                                                           : parapipe::FrameFile(input, plan, plan.inputs);
    std::optional<parapipe::FrameFile> expected;
    if (!check.empty()) {
        expected.emplace(check, plan, plan.outputs);
    }
    const auto &output = options.values.at("--output");
    parapipe::Results results(plan, expected ? &*expected : nullptr, output.empty() ? 0 : file.frames());

    Batch room(plan, batch);
    std::vector<float> times_s;
    double whole_s = 0;
    for (std::size_t done = 0; done < frames;) {
        const auto count = std::min(batch, frames - done);
        for (std::size_t k = 0; k < count; ++k) {
            for (std::size_t i = 0; i < room.inputs[k].size(); ++i) {
                room.inputs[k][i] = file.data(done + k, i);
            }
        }
        const auto begin = Clock::now();
        network.run(room.inputs.data(), room.outputs.data(), count);
        const std::chrono::duration<double> took = Clock::now() - begin;
        whole_s += took.count();
        times_s.push_back(static_cast<float>(took.count() / static_cast<double>(count)));
        for (std::size_t k = 0; k < count; ++k) {
            for (std::size_t i = 0; i < room.outputs[k].size(); ++i) {
                results.deliver(i, done + k, room.outputs[k][i]);
            }
        }
        done += count;
    }
    if (!output.empty()) {
        results.write(output, frames);
    }
    const auto mean_s = frames == 0 ? 0 : whole_s / static_cast<double>(frames);
    std::cout << "frames " << frames << "\nmean_ms " << mean_s * 1e3 << "\nmedian_ms "
              << (times_s.empty() ? 0 : parapipe::lower_median(times_s) * 1e3) << "\npredicted_latency_ms "
              << plan.predicted->latency_s * 1e3 << "\npredicted_period_ms " << plan.predicted->period_s * 1e3
              << "\npool_bytes " << network.program().pool_bytes() << "\ninside_bytes "
              << network.program().inside_bytes() << "\noutside_bytes " << network.program().outside_bytes() << "\n";
    for (const auto &difference : results.differences()) {
        const auto tolerance = std::strtod(options.values.at("--tolerance").c_str(), nullptr);
        if (difference.not_finite || difference.largest > tolerance * difference.scale) {
            throw parapipe::Error("the results differ from " + check + " by more than the tolerance");
        }
    }
    return 0;
}

}  // namespace

int main(int count, char **words) {
    try {
        if (count == 2 && std::string(words[1]) == "--help") {
            std::cout << kUsage;
            return 0;
        }
        return run(options_of(count, words));
    } catch (const parapipe::UsageError &error) {
        std::cerr << "@NAME@: " << error.what() << "; see --help\n";
        return 2;
    } catch (const std::exception &error) {
        std::cerr << "@NAME@: " << error.what() << "\n";
    }
    return 1;
}
