#pragma once

#include "execution/frames.hpp"
#include "execution/results.hpp"
#include "execution/semaphore.hpp"

#include <chrono>
#include <deque>
#include <exception>
#include <future>

namespace parapipe {

/// What the processors and who gives them frames say to each other.
struct Standing {
    /// A processor, and whether there are frames for it.
    struct Post {
        Semaphore called;
        std::future<void> end;
        std::exception_ptr failure;

        explicit Post(std::chrono::nanoseconds spin) : called(0, spin) {}
    };

    explicit Standing(std::chrono::nanoseconds spin) : ready(0, spin) {}

    std::deque<Post> posts;  // by seat
    Semaphore ready;         // counts processors that have done their part
    Frames *frames = nullptr;
    const Inputs *inputs = nullptr;
    Outputs *results = nullptr;
    bool ends = false;
};

}  // namespace parapipe
