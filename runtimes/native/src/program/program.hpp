#pragma once

#include "options.hpp"
#include "program/description.hpp"

#include <memory>
#include <string>
#include <vector>

namespace parapipe {

/// A network that is loaded and ready to run: what a generated program is built on.
class Program {
public:
    /// Reads the weights, prepares operators and memory, and runs frames of zeros, so that all that is made at
    /// first use is there.
    /// @param weights Path of weights.bin.
    /// @throws Error if the file or a core is missing, or the description does not fit together.
    Program(const Description &description, const std::string &weights, const Cores &cores = {});
    ~Program();
    Program(const Program &) = delete;
    Program &operator=(const Program &) = delete;

    /// Runs frames, as many at the same time as the plan has, and waits for the last one. One call at a time;
    /// nothing is allocated.
    /// @param inputs, outputs For each frame all graph inputs, outputs in order: dense float32 in ONNX's order.
    /// @throws Error if a processor fails; then nothing can be run any more.
    void run(const float *const *inputs, float *const *outputs, std::size_t frames = 1);

    const Plan &plan() const;
    /// Bytes of the pools, those of a frame's tensors that lie there, and those outside, of all frames.
    std::size_t pool_bytes() const;
    std::size_t inside_bytes() const;
    std::size_t outside_bytes() const;

private:
    struct Loaded;
    std::unique_ptr<Loaded> loaded_;
};

}  // namespace parapipe
