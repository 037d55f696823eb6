#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace parapipe {

using Integers = std::vector<std::int64_t>;

/// Extents in ONNX's order, the outermost first.
using Shape = Integers;

/// Number of elements. Shapes that were read have no more than `kMostElements`.
std::size_t elements_of(const Shape &shape);
std::string text_of_shape(const Shape &shape);

constexpr std::int64_t kMostElements = std::int64_t{1} << 31;
constexpr std::size_t kMostDimensions = 4;

using TensorId = std::size_t;
using OperatorId = std::size_t;
using ProcessorId = std::size_t;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct Tensor {
    std::string name;
    Shape shape;
    /// Where a constant starts in the weights file, in bytes; an activation has none.
    std::optional<std::uint64_t> offset;

    bool constant() const { return offset.has_value(); }
    std::size_t elements() const { return elements_of(shape); }
    std::size_t size_bytes() const { return elements() * sizeof(float); }
};

/// Attributes of an operator, checked against the catalogue: a getter finds what it asks for.
class Attributes {
public:
    using Value = std::variant<std::int64_t, double, std::string, Integers>;

    void set(const std::string &name, Value value) { values_[name] = std::move(value); }
    std::int64_t integer(std::string_view name) const { return std::get<std::int64_t>(value(name)); }
    double number(std::string_view name) const { return std::get<double>(value(name)); }
    const std::string &text(std::string_view name) const { return std::get<std::string>(value(name)); }
    const Integers &integers(std::string_view name) const { return std::get<Integers>(value(name)); }

private:
    const Value &value(std::string_view name) const {
        const auto found = values_.find(name);
        if (found == values_.end()) {
            throw std::out_of_range("an operator lacks the attribute " + std::string(name));
        }
        return found->second;
    }

    std::map<std::string, Value, std::less<>> values_;
};

struct Activation {
    std::string type;
    Attributes attributes;
};

struct Operator {
    std::string id;
    std::string type;
    /// Tensors by position; kNone where an optional one is left out.
    std::vector<TensorId> inputs;
    TensorId output = kNone;
    Attributes attributes;
    std::optional<Activation> activation;
    /// Id of the plan's operator whose time this one's belongs to.
    std::string source;
    /// Further operators of the plan that it stands for.
    std::vector<std::string> includes = {};
};

enum class BackendKind { neon, opencl, onednn, xnnpack, plain, stub, cuda };

struct Processor {
    std::string name;
    BackendKind backend = BackendKind::neon;
    /// Linux core numbers to pin to; empty for any.
    std::vector<int> cores;
    unsigned threads = 1;
    /// Clock that the plan was made for; 0 if it does not say.
    double frequency_hz = 0;
    /// Number of its stage, and its operators in the order in which it takes them.
    std::size_t stage = 0;
    std::vector<OperatorId> operators;
    /// Of each of them: in round r it works on frame r - lag. The least is 0.
    std::vector<std::size_t> lags;
    /// Further processors that take turns with it: of r in all, frame n is run by number n modulo r, it being 0.
    /// They have no operators of their own, and it is their `first`.
    std::vector<ProcessorId> replicas = {};
    ProcessorId first = kNone;

    /// How many take turns.
    std::size_t turns() const { return 1 + replicas.size(); }
    bool is_replica() const { return first != kNone; }
};

/// A tensor that goes from the processor that makes it to one that reads it.
struct Transfer {
    TensorId tensor = kNone;
    ProcessorId source = kNone;
    ProcessorId target = kNone;
    std::size_t queue_depth = 1;
};

struct Memory {
    std::string name;
    std::size_t size_bytes = 0;
};

/// Where a tensor lies in an arena: frame n at the offset number n modulo their count.
struct Place {
    TensorId tensor = kNone;
    /// Those that use it there; the first one makes it, or loads the graph input.
    std::vector<ProcessorId> processors;
    std::size_t memory = kNone;
    std::vector<std::int64_t> offset_bytes;
};

/// Offsets of tensors in one arena for each memory, and the times that they hold for.
struct Arena {
    /// Points in time in a period.
    std::int64_t points = 1;
    std::vector<Memory> memories;
    std::vector<Place> places;
    /// By operator, the numbers of the points at which it starts and ends, of frame 0.
    std::vector<std::pair<std::int64_t, std::int64_t>> spans;
};

struct Predicted {
    double latency_s = 0;
    double period_s = 0;
    double sustained_period_s = 0;
};

/// The columns of a profile that an operator of the plan has on any processor.
struct ProfileRow {
    std::map<std::string, std::string> cells;
};

struct Plan {
    std::string model;
    std::string platform;
    std::string weights_file;
    std::uint64_t weights_size_bytes = 0;
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    std::vector<Tensor> tensors;
    std::vector<Operator> operators;
    std::vector<Processor> processors;
    std::size_t stages = 0;
    std::vector<Transfer> transfers;
    std::optional<Predicted> predicted;
    std::optional<Arena> arena;
    std::map<std::string, ProfileRow> profile;

    /// Processor of each operator.
    std::vector<ProcessorId> places() const;
    /// Operator that makes each tensor; kNone for graph inputs and constants.
    std::vector<OperatorId> makers() const;
    /// Whether processors take turns on frames.
    bool replicated() const;
};

/// A plan that has all operators on its first processor, in the order of the list.
Plan on_one_processor(Plan plan);

}  // namespace parapipe
