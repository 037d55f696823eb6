#include "execution/executor.hpp"

#include <exception>

namespace parapipe {

Executor::~Executor() {
    stand_down();
}

void Executor::stand_by() {
    const auto spin = spin_of(plan_);
    std::size_t threads = 0;
    for (const auto &processor : plan_.processors) {
        threads += processor.threads;
    }
    // Who waits for the processors must not take a core from them.
    const bool may_spin = threads < std::thread::hardware_concurrency();
    standing_ = std::make_unique<Standing>(may_spin ? spin : std::chrono::nanoseconds(0));
    for (std::size_t i = 0; i < seats_.size(); ++i) {
        standing_->posts.emplace_back(spin);
    }
    for (std::size_t i = 0; i < seats_.size(); ++i) {
        auto &post = standing_->posts[i];
        post.end = seats_[i]->worker.post([this, &seat = *seats_[i], &post] {
            auto &standing = *standing_;
            for (post.called.acquire(); !standing.ends; post.called.acquire()) {
                try {
                    run_frames(seat, *standing.frames, *standing.inputs, *standing.results, false);
                } catch (const Closed &) {
                    // Another processor has failed, and says why.
                } catch (...) {
                    post.failure = std::current_exception();
                }
                standing.ready.release();
            }
        });
    }
}

void Executor::run_batch(Frames &frames, const Inputs &inputs, Outputs &results) {
    auto &standing = *standing_;
    standing.frames = &frames;
    standing.inputs = &inputs;
    standing.results = &results;
    for (auto &semaphore : semaphores_) {
        semaphore.reset();
    }
    frames.start();
    for (auto &post : standing.posts) {
        post.called.release();
    }
    for (std::size_t i = 0; i < standing.posts.size(); ++i) {
        standing.ready.acquire();
    }
    for (const auto &post : standing.posts) {
        if (post.failure) {
            std::rethrow_exception(post.failure);
        }
    }
}

void Executor::stand_down() {
    if (standing_) {
        standing_->ends = true;
        for (auto &post : standing_->posts) {
            post.called.release();
        }
        for (auto &post : standing_->posts) {
            post.end.get();
        }
    }
}

}  // namespace parapipe
