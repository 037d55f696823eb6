#pragma once

#include "backends/host/tensors.hpp"

#include <oneapi/dnnl/dnnl.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace parapipe {

/// What a processor's primitives share: a stream, and memory for what they compute in between. The engine is
/// that of the whole process.
class Bench {
public:
    static const dnnl::engine &engine();

    Bench() : stream_(engine()) {}
    dnnl::stream &stream() { return stream_; }
    /// Makes room for a primitive.
    void reserve(std::size_t size_bytes);
    void *scratchpad() const { return scratchpad_ ? scratchpad_->host() : nullptr; }

private:
    dnnl::stream stream_;
    std::size_t size_bytes_ = 0;
    std::unique_ptr<HostSlot> scratchpad_;
};

/// The extents of a tensor with its strides.
dnnl::memory::desc desc_of(const Shape &shape, const Layout &layout);
dnnl::memory::desc dense_desc(const Shape &shape);
/// The same extents in whatever layout the library likes best.
dnnl::memory::desc any_layout(const Shape &shape);

/// How the library computes an activation, or an operator of that kind.
struct Eltwise {
    dnnl::algorithm algorithm;
    float alpha = 0;
    float beta = 0;
};
/// @return None if it has no such function.
std::optional<Eltwise> eltwise_of(const std::string &type, const Attributes &attributes);

/// Attributes with an operator's activation, if it has one, and the scratchpad left to us.
/// @param after What is done before the activation.
dnnl::primitive_attr attributes_with(const std::optional<Activation> &activation, dnnl::post_ops after = {});

/// Whether a primitive can be used: one that is there, and is no reference, which is over a hundred times
/// slower.
template <class Description>
bool is_fast(const Description &description) {
    return description && std::string(description.impl_info_str()).find("ref") == std::string::npos;
}

/// A constant in the layout that a primitive wants. Parts of an operator, and processors, that want the same
/// have one copy.
/// @param source How the constant lies in the weights file.
dnnl::memory packed(const float *constant, const dnnl::memory::desc &source, const dnnl::memory::desc &wanted);

}  // namespace parapipe
