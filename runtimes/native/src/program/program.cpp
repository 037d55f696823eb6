#include "program/program.hpp"

#include "execution/executor.hpp"
#include "error.hpp"
#include "plan/check_plan.hpp"
#include "plan/memory.hpp"
#include "plan/read_plan.hpp"

#include <algorithm>
#include <iterator>

namespace parapipe {
namespace {

constexpr std::size_t kFramesAtLoading = 3;

/// Frames that lie where the user has them.
class Given : public Inputs {
public:
    const float *data(std::size_t frame, std::size_t position) const override { return tensors[frame * count + position]; }

    const float *const *tensors = nullptr;
    std::size_t count = 0;
};

class Taken : public Outputs {
public:
    void deliver(std::size_t output, std::size_t frame, const float *values) override {
        std::copy_n(values, elements[output], tensors[frame * elements.size() + output]);
    }

    float *const *tensors = nullptr;
    std::vector<std::size_t> elements;
};

/// @throws Error as for a plan.json, in whose place the source stands.
void check_description(const Plan &plan) {
    constexpr const char kFile[] = "plan.json: ";
    try {
        check_plan(plan);
    } catch (const Error &error) {
        const std::string text = error.what();
        throw Error(text.rfind(kFile, 0) == 0 ? "network.cpp: " + text.substr(sizeof(kFile) - 1) : text);
    }
}

Plan checked_plan(const Description &description, const Cores &cores) {
    auto plan = description.plan();
    check_description(plan);
    choose_cores(plan, cores);
    check_backends(plan);
    check_memory(plan, memory_here_bytes());
    return plan;
}

}  // namespace

struct Program::Loaded {
    Loaded(const Description &description, const std::string &file, const Cores &cores)
        : plan(checked_plan(description, cores)), weights(read_weights(file, plan)), executor(plan, weights) {
        given.count = plan.inputs.size();
        for (const TensorId t : plan.outputs) {
            taken.elements.push_back(plan.tensors[t].elements());
        }
        executor.stand_by();
    }

    const Plan plan;
    const std::vector<float> weights;
    Executor executor;
    Frames frames{0, 0, false};
    Given given;
    Taken taken;
};

Program::Program(const Description &description, const std::string &weights, const Cores &cores)
    : loaded_(std::make_unique<Loaded>(description, weights, cores)) {
    const auto room = [this](const std::vector<TensorId> &tensors) {
        std::vector<std::vector<float>> all;
        std::transform(tensors.begin(), tensors.end(), std::back_inserter(all),
                       [this](TensorId t) { return std::vector<float>(plan().tensors[t].elements()); });
        return all;
    };
    const auto inputs = room(plan().inputs);
    auto outputs = room(plan().outputs);
    std::vector<const float *> from;
    std::vector<float *> to;
    for (std::size_t frame = 0; frame < kFramesAtLoading; ++frame) {
        std::transform(inputs.begin(), inputs.end(), std::back_inserter(from), [](const auto &each) { return each.data(); });
        std::transform(outputs.begin(), outputs.end(), std::back_inserter(to), [](auto &each) { return each.data(); });
    }
    run(from.data(), to.data(), kFramesAtLoading);
}

Program::~Program() = default;

void Program::run(const float *const *inputs, float *const *outputs, std::size_t frames) {
    auto &loaded = *loaded_;
    loaded.given.tensors = inputs;
    loaded.taken.tensors = outputs;
    loaded.frames.restart(frames);
    loaded.executor.run_batch(loaded.frames, loaded.given, loaded.taken);
}

const Plan &Program::plan() const {
    return loaded_->plan;
}

std::size_t Program::pool_bytes() const {
    return loaded_->executor.arena_bytes();
}

std::size_t Program::inside_bytes() const {
    return loaded_->executor.inside_bytes();
}

std::size_t Program::outside_bytes() const {
    return loaded_->executor.outside_bytes();
}

}  // namespace parapipe
