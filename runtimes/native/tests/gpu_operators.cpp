// Runs an exported folder on the CPU with the functions that programs for GPUs have, one operator after the other.
#include "error.hpp"
#include "execution/results.hpp"
#include "gpu/works.hpp"
#include "plan/read_plan.hpp"

#include <cstring>
#include <iostream>
#include <map>

using namespace parapipe;

namespace {

int run(const std::string &folder, const std::string &input, const std::string &output) {
    const auto plan = read_plan(folder);
    const auto weights = read_weights(folder + "/" + plan.weights_file, plan);
    const FrameFile frames(input, plan, plan.inputs);
    Results results(plan, nullptr, frames.frames());
    std::vector<std::vector<float>> memory;
    std::vector<float *> data;
    for (const auto &tensor : plan.tensors) {
        memory.emplace_back(tensor.elements());
        if (tensor.constant()) {
            std::memcpy(memory.back().data(), reinterpret_cast<const std::byte *>(weights.data()) + *tensor.offset,
                        tensor.size_bytes());
        }
        data.push_back(memory.back().data());
    }
    gpu::Lane lane;
    std::vector<gpu::Work> works;
    for (const auto &op : plan.operators) {
        works.push_back(gpu::work_of(plan, op, data, lane));
    }
    lane.reserve();
    for (std::size_t frame = 0; frame < frames.frames(); ++frame) {
        for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
            const auto &tensor = plan.tensors[plan.inputs[i]];
            std::memcpy(data[plan.inputs[i]], frames.data(frame, i), tensor.size_bytes());
        }
        for (const auto &work : works) {
            if (work) {
                work(lane);
            }
        }
        lane.synchronize();
        for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
            results.deliver(i, frame, data[plan.outputs[i]]);
        }
    }
    results.write(output, frames.frames());
    return 0;
}

}  // namespace

int main(int count, char **words) {
    try {
        if (count != 4) {
            throw UsageError("gpu_operators FOLDER INPUT OUTPUT");
        }
        return run(words[1], words[2], words[3]);
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
    }
    return 1;
}
