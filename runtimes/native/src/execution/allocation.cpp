#include "execution/buffers.hpp"

#include "execution/frame_counts.hpp"
#include "execution/views.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace parapipe {
namespace {

constexpr std::size_t kRows = 2;  // the axis, counted among four

/// Where something lies beside something else: so many elements further along each axis.
using Offset = std::array<std::ptrdiff_t, kMostDimensions>;

Offset offset_of(const Extents &start) {
    Offset offset{};
    std::transform(start.begin(), start.end(), offset.begin(), [](std::size_t at) { return static_cast<std::ptrdiff_t>(at); });
    return offset;
}

template <class Combine>
Offset combined(Offset one, const Offset &other, Combine combine) {
    std::transform(one.begin(), one.end(), other.begin(), one.begin(), combine);
    return one;
}

/// Whether what is dense by itself has the same bytes from element to element in something larger.
bool keeps_strides(const Extents &part, const Extents &whole, Order order) {
    bool longer = false;  // along an axis further out
    for (const auto axis : axes_of(order)) {
        if (longer && part[axis] != whole[axis]) {
            return false;
        }
        longer = longer || part[axis] > 1;
    }
    return true;
}

/// A buffer that is to lie beside others.
struct Piece {
    std::size_t buffer = kNone;
    Offset offset{};
};

class Allocation {
public:
    /// @param together Where each tensor lies if all processors were one: what overlaps there is the same. None if
    ///     bytes may be seen by several only where one writes to them in any case.
    Allocation(const Plan &plan, const Orders &orders, const std::vector<bool> &views,
               const std::function<Padding(const Instance &)> &padding, std::vector<Region> together)
        : plan_(plan), orders_(orders), places_(plan.places()), makers_(plan.makers()), views_(views),
          together_(std::move(together)) {
        for (OperatorId v = 0; v < plan.operators.size(); ++v) {
            for (const TensorId t : read_by(plan, plan.operators[v])) {
                add({t, places_[v]}, padding);
                if (!views[v]) {
                    readers_[region({t, places_[v]}).buffer].insert(places_[v]);
                }
            }
            add({plan.operators[v].output, places_[v]}, padding);
        }
        for (const OperatorId v : cuts_and_joins()) {
            views_[v] = is_cut(v) ? cut(v) : join(v);
        }
        for (const auto &transfer : plan_.transfers) {
            unite({transfer.tensor, transfer.source}, {transfer.tensor, transfer.target});
        }
    }

    /// Whether several operators or transfers would write to the same bytes.
    bool writes_twice() const {
        std::map<std::size_t, std::vector<Placed>> written;
        for (const auto &[instance, region] : regions_) {
            if (is_written(instance, {})) {
                written[region.buffer].push_back({instance, region.start});
            }
        }
        return std::any_of(written.begin(), written.end(), [this](const auto &each) {
            const auto &all = each.second;
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i),
                                [&](const Placed &other) { return meet(all[i], other); })) {
                    return true;
                }
            }
            return false;
        });
    }

    Buffers done() {
        std::vector<bool> shared;
        for (const auto &transfer : plan_.transfers) {
            shared.push_back(is_shared(transfer));
        }
        Buffers done{{}, {}, std::move(shared), std::move(views_), {}};
        std::map<std::size_t, std::size_t> numbers;
        for (const auto &[instance, region] : regions_) {
            const auto [number, is_new] = numbers.emplace(region.buffer, done.all.size());
            if (is_new) {
                done.all.push_back(buffers_[region.buffer]);
            }
            done.regions[instance] = {number->second, region.start};
        }
        count_frames(plan_, done);
        return done;
    }

private:
    void add(const Instance &instance, const std::function<Padding(const Instance &)> &padding) {
        if (regions_.emplace(instance, Region{buffers_.size(), {}}).second) {
            buffers_.push_back({instance, {instance}, padding(instance), extents_of(instance),
                                orders_.of(instance.tensor, instance.processor)});
            readers_.emplace_back();
            dense_.push_back(false);
        }
    }

    const Region &region(const Instance &instance) const { return regions_.at(instance); }

    /// Views, first the cuts, then the joins, the largest first: where not all can be had, those that save most.
    std::vector<OperatorId> cuts_and_joins() const {
        std::vector<OperatorId> found;
        for (OperatorId v = 0; v < plan_.operators.size(); ++v) {
            if (views_[v]) {
                found.push_back(v);
            }
        }
        const auto joins = std::stable_partition(found.begin(), found.end(), [this](OperatorId v) { return is_cut(v); });
        std::stable_sort(joins, found.end(), [this](OperatorId one, OperatorId other) {
            return made_by(one).elements() > made_by(other).elements();
        });
        return found;
    }

    bool is_cut(OperatorId v) const { return plan_.operators[v].type == "Slice"; }
    const Tensor &made_by(OperatorId v) const { return plan_.tensors[plan_.operators[v].output]; }

    Extents extents_of(const Instance &instance) const { return parapipe::extents_of(plan_, instance.tensor); }

    bool whole(const Instance &instance) const { return extents_of(instance) == buffers_[region(instance).buffer].extents; }

    /// Where a buffer lies if an instance in it begins at an offset.
    Piece piece(const Instance &instance, const Offset &at) const {
        const auto &here = region(instance);
        return {here.buffer, combined(at, offset_of(here.start), std::minus<>())};
    }

    bool along_rows(const Operator &op) const {
        const auto axis = axis_of(plan_, op);
        return axis != kNone && axis >= kRows;
    }

    /// Lets a Slice's output lie in its input.
    bool cut(OperatorId v) {
        const auto &op = plan_.operators[v];
        return lay({piece({op.inputs.front(), places_[v]}, {}), piece({op.output, places_[v]}, offset_of(start_of(op)))},
                   along_rows(op));
    }

    /// Lets a Concat's inputs lie in its output, one behind the other.
    bool join(OperatorId v) {
        const auto &op = plan_.operators[v];
        const auto axis = axis_of(plan_, op);
        std::vector<Piece> pieces{piece({op.output, places_[v]}, {})};
        Extents start{};
        for (const TensorId t : op.inputs) {
            pieces.push_back(piece({t, places_[v]}, offset_of(start)));
            if (axis != kNone) {
                start[axis] += extents_of({t, places_[v]})[axis];
            }
        }
        return lay(std::move(pieces), along_rows(op));
    }

    /// Lets the ends of a transfer lie in one place, if that can be.
    void unite(const Instance &source, const Instance &target) {
        const bool gpu = uses_gpu(region(source).buffer) || uses_gpu(region(target).buffer);
        if (!gpu || (whole(source) && whole(target))) {
            lay({piece(source, {}), piece(target, {})}, false);
        }
    }

    /// Lets buffers become one, if that can be.
    /// @param rows Whether rows of it have to follow upon each other.
    bool lay(std::vector<Piece> pieces, bool rows) {
        if (!once_each(pieces)) {
            return false;
        }
        auto low = pieces.front().offset;
        for (const auto &piece : pieces) {
            low = combined(low, piece.offset, [](auto a, auto b) { return std::min(a, b); });
        }
        Extents extents{};
        for (auto &piece : pieces) {
            piece.offset = combined(piece.offset, low, std::minus<>());
            const auto &own = buffers_[piece.buffer].extents;
            for (std::size_t axis = 0; axis < extents.size(); ++axis) {
                extents[axis] = std::max(extents[axis], static_cast<std::size_t>(piece.offset[axis]) + own[axis]);
            }
        }
        if (!fit(pieces, extents, rows) || hold_different(pieces)) {
            return false;
        }
        merge(pieces, extents, rows);
        return true;
    }

    /// Leaves out what is said twice; false if a buffer would have to lie in two places.
    bool once_each(std::vector<Piece> &pieces) const {
        std::map<std::size_t, Offset> offsets;
        std::vector<Piece> once;
        for (const auto &piece : pieces) {
            const auto [found, is_new] = offsets.emplace(piece.buffer, piece.offset);
            if (is_new) {
                once.push_back(piece);
            } else if (found->second != piece.offset) {
                return false;
            }
        }
        pieces = std::move(once);
        return true;
    }

    /// Whether buffers can be one of these extents.
    bool fit(const std::vector<Piece> &pieces, const Extents &extents, bool rows) const {
        const auto order = buffers_[pieces.front().buffer].order;
        std::set<ProcessorId> readers;
        Padding padding;
        bool gpu = false;
        bool whole = false;
        bool dense = rows;
        for (const auto &piece : pieces) {
            const auto &buffer = buffers_[piece.buffer];
            if (buffer.order != order || !keeps_strides(buffer.extents, extents, order)) {
                return false;
            }
            readers.insert(readers_[piece.buffer].begin(), readers_[piece.buffer].end());
            padding = larger_of(padding, buffer.padding);
            gpu = gpu || uses_gpu(piece.buffer);
            whole = whole || (buffer.extents == extents && buffer.has_whole(plan_));
            dense = dense || dense_[piece.buffer];
        }
        const bool plain = padding.none() && !gpu;
        return (!dense || padding.none()) && (plain || (whole && readers.size() <= 1));
    }

    struct Placed {
        Instance instance;
        Extents start{};
    };

    /// Whether two buffers would hold different tensors in the same bytes.
    bool hold_different(const std::vector<Piece> &pieces) const {
        std::vector<std::vector<Placed>> contents(pieces.size());
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            for (const auto &member : buffers_[pieces[i].buffer].members) {
                if (!together_.empty() || is_written(member, pieces)) {
                    contents[i].push_back({member, place(member, pieces).start});
                }
            }
            for (std::size_t j = 0; j < i; ++j) {
                for (const auto &one : contents[i]) {
                    if (std::any_of(contents[j].begin(), contents[j].end(),
                                    [&](const Placed &other) { return meet(one, other) && !same(one, other); })) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

    bool meet(const Placed &one, const Placed &other) const {
        return parapipe::overlap(one.start, extents_of(one.instance), other.start, extents_of(other.instance));
    }

    /// Whether what overlaps is the same tensor there, or parts of the same one.
    bool same(const Placed &one, const Placed &other) const {
        if (together_.empty()) {
            const OperatorId v = makers_[one.instance.tensor];
            return v != kNone && one.instance.tensor == other.instance.tensor && one.start == other.start &&
                   (places_[v] == one.instance.processor || places_[v] == other.instance.processor);
        }
        const auto &here = together_[one.instance.tensor];
        const auto &there = together_[other.instance.tensor];
        return here.buffer == there.buffer && sum_of(one.start, there.start) == sum_of(other.start, here.start);
    }

    /// Whether an operator or a transfer writes an instance, all pieces being one buffer: not if it is a view, or
    /// lies where it comes from.
    bool is_written(const Instance &instance, const std::vector<Piece> &pieces) const {
        const OperatorId v = makers_[instance.tensor];
        if (v == kNone || places_[v] == instance.processor) {
            return v == kNone || !views_[v];
        }
        return !(place(instance, pieces) == place({instance.tensor, places_[v]}, pieces));
    }

    /// Where an instance is to lie: all pieces are one buffer, that of the first one.
    Region place(const Instance &instance, const std::vector<Piece> &pieces) const {
        auto at = region(instance);
        for (const auto &piece : pieces) {
            if (piece.buffer == at.buffer) {
                return {pieces.front().buffer, moved(at.start, piece.offset)};
            }
        }
        return at;
    }

    static Extents moved(Extents start, const Offset &offset) {
        std::transform(start.begin(), start.end(), offset.begin(), start.begin(), [](std::size_t at, std::ptrdiff_t by) {
            return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(at) + by);
        });
        return start;
    }

    bool is_shared(const Transfer &transfer) const {
        return region({transfer.tensor, transfer.source}) == region({transfer.tensor, transfer.target});
    }

    bool uses_gpu(std::size_t buffer) const {
        return plan_.processors[buffers_[buffer].maker(plan_).processor].backend == BackendKind::opencl;
    }

    void merge(const std::vector<Piece> &pieces, const Extents &extents, bool rows) {
        const auto into = pieces.front().buffer;
        Buffer made{buffers_[into].root, {}, {}, extents, buffers_[into].order};
        bool dense = rows;
        for (const auto &piece : pieces) {
            auto &buffer = buffers_[piece.buffer];
            if (!made.has_whole(plan_)) {
                made.root = buffer.root;
            }
            for (const auto &member : buffer.members) {
                auto &moving = regions_.at(member);
                moving = {into, moved(moving.start, piece.offset)};
                made.members.push_back(member);
            }
            made.padding = larger_of(made.padding, buffer.padding);
            dense = dense || dense_[piece.buffer];
            const auto readers = std::exchange(readers_[piece.buffer], {});
            readers_[into].insert(readers.begin(), readers.end());
            buffer.members.clear();
        }
        dense_[into] = dense;
        buffers_[into] = std::move(made);
    }

    const Plan &plan_;
    const Orders &orders_;
    std::vector<ProcessorId> places_;
    std::vector<OperatorId> makers_;
    std::vector<bool> views_;
    const std::vector<Region> together_;  // by tensor
    std::map<Instance, Region> regions_;
    std::vector<Buffer> buffers_;
    std::vector<std::set<ProcessorId>> readers_;  // by buffer
    std::vector<bool> dense_;                     // by buffer: rows have to follow upon each other
};

/// Where each tensor would lie if there were one processor.
std::vector<Region> together(const Plan &plan, const std::vector<bool> &views) {
    const auto one = on_one_processor(plan);
    const auto buffers = buffers_of(one, Orders(one), views, [](const Instance & /*instance*/) { return Padding(); });
    std::vector<Region> regions(plan.tensors.size());
    for (const auto &[instance, region] : buffers.regions) {
        regions[instance.tensor] = region;
    }
    return regions;
}

}  // namespace

Buffers buffers_of(const Plan &plan, const Orders &orders, const std::vector<bool> &views,
                   const std::function<Padding(const Instance &)> &padding) {
    if (plan.processors.size() == 1) {
        return Allocation(plan, orders, views, padding, {}).done();
    }
    Allocation allocation(plan, orders, views, padding, together(plan, views));
    return allocation.writes_twice() ? Allocation(plan, orders, views, padding, {}).done() : allocation.done();
}

}  // namespace parapipe
