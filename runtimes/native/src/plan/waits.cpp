#include "plan/waits.hpp"

#include "plan/plan.hpp"

namespace parapipe {

/// A wait counts a little less than its frames: in a circle without frames there is then a shortest way that grows
/// without end (Bellman and Ford).
std::size_t one_in_circle(const std::vector<Wait> &waits, std::size_t count) {
    std::vector<std::int64_t> ways(count);
    auto shorter = kNone;
    for (std::size_t round = 0; round <= count; ++round) {
        shorter = kNone;
        for (const auto &wait : waits) {
            const auto way = ways[wait.first] + wait.frames * static_cast<std::int64_t>(count + 1) - 1;
            if (way < ways[wait.then]) {
                ways[wait.then] = way;
                shorter = wait.then;
            }
        }
        if (shorter == kNone) {
            return kNone;
        }
    }
    return shorter;
}

}  // namespace parapipe
