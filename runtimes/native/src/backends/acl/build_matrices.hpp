#pragma once

#include "backends/acl/builder.hpp"

namespace parapipe {

/// A product of a matrix with a constant one, which the library takes as [columns out, columns in].
/// Tensors of other ranks are copied into matrices and back: the library takes three or more
/// dimensions for an image or a batch.
template <class Api>
void build_matrix_product(Builder<Api> &b) {
    const bool transposed = b.op.type == "Gemm" && b.op.attributes.integer("transB") == 1;
    const auto &w = b.shape_of(1);
    const auto columns_in = w[transposed ? 1 : 0];
    const auto columns_out = w[transposed ? 0 : 1];
    const auto rows = static_cast<std::int64_t>(elements_of(b.shape_of(0))) / columns_in;
    auto *weights = transposed ? b.constant(1, w) : b.constant(1, w, {1, 0});
    auto *bias = b.has(2) ? b.constant(2, {columns_out}) : nullptr;
    auto *input = b.input(0);
    if (b.shape_of(0).size() != 2) {
        input = b.temporary({rows, columns_in});
        b.template add<typename Api::Reshape>(b.input(0), input);
    }
    const bool back = b.output_shape().size() != 2;
    auto *output = back ? b.temporary({rows, columns_out}) : b.output();
    arm_compute::FullyConnectedLayerInfo info;
    info.transpose_weights = true;
    info.activation_info = b.take_activation();
    b.template add<typename Api::FullyConnected>(input, weights, bias, output, info);
    if (back) {
        b.template add<typename Api::Reshape>(output, b.output());
    }
}

template <class Api, class Function>
void build_softmax(Builder<Api> &b) {
    b.template add<Function>(b.input(0), b.output());
}

template <class Api>
void build_mean(Builder<Api> &b) {
    const auto &axes = b.op.attributes.integers("axes");
    arm_compute::Coordinates reduced;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        reduced.set(i, static_cast<int>(acl_axis(axes[axes.size() - 1 - i], b.shape_of(0).size())));
    }
    b.template add<typename Api::ReduceMean>(b.input(0), reduced, b.op.attributes.integer("keepdims") == 1, b.output());
}

template <class Api>
Builds<Api> matrix_builds() {
    return {{"Gemm", build_matrix_product<Api>},
            {"MatMul", build_matrix_product<Api>},
            {"Softmax", build_softmax<Api, typename Api::Softmax>},
            {"LogSoftmax", build_softmax<Api, typename Api::LogSoftmax>},
            {"ReduceMean", build_mean<Api>}};
}

}  // namespace parapipe
