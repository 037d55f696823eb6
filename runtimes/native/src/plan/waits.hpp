#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace parapipe {

/// `then` waits, in each frame, for the end of `first` in the frame so many before.
struct Wait {
    std::size_t first;
    std::size_t then;
    std::int64_t frames;
};

/// What would wait for itself, of so many that are numbered from 0; kNone if nothing does: then around every circle
/// of waits lies a frame or more.
std::size_t one_in_circle(const std::vector<Wait> &waits, std::size_t count);

}  // namespace parapipe
