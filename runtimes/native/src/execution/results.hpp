#pragma once

#include "plan/plan.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace parapipe {

/// Where graph inputs come from.
class Inputs {
public:
    virtual ~Inputs() = default;
    /// Elements of a graph input of a frame, in ONNX's order.
    virtual const float *data(std::size_t frame, std::size_t position) const = 0;
};

/// Where graph outputs arrive. Each output is delivered by one thread, frame after frame.
class Outputs {
public:
    virtual ~Outputs() = default;
    virtual void deliver(std::size_t output, std::size_t frame, const float *values) = 0;
};

/// Frames as they lie in a file: for each frame all tensors of a list, one after the other.
class FrameFile : public Inputs {
public:
    FrameFile() = default;
    /// @throws Error if the file does not hold whole frames, or none.
    FrameFile(const std::string &path, const Plan &plan, const std::vector<TensorId> &tensors);
    /// Frames of numbers between -1 and 1 that look random and are the same each time.
    static FrameFile random(std::size_t frames, const Plan &plan, const std::vector<TensorId> &tensors);

    std::size_t frames() const { return frames_; }
    /// Elements of a tensor in a frame; frames are taken round and round.
    const float *data(std::size_t frame, std::size_t position) const override;

private:
    FrameFile(const Plan &plan, const std::vector<TensorId> &tensors);

    std::vector<std::size_t> starts_;
    std::size_t frame_elements_ = 0;
    std::size_t frames_ = 0;
    std::vector<float> values_;
};

/// Compares graph outputs with what was expected, and keeps them if asked for.
class Results : public Outputs {
public:
    struct Difference {
        double largest = 0;
        double scale = 0;
        bool not_finite = false;
    };

    /// @param expected May be null.
    /// @param kept Frames to keep, from the first.
    Results(const Plan &plan, const FrameFile *expected, std::size_t kept);

    void deliver(std::size_t output, std::size_t frame, const float *values) override;
    /// By output.
    const std::vector<Difference> &differences() const { return differences_; }
    /// Writes the kept frames as a FrameFile has them.
    void write(const std::string &path, std::size_t frames) const;

private:
    std::vector<std::size_t> elements_;
    const FrameFile *expected_;
    std::size_t kept_;
    std::vector<std::vector<float>> values_;
    std::vector<Difference> differences_;
};

}  // namespace parapipe
