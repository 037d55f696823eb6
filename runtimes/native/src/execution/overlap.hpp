#pragma once

#include <atomic>
#include <cstdint>

namespace parapipe {

/// Counts how often a processor began a piece of work while another one was in the middle of one.
class Overlap {
public:
    /// A piece of work, from its construction to its end.
    class Turn {
    public:
        explicit Turn(Overlap &overlap) : overlap_(overlap) {
            overlap_.turns_.fetch_add(1, std::memory_order_relaxed);
            if (overlap_.active_.fetch_add(1, std::memory_order_acq_rel) > 0) {
                overlap_.overlapped_.fetch_add(1, std::memory_order_relaxed);
            }
        }
        ~Turn() { overlap_.active_.fetch_sub(1, std::memory_order_acq_rel); }
        Turn(const Turn &) = delete;
        Turn &operator=(const Turn &) = delete;

    private:
        Overlap &overlap_;
    };

    std::uint64_t turns() const { return turns_.load(); }
    std::uint64_t overlapped() const { return overlapped_.load(); }

private:
    std::atomic<int> active_{0};
    std::atomic<std::uint64_t> turns_{0};
    std::atomic<std::uint64_t> overlapped_{0};
};

}  // namespace parapipe
