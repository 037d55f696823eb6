#pragma once

#include "gpu/lane.hpp"

#include <cmath>
#include <cstddef>

namespace parapipe::gpu {

using Count = long long;

/// Four numbers, of the axes from the outermost to the innermost.
struct Four {
    Count of[4];
};

/// The position of an element with this number, row by row.
PARAPIPE_GPU inline Four position_of(const Four &extents, std::size_t number) {
    Four at{};
    auto left = static_cast<Count>(number);
    for (int axis = 3; axis >= 0; --axis) {
        at.of[axis] = left % extents.of[axis];
        left /= extents.of[axis];
    }
    return at;
}

PARAPIPE_GPU inline Count sum_of_products(const Four &at, const Four &strides) {
    return at.of[0] * strides.of[0] + at.of[1] * strides.of[1] + at.of[2] * strides.of[2] + at.of[3] * strides.of[3];
}

/// Elements and the steps between them along each axis; 0 along what is broadcast.
struct Elements {
    float *data;
    Four strides;

    PARAPIPE_GPU float &at(const Four &position) const { return data[sum_of_products(position, strides)]; }
};

/// Two numbers, of height and width.
struct Two {
    int of[2];
};

enum class Single { none, relu, sigmoid, tanh, hard_swish, softplus, abs, sqrt, leaky_relu, elu, clip, exp, log, neg, erf, atan };

/// A function of one number.
struct Curve {
    Single kind;
    float a;
    float b;

    PARAPIPE_GPU float operator()(float x) const {
        switch (kind) {
            case Single::relu: return x > 0 ? x : 0;
            case Single::sigmoid: return 1 / (1 + expf(-x));
            case Single::tanh: return tanhf(x);
            case Single::hard_swish: return x * fminf(fmaxf(x / 6 + 0.5F, 0), 1);
            case Single::softplus: return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
            case Single::abs: return fabsf(x);
            case Single::sqrt: return sqrtf(x);
            case Single::leaky_relu: return x < 0 ? a * x : x;
            case Single::elu: return x < 0 ? a * expm1f(x) : x;
            case Single::clip: return fminf(fmaxf(x, a), b);
            case Single::exp: return expf(x);
            case Single::log: return logf(x);
            case Single::neg: return -x;
            case Single::erf: return erff(x);
            case Single::atan: return atanf(x);
            default: return x;
        }
    }
};

/// Applies a function to each element; both may be the same.
struct Mapped {
    const float *x;
    float *y;
    Curve curve;

    PARAPIPE_GPU void operator()(std::size_t i) const { y[i] = curve(x[i]); }
};

/// Adds what stands behind a convolution or product: a bias of each channel, another tensor, a function.
struct Finish {
    float *y;
    const float *bias;      // null for none
    const float *residual;  // null for none
    Count channels;
    Count area;  // elements of a channel
    Curve curve;

    PARAPIPE_GPU void operator()(std::size_t i) const {
        float value = y[i];
        value += bias == nullptr ? 0 : bias[static_cast<Count>(i) / area % channels];
        value += residual == nullptr ? 0 : residual[i];
        y[i] = curve(value);
    }
};

enum class Double { add, subtract, multiply, divide, largest, least, less, with_slope };

struct Pairwise {
    Elements a, b;
    float *y;
    Four extents;
    Double kind;

    PARAPIPE_GPU void operator()(std::size_t i) const {
        const Four at = position_of(extents, i);
        const float one = a.at(at);
        const float other = b.at(at);
        switch (kind) {
            case Double::add: y[i] = one + other; break;
            case Double::subtract: y[i] = one - other; break;
            case Double::multiply: y[i] = one * other; break;
            case Double::divide: y[i] = one / other; break;
            case Double::largest: y[i] = fmaxf(one, other); break;
            case Double::least: y[i] = fminf(one, other); break;
            case Double::less: y[i] = one < other ? 1 : 0; break;
            case Double::with_slope: y[i] = one < 0 ? one * other : one; break;
        }
    }
};

/// Picks from the second where the first is not 0, else from the third.
struct Choose {
    Elements condition, yes, no;
    float *y;
    Four extents;

    PARAPIPE_GPU void operator()(std::size_t i) const {
        const Four at = position_of(extents, i);
        y[i] = condition.at(at) != 0 ? yes.at(at) : no.at(at);
    }
};

/// Copies elements from some places to others.
struct Move {
    Elements from, to;
    Four extents;

    PARAPIPE_GPU void operator()(std::size_t i) const {
        const Four at = position_of(extents, i);
        to.at(at) = from.at(at);
    }
};

/// A frame around a tensor, of a value or of its mirror image.
struct Border {
    const float *x;
    float *y;
    Four x_extents, y_extents, before;
    float value;
    bool mirrors;

    PARAPIPE_GPU void operator()(std::size_t i) const {
        const Four at = position_of(y_extents, i);
        Count place = 0;
        bool inside = true;
        for (int axis = 0; axis < 4; ++axis) {
            const Count extent = x_extents.of[axis];
            Count index = at.of[axis] - before.of[axis];
            if (mirrors) {
                index = index < 0 ? -index : index >= extent ? 2 * (extent - 1) - index : index;
            }
            inside = inside && index >= 0 && index < extent;
            place = place * extent + index;
        }
        y[i] = inside ? x[place] : value;
    }
};

/// What lies under a window: the largest, or the mean.
struct Pooled {
    const float *x;
    float *y;
    Four x_extents, y_extents;
    Two kernel, strides, begins;
    bool largest, counts_borders;

    PARAPIPE_GPU void operator()(std::size_t i) const {
        const Four at = position_of(y_extents, i);
        const float *image = x + (at.of[0] * x_extents.of[1] + at.of[1]) * x_extents.of[2] * x_extents.of[3];
        float most = -INFINITY;
        float sum = 0;
        int count = 0;
        for (int j = 0; j < kernel.of[0]; ++j) {
            const Count row = at.of[2] * strides.of[0] - begins.of[0] + j;
            for (int k = 0; k < kernel.of[1]; ++k) {
                const Count column = at.of[3] * strides.of[1] - begins.of[1] + k;
                if (row >= 0 && row < x_extents.of[2] && column >= 0 && column < x_extents.of[3]) {
                    const float value = image[row * x_extents.of[3] + column];
                    most = fmaxf(most, value);
                    sum += value;
                    ++count;
                }
            }
        }
        const int over = counts_borders ? kernel.of[0] * kernel.of[1] : count;
        y[i] = largest ? most : sum / static_cast<float>(over);
    }
};

struct Normalised {
    const float *x, *scale, *shift, *mean, *variance;
    float *y;
    Count channels, area;
    float epsilon;

    PARAPIPE_GPU void operator()(std::size_t i) const {
        const Count c = static_cast<Count>(i) / area % channels;
        y[i] = (x[i] - mean[c]) / sqrtf(variance[c] + epsilon) * scale[c] + shift[c];
    }
};

/// Divides by a power of the squares of the channels beside.
struct Responded {
    const float *x;
    float *y;
    Count channels, area, size;
    float alpha, beta, bias;

    PARAPIPE_GPU void operator()(std::size_t i) const {
        const auto number = static_cast<Count>(i);
        const Count c = number / area % channels;
        const Count half = size / 2;
        float squares = 0;
        for (Count k = c < half ? 0 : c - half; k <= c + half && k < channels; ++k) {
            const float value = x[number + (k - c) * area];
            squares += value * value;
        }
        y[i] = x[i] / powf(bias + alpha / static_cast<float>(size) * squares, beta);
    }
};

/// The mean along some axes.
struct Mean {
    const float *x;
    float *y;
    Four kept;      // extents of the output, 1 where it is the mean
    Four summed;    // extents of what is added, 1 along the others
    Four strides;   // of x

    PARAPIPE_GPU void operator()(std::size_t i) const {
        const Count start = sum_of_products(position_of(kept, i), strides);
        const Count count = summed.of[0] * summed.of[1] * summed.of[2] * summed.of[3];
        double sum = 0;
        for (Count k = 0; k < count; ++k) {
            sum += x[start + sum_of_products(position_of(summed, static_cast<std::size_t>(k)), strides)];
        }
        y[i] = static_cast<float>(sum / static_cast<double>(count));
    }
};

/// Picks along an axis; an index that is not there picks the nearest.
struct Gathered {
    const float *x, *indices;
    float *y;
    Count picked, extent, behind;

    PARAPIPE_GPU void operator()(std::size_t i) const {
        const auto number = static_cast<Count>(i);
        const Count outside = number / behind / picked;
        auto index = static_cast<Count>(indices[number / behind % picked]);
        index = index < 0 ? index + extent : index;
        index = index < 0 ? 0 : index >= extent ? extent - 1 : index;
        y[i] = x[(outside * extent + index) * behind + number % behind];
    }
};

enum class Coordinates { asymmetric, half_pixel, align_corners };

struct Resized {
    const float *x;
    float *y;
    Four x_extents, y_extents;
    bool nearest;
    Coordinates coordinates;

    PARAPIPE_GPU double place(Count at, Count size, Count made) const {
        const double ratio = static_cast<double>(size) / static_cast<double>(made);
        double found = static_cast<double>(at) * ratio;
        if (coordinates == Coordinates::half_pixel) {
            found = (static_cast<double>(at) + 0.5) * ratio - 0.5;
        } else if (coordinates == Coordinates::align_corners) {
            found = made > 1 ? static_cast<double>(at * (size - 1)) / static_cast<double>(made - 1) : 0;
        }
        return fmin(fmax(found, 0.0), static_cast<double>(size - 1));
    }

    PARAPIPE_GPU void operator()(std::size_t i) const {
        const Four at = position_of(y_extents, i);
        const Count rows = x_extents.of[2];
        const Count columns = x_extents.of[3];
        const float *image = x + (at.of[0] * x_extents.of[1] + at.of[1]) * rows * columns;
        if (nearest) {
            y[i] = image[at.of[2] * rows / y_extents.of[2] * columns + at.of[3] * columns / y_extents.of[3]];
            return;
        }
        const double row = place(at.of[2], rows, y_extents.of[2]);
        const double column = place(at.of[3], columns, y_extents.of[3]);
        const auto h = static_cast<Count>(row);
        const auto w = static_cast<Count>(column);
        const Count below = h + 1 < rows ? h + 1 : h;
        const Count right = w + 1 < columns ? w + 1 : w;
        const auto down = static_cast<float>(row - static_cast<double>(h));
        const auto along = static_cast<float>(column - static_cast<double>(w));
        const float above = image[h * columns + w] + (image[h * columns + right] - image[h * columns + w]) * along;
        const float beneath =
            image[below * columns + w] + (image[below * columns + right] - image[below * columns + w]) * along;
        y[i] = above + (beneath - above) * down;
    }
};

/// Bilinear samples of an image at the places of a grid; beyond it lie zeros.
struct Sampled {
    const float *x, *grid;
    float *y;
    Four x_extents, y_extents;
    bool align_corners;

    PARAPIPE_GPU float place(float coordinate, Count extent) const {
        const auto size = static_cast<float>(extent);
        return align_corners ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
    }

    PARAPIPE_GPU void operator()(std::size_t i) const {
        const Four at = position_of(y_extents, i);
        const float *two = grid + ((at.of[0] * y_extents.of[2] + at.of[2]) * y_extents.of[3] + at.of[3]) * 2;
        const float column = place(two[0], x_extents.of[3]);
        const float row = place(two[1], x_extents.of[2]);
        const float *image = x + (at.of[0] * x_extents.of[1] + at.of[1]) * x_extents.of[2] * x_extents.of[3];
        float sum = 0;
        for (int k = 0; k < 4; ++k) {
            const float h = floorf(row) + static_cast<float>(k / 2);
            const float w = floorf(column) + static_cast<float>(k % 2);
            if (h >= 0 && h < static_cast<float>(x_extents.of[2]) && w >= 0 && w < static_cast<float>(x_extents.of[3])) {
                const float share = (1 - fabsf(row - h)) * (1 - fabsf(column - w));
                sum += share * image[static_cast<Count>(h) * x_extents.of[3] + static_cast<Count>(w)];
            }
        }
        y[i] = sum;
    }
};

}  // namespace parapipe::gpu
