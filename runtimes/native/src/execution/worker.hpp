#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace parapipe {

/// A thread that does one task after the other.
class Worker {
public:
    Worker() : thread_([this] { work(); }) {}
    ~Worker() {
        post([this] { done_ = true; });
        thread_.join();
    }
    Worker(const Worker &) = delete;
    Worker &operator=(const Worker &) = delete;

    std::future<void> post(std::function<void()> task) {
        std::packaged_task<void()> packaged(std::move(task));
        auto future = packaged.get_future();
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            tasks_.push_back(std::move(packaged));
        }
        posted_.notify_one();
        return future;
    }

    /// Does a task and waits for its end; rethrows what it throws.
    void call(std::function<void()> task) { post(std::move(task)).get(); }

private:
    void work() {
        while (!done_) {
            std::unique_lock<std::mutex> lock(mutex_);
            posted_.wait(lock, [this] { return !tasks_.empty(); });
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable posted_;
    std::deque<std::packaged_task<void()>> tasks_;
    bool done_ = false;  // of the thread itself
    std::thread thread_;
};

}  // namespace parapipe
