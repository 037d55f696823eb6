#pragma once

#include "plan/plan.hpp"

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace parapipe {

/// An attribute of an operator, as a source writes it: `{"strides", {2, 2}}`.
struct Attribute {
    Attribute(const char *called, int given) : name(called), value(std::int64_t{given}) {}
    Attribute(const char *called, std::int64_t given) : name(called), value(given) {}
    Attribute(const char *called, double given) : name(called), value(given) {}
    Attribute(const char *called, const char *given) : name(called), value(std::string(given)) {}
    Attribute(const char *called, std::initializer_list<std::int64_t> given) : name(called), value(Integers(given)) {}

    const char *name;
    Attributes::Value value;
};

/// A network and its plan, as the source of a generated program says them.
///
/// Everything is there before it is named: tensors by the operators that make them, clusters before streams.
class Description {
public:
    /// Operators that a stream runs at one go: once the first one has what it waits for, none waits again.
    class Cluster {
    public:
        /// An operator that makes a tensor of its own name. Lists begin with its inputs; "" is one left out.
        Cluster &op(const char *type, const char *output, Shape shape, std::initializer_list<const char *> inputs,
                    std::initializer_list<Attribute> attributes = {});
        /// What is applied to the output of the operator before.
        Cluster &then(const char *type, std::initializer_list<Attribute> attributes = {});
        /// The operator of the plan that the one before belongs to, if it has another name.
        Cluster &of(const char *source);
        /// When the operator before starts and ends in the plan: numbers of points in time.
        Cluster &during(std::int64_t start, std::int64_t end);

    private:
        friend class Description;
        explicit Cluster(Description &description) : description_(description) {}

        Description &description_;
    };

    /// A stream's turn for a cluster; in round r it works on frame r - lag.
    struct Turn {
        std::size_t cluster;
        std::size_t lag = 0;
    };

    /// @param latency_s, period_s Seconds that the plan predicts.
    Description(const char *model, const char *platform, double latency_s, double period_s);

    void weights(std::uint64_t size_bytes) { plan_.weights_size_bytes = size_bytes; }
    void constant(const char *name, Shape shape, std::uint64_t offset_bytes);
    void input(const char *name, Shape shape);
    void outputs(std::initializer_list<const char *> names) { outputs_.assign(names.begin(), names.end()); }
    /// Another cluster; they are counted from 0.
    Cluster cluster();
    /// What runs clusters one after the other, in this order, on cores of its own. Streams are counted from 0.
    /// @param stage Those of one stage work on the same frame.
    void stream(const char *name, BackendKind backend, std::vector<int> cores, unsigned threads, std::size_t stage,
                std::initializer_list<Turn> turns);
    /// What one stream makes and another one reads, and how many frames of it may be held at once.
    void transfer(const char *tensor, ProcessorId from, ProcessorId to, std::size_t queue_depth);
    /// A memory pool; times of operators count points of a period.
    void pool(const char *name, std::size_t size_bytes, std::int64_t points);
    /// Where a tensor lies in a pool, for the streams that use it there: frame n at offset n modulo their count.
    void place(const char *tensor, std::vector<ProcessorId> streams, const char *pool, Integers offset_bytes);

    /// The operators of each cluster.
    const std::vector<std::vector<OperatorId>> &clusters() const { return clusters_; }
    /// The plan.
    /// @throws Error if its parts do not fit together.
    Plan plan() const;

private:
    TensorId add_tensor(Tensor tensor);
    TensorId tensor(const std::string &name) const;

    Plan plan_;
    std::map<std::string, TensorId> tensors_;
    std::vector<std::string> outputs_;
    std::vector<std::vector<OperatorId>> clusters_;
    std::vector<std::pair<std::int64_t, std::int64_t>> spans_;
    Arena arena_;
    std::vector<std::pair<Place, std::string>> places_;       // and the name of the tensor
    std::vector<std::pair<Transfer, std::string>> transfers_;
};

}  // namespace parapipe
