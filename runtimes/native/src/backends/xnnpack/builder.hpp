#pragma once

#include "backends/host/host_operator.hpp"
#include "backends/xnnpack/function_kernel.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace parapipe::xnnpack {

/// A tensor as rows of channels that follow upon each other, such as the pixels of an image. All are numbers of
/// elements; the stride goes from a row to the next.
struct Rows {
    std::size_t count = 1;
    std::size_t channels = 1;
    std::size_t stride = 1;

    bool dense() const { return count == 1 || stride == channels; }
};

/// @return None if the elements lie otherwise.
std::optional<Rows> rows_of(const Layout &layout, Order order);

/// What results are limited to.
struct Bounds {
    float least = -std::numeric_limits<float>::infinity();
    float most = std::numeric_limits<float>::infinity();
};

/// @return None if an operator of that kind does anything else.
std::optional<Bounds> bounds_of(const std::string &type, const Attributes &attributes);

/// An operator for which functions are sought.
class Builder : public HostOperator {
public:
    Builder(Tensors &tensors, pthreadpool_t pool, OperatorId op) : HostOperator(tensors, op), pool_(pool) {}

    pthreadpool_t pool() const { return pool_; }
    std::optional<Rows> rows(TensorId id) const { return rows_of(layout(id), order(id)); }
    /// The innermost axis in memory, counted among four.
    std::size_t innermost(TensorId id) const { return axes_of(order(id)).back(); }
    /// Where a tensor lies just now.
    std::function<float *()> place(TensorId id) const {
        return [id, &all = tensors()] { return all.data(id); };
    }
    /// A constant in another order.
    /// @param axes Its axes among four, from the outermost to the innermost.
    std::vector<float> constant_in(std::size_t position, const Shape &shape,
                                   const std::array<std::size_t, kMostDimensions> &axes) const;

    /// Limits that a function can apply by itself: those of the activation, if it is such a one.
    Bounds bounds() const;
    /// A kernel of one function.
    /// @param bounded Whether the function applies `bounds`; an activation that it does not apply follows.
    std::unique_ptr<FunctionKernel> kernel(Function function, FunctionKernel::SetUp set_up, bool bounded) const;

private:
    pthreadpool_t pool_;
};

/// A function of one tensor, element by element, from rows to rows; null if there is none.
Function unary_function(const std::string &type, const Attributes &attributes, const Rows &from, const Rows &to);
/// How it gets its tensors.
FunctionKernel::SetUp set_up_unary(const std::string &type, std::size_t rows, std::function<float *()> from,
                                   std::function<float *()> to);

/// Makes the kernel of an operator; null if the library has no function for it.
using Build = std::unique_ptr<Kernel> (*)(const Builder &);

struct BuildOfType {
    const char *type;
    Build build;
};

std::vector<BuildOfType> window_builds();
std::vector<BuildOfType> matrix_builds();
std::vector<BuildOfType> elementwise_builds();

inline std::uint32_t small(std::int64_t value) { return static_cast<std::uint32_t>(value); }
inline std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace parapipe::xnnpack
