#include "execution/results.hpp"

#include "error.hpp"
#include "plan/read_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>

namespace parapipe {

FrameFile::FrameFile(const Plan &plan, const std::vector<TensorId> &tensors) {
    for (const TensorId t : tensors) {
        starts_.push_back(frame_elements_);
        frame_elements_ += plan.tensors[t].elements();
    }
}

FrameFile::FrameFile(const std::string &path, const Plan &plan, const std::vector<TensorId> &tensors)
    : FrameFile(plan, tensors) {
    const auto content = read_file(path);
    const auto frame_bytes = frame_elements_ * sizeof(float);
    if (frame_bytes == 0 || content.empty() || content.size() % frame_bytes != 0) {
        throw Error(text_of(path, ": has ", content.size(), " bytes, and a frame of this plan has ", frame_bytes,
                            "; give whole frames of float32, one or more"));
    }
    frames_ = content.size() / frame_bytes;
    values_.resize(frames_ * frame_elements_);
    std::memcpy(values_.data(), content.data(), content.size());
}

FrameFile FrameFile::random(std::size_t frames, const Plan &plan, const std::vector<TensorId> &tensors) {
    FrameFile file(plan, tensors);
    file.frames_ = frames;
    file.values_.resize(frames * file.frame_elements_);
    std::minstd_rand generator(1);
    for (auto &value : file.values_) {
        value = static_cast<float>(generator()) / static_cast<float>(std::minstd_rand::max()) * 2 - 1;
    }
    return file;
}

const float *FrameFile::data(std::size_t frame, std::size_t position) const {
    return values_.data() + frame % frames_ * frame_elements_ + starts_[position];
}

Results::Results(const Plan &plan, const FrameFile *expected, std::size_t kept)
    : expected_(expected), kept_(kept), values_(plan.outputs.size()), differences_(plan.outputs.size()) {
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
        elements_.push_back(plan.tensors[plan.outputs[i]].elements());
        values_[i].resize(kept * elements_[i]);
    }
}

void Results::deliver(std::size_t output, std::size_t frame, const float *values) {
    const auto count = elements_[output];
    if (frame < kept_) {
        std::copy_n(values, count, values_[output].data() + frame * count);
    }
    if (expected_ == nullptr) {
        return;
    }
    const float *expected = expected_->data(frame, output);
    auto &difference = differences_[output];
    for (std::size_t i = 0; i < count; ++i) {
        const double off = std::abs(static_cast<double>(values[i]) - static_cast<double>(expected[i]));
        difference.not_finite = difference.not_finite || !std::isfinite(off);
        difference.largest = std::max(difference.largest, off);
        difference.scale = std::max(difference.scale, std::abs(static_cast<double>(expected[i])));
    }
}

void Results::write(const std::string &path, std::size_t frames) const {
    const auto partial = path + ".partial";
    {
        std::ofstream file(partial, std::ios::binary);
        for (std::size_t frame = 0; frame < std::min(frames, kept_); ++frame) {
            for (std::size_t i = 0; i < elements_.size(); ++i) {
                file.write(reinterpret_cast<const char *>(values_[i].data() + frame * elements_[i]),
                           static_cast<std::streamsize>(elements_[i] * sizeof(float)));
            }
        }
        file.flush();
        if (!file) {
            throw Error(path + ": cannot be written; choose another place");
        }
    }
    if (std::rename(partial.c_str(), path.c_str()) != 0) {
        throw Error(path + ": cannot be written; choose another place");
    }
}

}  // namespace parapipe
