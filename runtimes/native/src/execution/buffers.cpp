#include "execution/buffers.hpp"

#include "execution/views.hpp"

#include <algorithm>

namespace parapipe {

bool Buffer::seen_by_others(ProcessorId processor) const {
    return received || std::any_of(members.begin(), members.end(), [processor](const Instance &member) {
               return member.processor != processor;
           });
}

bool Buffer::has_whole(const Plan &plan) const {
    return extents == extents_of(plan, root.tensor);
}

const Instance &Buffer::maker(const Plan &plan) const {
    const auto gpu = std::find_if(members.begin(), members.end(), [&plan](const Instance &member) {
        return plan.processors[member.processor].backend == BackendKind::opencl;
    });
    return gpu == members.end() ? root : *gpu;
}

bool Buffers::overlap(const Plan &plan, const Instance &one, const Instance &other) const {
    const auto &here = regions.at(one);
    const auto &there = regions.at(other);
    return here.buffer == there.buffer && parapipe::overlap(here.start, extents_of(plan, one.tensor), there.start,
                                                            extents_of(plan, other.tensor));
}

Layout layout_of(const Plan &plan, const Buffer &buffer, const LayoutOf &layouts) {
    if (buffer.has_whole(plan)) {
        return layouts(buffer.maker(plan));
    }
    return layout_of(Shape(buffer.extents.begin(), buffer.extents.end()), buffer.order);
}

}  // namespace parapipe
