#pragma once

#include <atomic>
#include <thread>

namespace parapipe {

/// A mutex for what takes about a microsecond: to sleep and be woken up would take many times longer.
class SpinMutex {
public:
    void lock() {
        for (int looks = 0; locked_.exchange(true, std::memory_order_acquire);) {
            while (locked_.load(std::memory_order_relaxed)) {
                if (++looks % kLooks == 0) {
                    std::this_thread::yield();  // who has it may wait for this core
                }
            }
        }
    }
    void unlock() { locked_.store(false, std::memory_order_release); }

private:
    static constexpr int kLooks = 1024;

    std::atomic<bool> locked_{false};
};

}  // namespace parapipe
