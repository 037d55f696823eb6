#include "execution/orders.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <string>

namespace parapipe {
namespace {

const std::set<std::string> kOfImages = {"Conv",        "ConvTranspose", "MaxPool", "AveragePool",
                                         "GlobalAveragePool", "GlobalMaxPool", "LRN", "Resize",
                                         "BatchNormalization"};
/// What gives elements another place, or computes along an axis.
const std::set<std::string> kRearranging = {"Reshape", "Transpose", "Gemm",   "MatMul",
                                            "Softmax", "LogSoftmax", "Gather", "ReduceMean", "GridSample"};

/// Sets of tensors that lie in one order.
class Sets {
public:
    explicit Sets(std::size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), std::size_t{0}); }

    std::size_t find(std::size_t at) {
        while (parents_[at] != at) {
            at = parents_[at] = parents_[parents_[at]];
        }
        return at;
    }
    void unite(std::size_t one, std::size_t other) { parents_[find(one)] = find(other); }

private:
    std::vector<std::size_t> parents_;
};

}  // namespace

bool keeps_channels_last(BackendKind backend) {
    return backend == BackendKind::onednn || backend == BackendKind::xnnpack || backend == BackendKind::plain;
}

Orders::Orders(const Plan &plan) : images_(plan.tensors.size()) {
    const auto may_be = [&plan](TensorId t) {
        return t != kNone && !plan.tensors[t].constant() && plan.tensors[t].shape.size() == kMostDimensions;
    };
    Sets sets(plan.tensors.size());
    std::set<TensorId> certain;
    for (const auto &op : plan.operators) {
        for (const TensorId t : op.inputs) {
            if (may_be(t) && may_be(op.output) && kRearranging.count(op.type) == 0) {
                sets.unite(t, op.output);
            }
        }
        if (may_be(op.output) && kOfImages.count(op.type) > 0) {
            certain.insert(op.output);
        }
    }
    std::set<std::size_t> roots;
    std::transform(certain.begin(), certain.end(), std::inserter(roots, roots.end()),
                   [&sets](TensorId t) { return sets.find(t); });
    for (TensorId t = 0; t < images_.size(); ++t) {
        images_[t] = may_be(t) && roots.count(sets.find(t)) > 0;
    }
    std::transform(plan.processors.begin(), plan.processors.end(), std::back_inserter(channels_last_),
                   [](const Processor &processor) { return keeps_channels_last(processor.backend); });
}

}  // namespace parapipe
