#include "backends/host/loops.hpp"
#include "backends/host/room.hpp"

#include <algorithm>
#include <cmath>

namespace parapipe {
namespace {

/// The bytes from an element to the next, of a tensor that is walked over some extents.
Layout walk_of(const Elements &elements, const std::array<std::size_t, kMostDimensions> &extents) {
    Layout layout;
    layout.extents = extents;
    for (std::size_t axis = 0; axis < kMostDimensions; ++axis) {
        layout.strides[axis] = elements.strides[axis] * sizeof(float);
    }
    return layout;
}

/// Elements one behind the other in ONNX's order.
Scratch<float> dense_of(const Elements &elements, const Shape &shape) {
    Scratch<float> dense(elements_of(shape));
    copy(reinterpret_cast<const std::byte *>(elements.data), walk_of(elements, elements.extents),
         reinterpret_cast<std::byte *>(dense.data()), layout_of(shape));
    return dense;
}

/// Rows by the first dimension, columns by all others in ONNX's order.
void general_product(const LoopCall &call) {
    const auto &w = call.inputs[1];
    const bool transposed = call.op.attributes.integer("transB") == 1;
    const auto rows = static_cast<std::size_t>(call.shape[0]);
    const auto width = static_cast<std::size_t>(call.shape[1]);
    const auto depth = elements_of(call.shapes[0]) / rows;
    const auto dense = dense_of(call.inputs[0], call.shapes[0]);
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < width; ++column) {
            float sum = call.has(2) ? call.inputs[2].data[column] : 0;
            for (std::size_t k = 0; k < depth; ++k) {
                sum += dense[row * depth + k] * w.data[transposed ? column * depth + k : k * width + column];
            }
            *call.output.at(0, 0, row, column) = sum;
        }
    }
}

std::size_t outer(const Elements &elements, std::size_t axis, std::size_t at) {
    return elements.extents[axis] == 1 ? 0 : at;
}

void product(const LoopCall &call) {
    const auto &a = call.inputs[0];
    const auto &b = call.inputs[1];
    const auto depth = a.extents[3];
    for_each_position(call.output.extents, Order::nchw, [&](const auto &at) {
        const float *left = a.at(outer(a, 0, at[0]), outer(a, 1, at[1]), at[2], 0);
        const float *right = b.at(outer(b, 0, at[0]), outer(b, 1, at[1]), 0, at[3]);
        float sum = 0;
        for (std::size_t k = 0; k < depth; ++k) {
            sum += left[k * a.strides[3]] * right[k * b.strides[2]];
        }
        *call.output.at(at[0], at[1], at[2], at[3]) = sum;
    });
}

void softmax(const LoopCall &call) {
    const auto &x = call.inputs[0];
    const bool logarithm = call.op.type == "LogSoftmax";
    auto rows = x.extents;
    rows[3] = 1;
    for_each_position(rows, Order::nchw, [&](const auto &at) {
        const float *from = x.at(at[0], at[1], at[2], 0);
        float *to = call.output.at(at[0], at[1], at[2], 0);
        const auto steps = x.strides[3];
        const auto out_steps = call.output.strides[3];
        float most = from[0];
        for (std::size_t i = 1; i < x.extents[3]; ++i) {
            most = std::max(most, from[i * steps]);
        }
        float sum = 0;
        for (std::size_t i = 0; i < x.extents[3]; ++i) {
            sum += std::exp(from[i * steps] - most);
        }
        for (std::size_t i = 0; i < x.extents[3]; ++i) {
            const float above = from[i * steps] - most;
            to[i * out_steps] = logarithm ? above - std::log(sum) : std::exp(above) / sum;
        }
    });
}

void mean(const LoopCall &call) {
    const auto &x = call.inputs[0];
    const auto rank = call.shapes[0].size();
    std::array<bool, kMostDimensions> reduced{};
    double count = 1;
    for (const auto axis : call.op.attributes.integers("axes")) {
        const auto at = kMostDimensions - rank + static_cast<std::size_t>(axis);
        reduced[at] = true;
        count *= static_cast<double>(x.extents[at]);
    }
    // The output's strides by the input's axes: those that are gone, and those that are summed, have 0.
    std::array<std::size_t, kMostDimensions> strides{};
    const bool keeps = call.op.attributes.integer("keepdims") == 1;
    for (std::size_t axis = kMostDimensions, next = kMostDimensions; axis-- > kMostDimensions - rank;) {
        if (keeps || !reduced[axis]) {
            --next;
            strides[axis] = reduced[axis] ? 0 : call.output.strides[next];
        }
    }
    Scratch<double> sums(elements_of(call.shape));
    const auto place = [&](const auto &at) {
        std::size_t offset = 0;
        for (std::size_t axis = 0; axis < kMostDimensions; ++axis) {
            offset += at[axis] * strides[axis];
        }
        return offset;
    };
    for_each_position(x.extents, Order::nchw,
                      [&](const auto &at) { sums[place(at)] += *x.at(at[0], at[1], at[2], at[3]); });
    for (std::size_t i = 0; i < sums.size(); ++i) {
        call.output.data[i] = static_cast<float>(sums[i] / count);
    }
}

/// Picks along an axis; indices are whole numbers, kept as float32. One that is not there picks the nearest.
void gather(const LoopCall &call) {
    const auto axis = static_cast<std::size_t>(call.op.attributes.integer("axis"));
    const auto &shape = call.shapes[0];
    const auto extent = shape[axis];
    const auto product = [&shape](std::size_t from, std::size_t to) {
        std::size_t elements = 1;
        for (; from < to; ++from) {
            elements *= static_cast<std::size_t>(shape[from]);
        }
        return elements;
    };
    const auto before = product(0, axis);
    const auto behind = product(axis + 1, shape.size());
    const auto indices = dense_of(call.inputs[1], call.shapes[1]);
    const bool in_order = is_dense(walk_of(call.inputs[0], call.inputs[0].extents));
    const auto copied = in_order ? Scratch<float>() : dense_of(call.inputs[0], shape);
    const float *source = in_order ? call.inputs[0].data : copied.data();
    Scratch<float> picked(elements_of(call.shape));
    for (std::size_t outside = 0; outside < before; ++outside) {
        for (std::size_t i = 0; i < indices.size(); ++i) {
            auto index = std::abs(indices[i]) < 2147483648.0F ? static_cast<std::int64_t>(indices[i]) : 0;
            index = std::min(std::max<std::int64_t>(index < 0 ? index + extent : index, 0), extent - 1);
            const auto from = (outside * static_cast<std::size_t>(extent) + static_cast<std::size_t>(index)) * behind;
            std::copy_n(source + from, behind, picked.data() + (outside * indices.size() + i) * behind);
        }
    }
    copy(reinterpret_cast<const std::byte *>(picked.data()), layout_of(call.shape),
         reinterpret_cast<std::byte *>(call.output.data), walk_of(call.output, call.output.extents));
}

}  // namespace

std::vector<LoopOfType> matrix_loops() {
    return {{"Gemm", general_product}, {"MatMul", product},  {"Softmax", softmax},
            {"LogSoftmax", softmax},   {"ReduceMean", mean}, {"Gather", gather, true}};
}

}  // namespace parapipe
