#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace parapipe {

/// Memory of a thread for what a loop needs in between. It is kept: once a frame was computed, the next one
/// allocates nothing.
class Room {
public:
    static Room &of_this_thread() {
        thread_local Room room;
        return room;
    }

    void *take(std::size_t size_bytes) {
        const auto bytes = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
        ++users_;
        wanted_ += bytes;
        if (wanted_ <= kept_bytes_) {
            return kept_.get() + wanted_ - bytes;
        }
        return ::operator new(bytes);
    }

    void give_back(void *memory) {
        const auto at = reinterpret_cast<std::uintptr_t>(memory);
        const auto begin = reinterpret_cast<std::uintptr_t>(kept_.get());
        if (at < begin || at >= begin + kept_bytes_) {
            ::operator delete(memory);
        }
        if (--users_ == 0) {
            if (wanted_ > kept_bytes_) {
                kept_ = std::make_unique<std::byte[]>(wanted_);
                kept_bytes_ = wanted_;
            }
            wanted_ = 0;
        }
    }

private:
    static constexpr std::size_t kAlignment = alignof(std::max_align_t);

    std::unique_ptr<std::byte[]> kept_;
    std::size_t kept_bytes_ = 0;
    std::size_t wanted_ = 0;  // bytes taken since the room was last empty
    std::size_t users_ = 0;
};

template <class Value>
struct InRoom {
    using value_type = Value;

    InRoom() = default;
    template <class Other>
    InRoom(const InRoom<Other> & /*other*/) {}

    Value *allocate(std::size_t count) { return static_cast<Value *>(Room::of_this_thread().take(count * sizeof(Value))); }
    void deallocate(Value *memory, std::size_t /*count*/) { Room::of_this_thread().give_back(memory); }

    bool operator==(const InRoom & /*other*/) const { return true; }
    bool operator!=(const InRoom & /*other*/) const { return false; }
};

/// A vector that ends within the loop that made it.
template <class Value>
using Scratch = std::vector<Value, InRoom<Value>>;

}  // namespace parapipe
