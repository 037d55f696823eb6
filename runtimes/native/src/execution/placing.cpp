#include "execution/placing.hpp"

#include "execution/layout.hpp"
#include "plan/arena.hpp"

#include <algorithm>
#include <numeric>

namespace parapipe {
namespace {

/// The number of the place that the plan has for an instance; kNone if it has none.
std::size_t place_of(const Plan &plan, const Instance &instance) {
    const auto &all = plan.arena->places;
    const auto found = std::find_if(all.begin(), all.end(), [&instance](const Place &place) {
        const auto &users = place.processors;
        return place.tensor == instance.tensor && std::find(users.begin(), users.end(), instance.processor) != users.end();
    });
    return found == all.end() ? kNone : static_cast<std::size_t>(found - all.begin());
}

/// Whether an instance is where the plan has it if the whole is where the plan has that.
bool is_within(const Plan &plan, const Region &region, const Place &place, const Place &whole) {
    const auto strides = layout_of(plan.tensors[whole.tensor].shape).strides;
    const auto begin = static_cast<std::int64_t>(
        std::inner_product(strides.begin(), strides.end(), region.start.begin(), std::size_t{0}));
    return place.memory == whole.memory &&
           std::equal(place.offset_bytes.begin(), place.offset_bytes.end(), whole.offset_bytes.begin(),
                      whole.offset_bytes.end(), [begin](std::int64_t at, std::int64_t there) { return at == there + begin; });
}

/// The places of a buffer's members, the root's first; none if it cannot lie in an arena.
std::vector<std::size_t> places_of(const Plan &plan, const Buffers &buffers, const Buffer &buffer) {
    const auto root = place_of(plan, buffer.root);
    if (root == kNone || !buffer.has_whole(plan) || buffer.received || !buffer.padding.none()) {
        return {};
    }
    std::vector<std::size_t> found{root};
    bool written = false;
    for (const auto &member : buffer.members) {
        const auto number = place_of(plan, member);
        const bool gpu = plan.processors[member.processor].backend == BackendKind::opencl;
        const auto &places = plan.arena->places;
        if (gpu || number == kNone || !is_within(plan, buffers.regions.at(member), places[number], places[root])) {
            return {};
        }
        found.push_back(number);
        written = written || (member.tensor == buffer.root.tensor && member.processor == places[root].processors.front());
    }
    return written ? found : std::vector<std::size_t>();
}

}  // namespace

std::vector<bool> take_places(const Plan &plan, Buffers &buffers) {
    if (!plan.arena) {
        return {};
    }
    std::vector<bool> taken(plan.arena->places.size());
    for (auto &buffer : buffers.all) {
        for (const auto number : places_of(plan, buffers, buffer)) {
            buffer.place = buffer.place == kNone ? number : buffer.place;
            taken[number] = true;
        }
        if (buffer.place != kNone) {
            buffer.frames = plan.arena->places[buffer.place].offset_bytes.size();
        }
    }
    return taken;
}

}  // namespace parapipe
