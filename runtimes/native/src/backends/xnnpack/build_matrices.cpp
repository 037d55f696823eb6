#include "backends/xnnpack/builder.hpp"

#include <algorithm>
#include <numeric>

namespace parapipe::xnnpack {
namespace {

/// Rows times a constant matrix: the function of all products.
/// @param weights [N, K], or [K, N] with the flag for it.
std::unique_ptr<Kernel> product_of_rows(const Builder &builder, const Rows &from, const Rows &to, const float *weights,
                                        const float *bias, std::uint32_t flags) {
    const auto bounds = builder.bounds();
    auto function = created(xnn_create_fully_connected_nc_f32, from.channels, to.channels, from.stride, to.stride, weights, bias,
                            bounds.least, bounds.most, flags);
    return builder.kernel(
        std::move(function),
        [rows = from.count, x = builder.place(builder.input(0)), y = builder.place(builder.op().output)](auto *op, auto *pool) {
            return xnn_setup_fully_connected_nc_f32(op, rows, x(), y(), pool);
        },
        true);
}

/// A fully connected layer. An image that goes into it without a Flatten keeps its order: the weights take it.
std::unique_ptr<Kernel> general_product(const Builder &builder) {
    const auto x = builder.input(0);
    const auto &read = builder.shape(0);
    const auto rows = builder.shape()[0];
    const auto from = builder.rows(x);
    const auto to = builder.rows(builder.op().output);
    if (!from || !to) {
        return nullptr;
    }
    const auto *bias = builder.has(2) ? builder.constant(2) : nullptr;
    const bool transposed = builder.attributes().integer("transB") == 1;
    const auto flags = transposed ? 0U : static_cast<std::uint32_t>(XNN_FLAG_TRANSPOSE_WEIGHTS);
    const auto depth = static_cast<std::size_t>(builder.shape(1)[transposed ? 1 : 0]);
    if (from->channels == depth) {
        return product_of_rows(builder, *from, *to, builder.constant(1), bias, flags);
    }
    if (!from->dense() || read[0] != rows) {
        return nullptr;
    }
    const Rows flat{size(rows), depth, depth};
    if (builder.order(x) == Order::nchw) {
        return product_of_rows(builder, flat, *to, builder.constant(1), bias, flags);
    }
    if (!transposed) {
        return nullptr;
    }
    auto shape = read;
    shape[0] = builder.shape()[1];
    const auto weights = builder.constant_in(1, shape, axes_of(Order::nhwc));
    return product_of_rows(builder, flat, *to, weights.data(), bias, flags);
}

/// Products of many pairs of matrices. The library takes one of both packed: a constant is packed once, what was
/// computed before each product.
class ProductsKernel : public Kernel {
public:
    struct Pair {
        std::size_t a;
        std::size_t b;
    };

    ProductsKernel(const Builder &builder, std::vector<Pair> pairs, std::size_t rows, std::size_t depth, std::size_t width)
        : pool_(builder.pool()), a_(builder.place(builder.input(0))), b_(builder.place(builder.input(1))),
          y_(builder.place(builder.op().output)), pairs_(std::move(pairs)), rows_(rows), depth_(depth), width_(width),
          bounds_(builder.bounds()), constant_(builder.tensor(builder.input(1)).constant()) {}

    void run() override {
        const float *const a = a_();
        const float *const b = b_();
        float *y = y_();
        packed_.resize(pairs_.size());
        for (std::size_t i = 0; i < pairs_.size(); ++i, y += rows_ * width_) {
            const bool again = i > 0 && pairs_[i].b == pairs_[i - 1].b;
            auto &function = packed_[again ? first_ : i];
            first_ = again ? first_ : i;
            if (!function || !(constant_ || again)) {
                function = created(xnn_create_fully_connected_nc_f32, depth_, width_, depth_, width_, b + pairs_[i].b,
                                   static_cast<const float *>(nullptr), bounds_.least, bounds_.most,
                                   static_cast<std::uint32_t>(XNN_FLAG_TRANSPOSE_WEIGHTS));
            }
            check(function ? xnn_setup_fully_connected_nc_f32(function.get(), rows_, a + pairs_[i].a, y, pool_)
                           : xnn_status_invalid_parameter);
            check(xnn_run_operator(function.get(), pool_));
        }
    }

private:
    pthreadpool_t pool_;
    std::function<float *()> a_;
    std::function<float *()> b_;
    std::function<float *()> y_;
    std::vector<Pair> pairs_;
    std::size_t rows_;
    std::size_t depth_;
    std::size_t width_;
    Bounds bounds_;
    bool constant_;
    std::vector<Function> packed_;
    std::size_t first_ = 0;
};

/// The first element of each matrix of an operand, for all those of the product, which it is broadcast to.
std::vector<std::size_t> starts_of(const Layout &operand, const Layout &product) {
    std::vector<std::size_t> starts;
    for (std::size_t n = 0; n < product.extents[0]; ++n) {
        for (std::size_t c = 0; c < product.extents[1]; ++c) {
            starts.push_back(((operand.extents[0] == 1 ? 0 : n * operand.strides[0]) +
                              (operand.extents[1] == 1 ? 0 : c * operand.strides[1])) /
                             sizeof(float));
        }
    }
    return starts;
}

std::unique_ptr<Kernel> product(const Builder &builder) {
    const auto &left = builder.shape(0);
    const auto &right = builder.shape(1);
    const auto y = builder.op().output;
    const auto from = builder.rows(builder.input(0));
    const auto to = builder.rows(y);
    const bool lie_as_in_onnx = builder.order(builder.input(0)) == Order::nchw && builder.order(y) == Order::nchw &&
                                builder.order(builder.input(1)) == Order::nchw;
    if (!from || !to || !lie_as_in_onnx) {
        return nullptr;
    }
    if (right.size() == 2 && builder.tensor(builder.input(1)).constant()) {  // one matrix for all rows
        return product_of_rows(builder, *from, *to, builder.constant(1), nullptr, XNN_FLAG_TRANSPOSE_WEIGHTS);
    }
    const auto second = builder.rows(builder.input(1));
    if (!from->dense() || !to->dense() || !second || !second->dense() ||
        (builder.op().activation && !bounds_of(builder.op().activation->type, builder.op().activation->attributes))) {
        return nullptr;
    }
    const auto made = builder.layout(y);
    const auto a = starts_of(builder.layout(builder.input(0)), made);
    const auto b = starts_of(builder.layout(builder.input(1)), made);
    std::vector<ProductsKernel::Pair> pairs;
    std::transform(a.begin(), a.end(), b.begin(), std::back_inserter(pairs),
                   [](std::size_t one, std::size_t other) { return ProductsKernel::Pair{one, other}; });
    return std::make_unique<ProductsKernel>(builder, std::move(pairs), made.extents[2], size(left.back()), size(right.back()));
}

std::unique_ptr<Kernel> softmax(const Builder &builder) {
    const auto x = builder.input(0);
    const auto y = builder.op().output;
    const auto from = builder.rows(x);
    const auto to = builder.rows(y);
    if (!from || !to || builder.order(x) != Order::nchw || builder.order(y) != Order::nchw) {
        return nullptr;
    }
    return builder.kernel(
        created(xnn_create_softmax_nc_f32, from->channels, from->stride, to->stride, 0U),
        [rows = from->count, from_x = builder.place(x), to_y = builder.place(y)](auto *op, auto *pool) {
            return xnn_setup_softmax_nc_f32(op, rows, from_x(), to_y(), pool);
        },
        false);
}

/// The mean of a row is its product with equal numbers; that of an image's rows and columns is a pool.
std::unique_ptr<Kernel> mean(const Builder &builder) {
    const auto x = builder.input(0);
    const auto from = builder.rows(x);
    const auto to = builder.rows(builder.op().output);
    const auto &axes = builder.attributes().integers("axes");
    const auto rank = builder.shape(0).size();
    if (!from || !to || !to->dense()) {
        return nullptr;
    }
    if (builder.order(x) == Order::nchw) {
        if (!from->dense() || axes.front() != static_cast<std::int64_t>(rank - axes.size()) ||
            axes.back() != static_cast<std::int64_t>(rank) - 1) {
            return nullptr;
        }
        const auto count = elements_of(builder.shape());
        const auto depth = elements_of(builder.shape(0)) / count;
        const std::vector<float> weights(depth, 1.0F / static_cast<float>(depth));
        return product_of_rows(builder, {count, depth, depth}, {count, 1, 1}, weights.data(), nullptr, 0U);
    }
    if (axes != Integers{2, 3}) {
        return nullptr;
    }
    const auto bounds = builder.bounds();
    return builder.kernel(
        created(xnn_create_global_average_pooling_nwc_f32, from->channels, from->stride, from->channels, bounds.least,
                bounds.most, 0U),
        [batch = size(builder.shape(0)[0]), count = from->count, from_x = builder.place(x),
         to_y = builder.place(builder.op().output)](auto *op, auto *pool) {
            return xnn_setup_global_average_pooling_nwc_f32(op, batch, count / batch, from_x(), to_y(), pool);
        },
        true);
}

}  // namespace

std::vector<BuildOfType> matrix_builds() {
    return {{"Gemm", general_product}, {"MatMul", product}, {"Softmax", softmax}, {"ReduceMean", mean}};
}

}  // namespace parapipe::xnnpack
