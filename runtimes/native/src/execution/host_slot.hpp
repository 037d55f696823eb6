#pragma once

#include "execution/slot.hpp"

#include <cstdlib>
#include <new>

namespace parapipe {

/// Memory of the CPUs, aligned to cache lines. Functions may read a few bytes beyond its end.
class HostSlot : public Slot {
public:
    explicit HostSlot(std::size_t size_bytes) : memory_(std::aligned_alloc(kAlignment, rounded(size_bytes))) {
        if (memory_ == nullptr) {
            throw std::bad_alloc();
        }
    }
    ~HostSlot() override { std::free(memory_); }
    HostSlot(const HostSlot &) = delete;
    HostSlot &operator=(const HostSlot &) = delete;

    std::byte *host() override { return static_cast<std::byte *>(memory_); }

private:
    static constexpr std::size_t kAlignment = 64;
    static constexpr std::size_t kBeyond = 16;  // XNNPACK's, the most of all
    static std::size_t rounded(std::size_t bytes) { return (bytes + kBeyond + kAlignment - 1) / kAlignment * kAlignment; }

    void *memory_;
};

/// A place in memory of the CPUs that another one holds.
class PlacedSlot : public Slot {
public:
    explicit PlacedSlot(std::byte *memory) : memory_(memory) {}

    std::byte *host() override { return memory_; }

private:
    std::byte *memory_;
};

}  // namespace parapipe
