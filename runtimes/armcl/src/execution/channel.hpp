#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace parapipe {

/// Thrown where a thread waits for what will not come any more, because another one has failed.
struct Closed {};

/// Counts what is there; who wants one waits for it.
class Semaphore {
public:
    explicit Semaphore(std::size_t count) : count_(count) {}

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

    void close() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            closed_ = true;
        }
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t count_;
    bool closed_ = false;
};

/// Memory for one frame of a tensor, as a CPU sees it; for a GPU's memory, only while it is mapped.
class Slot {
public:
    virtual ~Slot() = default;
    virtual std::byte *host() = 0;
};

/// A bounded queue from one thread to another: a ring of slots. A slot is taken by the writer from
/// `begin_write` to `end_write`, and by the reader from `begin_read` to `end_read`.
class Channel {
public:
    explicit Channel(std::vector<std::unique_ptr<Slot>> slots)
        : slots_(std::move(slots)), free_(slots_.size()), filled_(0) {}

    Slot &begin_write() {
        free_.acquire();
        return *slots_[written_ % slots_.size()];
    }

    void end_write() {
        ++written_;
        filled_.release();
    }

    Slot &begin_read() {
        filled_.acquire();
        return *slots_[read_ % slots_.size()];
    }

    void end_read() {
        ++read_;
        free_.release();
    }

    /// Ends all waiting, now and later.
    void close() {
        free_.close();
        filled_.close();
    }

private:
    std::vector<std::unique_ptr<Slot>> slots_;
    Semaphore free_;
    Semaphore filled_;
    std::size_t written_ = 0;  // of the writer's thread
    std::size_t read_ = 0;     // of the reader's thread
};

}  // namespace parapipe
