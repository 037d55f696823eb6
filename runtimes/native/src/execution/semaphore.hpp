#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace parapipe {

/// Thrown where a thread waits for what will not come any more, because another one has failed.
struct Closed {};

/// Counts what is there; who wants one waits for it: for a while without sleeping, since waking up takes many
/// times longer than most waits between processors, and then asleep.
class Semaphore {
public:
    /// @param count Below 0, so many have to come before the first can be had.
    /// @param spin How long to wait without sleeping.
    explicit Semaphore(std::int64_t count, std::chrono::nanoseconds spin = std::chrono::nanoseconds(0))
        : first_(count), count_(count), spin_(spin) {}

    void acquire() {
        if (take() || spin([] { return std::chrono::steady_clock::time_point::max(); })) {
            return;
        }
        std::unique_lock<std::mutex> lock(mutex_);
        waiting_.fetch_add(1);
        changed_.wait(lock, [this] { return take(); });
        waiting_.fetch_sub(1);
    }

    /// Waits until a time that may change meanwhile, which is looked at every millisecond at least.
    /// @return Whether there was one.
    template <class Due>
    bool acquire_until(const Due &due) {
        constexpr auto slice = std::chrono::milliseconds(1);
        if (take() || spin(due)) {
            return true;
        }
        std::unique_lock<std::mutex> lock(mutex_);
        waiting_.fetch_add(1);
        bool taken = false;
        for (auto now = std::chrono::steady_clock::now(); !taken && now < due(); now = std::chrono::steady_clock::now()) {
            taken = changed_.wait_until(lock, std::min(due(), now + slice), [this] { return take(); });
        }
        waiting_.fetch_sub(1);
        return taken;
    }

    void release() {
        count_.fetch_add(1);
        wake();
    }

    /// Lets nobody wait for one any more.
    void open() {
        count_.store(kEnough);
        wake();
    }

    /// Counts as at the start again; nobody may be waiting.
    void reset() { count_.store(first_); }

    /// Ends all waiting, now and later.
    void close() {
        closed_.store(true);
        wake();
    }

private:
    static constexpr std::int64_t kEnough = std::int64_t{1} << 60;
    static constexpr int kLooks = 64;  // between two looks at the clock

    /// @throws Closed if nothing is to be had any more.
    bool take() {
        if (closed_.load(std::memory_order_relaxed)) {
            throw Closed();
        }
        auto count = count_.load();
        while (count > 0) {
            if (count_.compare_exchange_weak(count, count - 1)) {
                return true;
            }
        }
        return false;
    }

    /// @param due Says when to give up, if that is sooner.
    template <class Due>
    bool spin(const Due &due) {
        if (spin_.count() == 0) {
            return false;
        }
        const auto begin = std::chrono::steady_clock::now();
        auto now = begin;
        do {
            for (int i = 0; i < kLooks; ++i) {
                if (count_.load(std::memory_order_relaxed) > 0 && take()) {
                    return true;
                }
                pause();
            }
            now = std::chrono::steady_clock::now();
        } while (!closed_.load(std::memory_order_relaxed) && now < begin + spin_ && now < due());
        return take();
    }

    /// Tells the core that this is a loop that waits.
    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ __volatile__("yield");
#endif
    }

    void wake() {
        // Who sleeps has said so before it looked; who counts has counted before it looks for sleepers.
        if (waiting_.load() > 0 || closed_.load()) {
            const std::lock_guard<std::mutex> lock(mutex_);
            changed_.notify_all();
        }
    }

    const std::int64_t first_;
    std::atomic<std::int64_t> count_;
    std::atomic<int> waiting_{0};
    std::atomic<bool> closed_{false};
    const std::chrono::nanoseconds spin_;
    std::mutex mutex_;
    std::condition_variable changed_;
};

}  // namespace parapipe
