#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace parapipe {

/// Thrown where a thread waits for what will not come any more, because another one has failed.
struct Closed {};

/// Counts what is there; who wants one waits for it.
class Semaphore {
public:
    /// @param count Below 0, so many have to come before the first can be had.
    explicit Semaphore(std::int64_t count) : count_(count) {}

    void acquire() {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return closed_ || count_ > 0; });
        if (closed_) {
            throw Closed();
        }
        --count_;
    }

    void release() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            ++count_;
        }
        changed_.notify_one();
    }

    /// Lets nobody wait for one any more.
    void open() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            count_ = kEnough;
        }
        changed_.notify_all();
    }

    /// Ends all waiting, now and later.
    void close() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            closed_ = true;
        }
        changed_.notify_all();
    }

private:
    static constexpr std::int64_t kEnough = std::int64_t{1} << 60;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::int64_t count_;
    bool closed_ = false;
};

}  // namespace parapipe
