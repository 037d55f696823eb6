#include "gpu/works.hpp"

#include "error.hpp"
#include "gpu/functions.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>

namespace parapipe::gpu {
namespace {

Four dense_strides(const Four &extents) {
    Four strides{{0, 0, 0, 1}};
    for (int axis = 2; axis >= 0; --axis) {
        strides.of[axis] = strides.of[axis + 1] * extents.of[axis + 1];
    }
    return strides;
}

/// An operator, its tensors, and where they lie. Shapes are filled up to four with ones in front.
struct Site {
    const Plan &plan;
    const Operator &op;
    const std::vector<float *> &data;
    Lane &lane;

    bool has(std::size_t position) const { return position < op.inputs.size() && op.inputs[position] != kNone; }
    const Shape &shape(std::size_t position) const { return plan.tensors[op.inputs[position]].shape; }
    const Shape &shape() const { return plan.tensors[op.output].shape; }
    float *input(std::size_t position) const { return has(position) ? data[op.inputs[position]] : nullptr; }
    float *output() const { return data[op.output]; }
    std::size_t count() const { return elements_of(shape()); }
    std::size_t axis(std::int64_t number) const { return kMostDimensions - shape().size() + static_cast<std::size_t>(number); }
    std::int64_t integer(const char *name) const { return op.attributes.integer(name); }
    float number(const char *name) const { return static_cast<float>(op.attributes.number(name)); }
    const Integers &integers(const char *name) const { return op.attributes.integers(name); }
    Pair pair(const char *name, std::size_t from = 0) const {
        const auto &values = integers(name);
        return {static_cast<int>(values[from]), static_cast<int>(values[from + 1])};
    }
};

Four extents_of(const Shape &shape) {
    Four extents{{1, 1, 1, 1}};
    std::copy(shape.rbegin(), shape.rend(), std::make_reverse_iterator(std::end(extents.of)));
    return extents;
}

/// A tensor walked over the extents of another one.
Elements over(float *data, const Shape &shape, const Four &walked) {
    const Four own = extents_of(shape);
    Elements elements{data, dense_strides(own)};
    for (int axis = 0; axis < 4; ++axis) {
        if (own.of[axis] == 1 && walked.of[axis] > 1) {
            elements.strides.of[axis] = 0;
        }
    }
    return elements;
}

std::array<int, 4> four_of(const Shape &shape) {
    const Four extents = extents_of(shape);
    return {static_cast<int>(extents.of[0]), static_cast<int>(extents.of[1]), static_cast<int>(extents.of[2]),
            static_cast<int>(extents.of[3])};
}

const std::map<std::string, Single> kSingles = {
    {"Relu", Single::relu},         {"Sigmoid", Single::sigmoid},     {"Tanh", Single::tanh},
    {"HardSwish", Single::hard_swish}, {"Softplus", Single::softplus}, {"Abs", Single::abs},
    {"Sqrt", Single::sqrt},         {"LeakyRelu", Single::leaky_relu}, {"Elu", Single::elu},
    {"Clip", Single::clip},         {"Exp", Single::exp},             {"Log", Single::log},
    {"Neg", Single::neg},           {"Erf", Single::erf},             {"Atan", Single::atan}};

const std::map<std::string, Double> kDoubles = {
    {"Add", Double::add},     {"Sub", Double::subtract}, {"Mul", Double::multiply}, {"Div", Double::divide},
    {"Max", Double::largest}, {"Min", Double::least},    {"Less", Double::less},    {"PRelu", Double::with_slope}};

Curve curve_of(const std::string &type, const Attributes &attributes) {
    Curve curve{kSingles.at(type), 0, 0};
    if (type == "LeakyRelu" || type == "Elu") {
        curve.a = static_cast<float>(attributes.number("alpha"));
    } else if (type == "Clip") {
        curve.a = static_cast<float>(attributes.number("min"));
        curve.b = static_cast<float>(attributes.number("max"));
    }
    return curve;
}

/// The function behind an operator; one that changes nothing if there is none.
Curve curve_behind(const Operator &op) {
    return op.activation ? curve_of(op.activation->type, op.activation->attributes) : Curve{Single::none, 0, 0};
}

template <class Function>
Work each(std::size_t count, const Function &function) {
    return [count, function](Lane &lane) { lane.each(count, function); };
}

Work in_turn(std::vector<Work> works) {
    works.erase(std::remove(works.begin(), works.end(), nullptr), works.end());
    if (works.empty()) {
        return nullptr;
    }
    return [works = std::move(works)](Lane &lane) {
        for (const auto &work : works) {
            work(lane);
        }
    };
}

/// What is added to a result channel by channel and element by element, and the function behind it.
Work finish(const Site &site, const float *bias, const float *residual, Count channels, Count area) {
    const Curve curve = curve_behind(site.op);
    if (bias == nullptr && residual == nullptr && curve.kind == Single::none) {
        return nullptr;
    }
    return each(site.count(), Finish{site.output(), bias, residual, channels, area, curve});
}

Work convolution(const Site &site) {
    const auto begins = site.pair("pads");
    const auto ends = site.pair("pads", 2);
    auto x_shape = site.shape(0);
    const float *x = site.input(0);
    std::vector<Work> works;
    auto pads = begins;
    if (begins != ends) {  // cuDNN knows borders of equal width only
        auto wide = x_shape;
        for (std::size_t i = 0; i < 2; ++i) {
            wide[2 + i] += begins[i] + ends[i];
        }
        const auto room = std::make_shared<Memory>(elements_of(wide) * sizeof(float));
        auto *const bordered = reinterpret_cast<float *>(room->data());
        const Border border{x, bordered, extents_of(x_shape), extents_of(wide), Four{{0, 0, begins[0], begins[1]}}, 0, false};
        works.push_back([room, border, count = elements_of(wide)](Lane &lane) { lane.each(count, border); });
        x = bordered;
        x_shape = wide;
        pads = {0, 0};
    }
    const Convolution wanted{four_of(x_shape), four_of(site.shape(1)), four_of(site.shape()), pads, site.pair("strides"),
                             site.pair("dilations"), static_cast<int>(site.integer("group"))};
    const auto number = site.lane.prepare(wanted, false);
    works.push_back([number, x, weights = site.input(1), y = site.output()](Lane &lane) { lane.convolve(number, x, weights, y); });
    const auto &shape = site.shape();
    works.push_back(finish(site, site.input(2), site.input(3), shape[1], shape[2] * shape[3]));
    return in_turn(std::move(works));
}

/// What cuDNN makes has borders of equal width; of others, all is made, and cut out.
Work transposed_convolution(const Site &site) {
    const auto begins = site.pair("pads");
    const auto strides = site.pair("strides");
    const auto &shape = site.shape();
    const auto &x = site.shape(0);
    const auto &weights = site.shape(1);
    auto made = shape;
    const bool cuts = begins != site.pair("pads", 2);
    for (std::size_t i = 0; i < 2 && cuts; ++i) {
        made[2 + i] = std::max((x[2 + i] - 1) * strides[i] + weights[2 + i], begins[i] + shape[2 + i]);
    }
    const auto room = std::make_shared<Memory>(cuts ? elements_of(made) * sizeof(float) : 0);
    float *const all = cuts ? reinterpret_cast<float *>(room->data()) : site.output();
    const Convolution wanted{four_of(made), four_of(weights), four_of(x), cuts ? Pair{0, 0} : begins, strides, {1, 1}, 1};
    const auto number = site.lane.prepare(wanted, true);
    const Four strides_there = dense_strides(extents_of(made));
    const Elements from{all + begins[0] * strides_there.of[2] + begins[1], strides_there};
    const Four extents = extents_of(shape);
    return in_turn({[room, number, all, from_x = site.input(0), weights_of = site.input(1)](Lane &lane) {
                        lane.convolve(number, from_x, weights_of, all);
                    },
                    cuts ? each(site.count(), Move{from, {site.output(), dense_strides(extents)}, extents}) : Work(),
                    finish(site, site.input(2), nullptr, shape[1], shape[2] * shape[3])});
}

Work general_product(const Site &site) {
    const auto &shape = site.shape();
    const auto rows = static_cast<int>(shape[0]);
    const auto columns = static_cast<int>(shape[1]);
    const auto depth = static_cast<int>(elements_of(site.shape(0))) / rows;
    const Product wanted{rows, depth, columns, site.integer("transB") == 1, 0, 0, 0, 1};
    return in_turn({[wanted, a = site.input(0), b = site.input(1), c = site.output()](Lane &lane) {
                        lane.multiply(wanted, a, b, c);
                    },
                    finish(site, site.input(2), nullptr, columns, 1)});
}

Work product(const Site &site) {
    const Four a = extents_of(site.shape(0));
    const Four b = extents_of(site.shape(1));
    const Four c = extents_of(site.shape());
    const auto step = [](const Four &of, int axis) {
        const Count matrix = of.of[2] * of.of[3];
        return of.of[axis] == 1 ? 0 : axis == 1 ? matrix : matrix * of.of[1];
    };
    const Product wanted{static_cast<int>(c.of[2]), static_cast<int>(a.of[3]), static_cast<int>(c.of[3]), false,
                         step(a, 1), step(b, 1), c.of[2] * c.of[3], static_cast<int>(c.of[1])};
    std::vector<Work> works;
    for (Count outer = 0; outer < c.of[0]; ++outer) {
        works.push_back([wanted, left = site.input(0) + outer * step(a, 0), right = site.input(1) + outer * step(b, 0),
                         made = site.output() + outer * c.of[1] * c.of[2] * c.of[3]](Lane &lane) {
            lane.multiply(wanted, left, right, made);
        });
    }
    works.push_back(finish(site, nullptr, nullptr, 1, 1));
    return in_turn(std::move(works));
}

Work with_activation(const Site &site, Work work) {
    return in_turn({std::move(work), finish(site, nullptr, nullptr, 1, 1)});
}

Work single(const Site &site) {
    const Mapped mapped{site.input(0), site.output(), curve_of(site.op.type, site.op.attributes)};
    return with_activation(site, each(site.count(), mapped));
}

Work pairwise(const Site &site) {
    const Four extents = extents_of(site.shape());
    const Pairwise made{over(site.input(0), site.shape(0), extents), over(site.input(1), site.shape(1), extents),
                        site.output(), extents, kDoubles.at(site.op.type)};
    return with_activation(site, each(site.count(), made));
}

Work choose(const Site &site) {
    const Four extents = extents_of(site.shape());
    const Choose made{over(site.input(0), site.shape(0), extents), over(site.input(1), site.shape(1), extents),
                      over(site.input(2), site.shape(2), extents), site.output(), extents};
    return with_activation(site, each(site.count(), made));
}

Work pool(const Site &site) {
    const auto &type = site.op.type;
    const bool whole = type == "GlobalAveragePool" || type == "GlobalMaxPool";
    const auto &x = site.shape(0);
    const auto two = [](const Pair &pair) { return Two{{pair[0], pair[1]}}; };
    Pooled made{site.input(0), site.output(), extents_of(x), extents_of(site.shape()), {}, Two{{1, 1}}, Two{{0, 0}}, false,
                false};
    made.largest = type == "MaxPool" || type == "GlobalMaxPool";
    made.kernel = two(whole ? Pair{static_cast<int>(x[2]), static_cast<int>(x[3])} : site.pair("kernel_shape"));
    if (!whole) {
        made.strides = two(site.pair("strides"));
        made.begins = two(site.pair("pads"));
    }
    made.counts_borders = type == "AveragePool" && site.integer("count_include_pad") == 1;
    return with_activation(site, each(site.count(), made));
}

Work normalise(const Site &site) {
    const auto &shape = site.shape();
    const auto area = std::accumulate(shape.begin() + 2, shape.end(), Count{1}, std::multiplies<>());
    const Normalised made{site.input(0), site.input(1), site.input(2), site.input(3), site.input(4), site.output(), shape[1],
                          area, site.number("epsilon")};
    return with_activation(site, each(site.count(), made));
}

Work local_response(const Site &site) {
    const auto &shape = site.shape();
    const Responded made{site.input(0), site.output(), shape[1], shape[2] * shape[3], site.integer("size"),
                         site.number("alpha"), site.number("beta"), site.number("bias")};
    return with_activation(site, each(site.count(), made));
}

Work softmax(const Site &site) {
    const auto columns = static_cast<int>(site.shape().back());
    const auto rows = static_cast<int>(site.count()) / columns;
    const bool logarithm = site.op.type == "LogSoftmax";
    return with_activation(site, [rows, columns, logarithm, x = site.input(0), y = site.output()](Lane &lane) {
        lane.softmax(rows, columns, logarithm, x, y);
    });
}

Work mean(const Site &site) {
    const auto &x = site.shape(0);
    Mean made{site.input(0), site.output(), extents_of(x), Four{{1, 1, 1, 1}}, dense_strides(extents_of(x))};
    for (const auto axis : site.integers("axes")) {
        const auto at = kMostDimensions - x.size() + static_cast<std::size_t>(axis);
        std::swap(made.kept.of[at], made.summed.of[at]);
    }
    return with_activation(site, each(site.count(), made));
}

/// A copy, unless all lies where it should already.
Work move(const Elements &from, const Elements &to, const Four &extents) {
    const bool there = from.data == to.data && std::equal(std::begin(from.strides.of), std::end(from.strides.of), to.strides.of);
    const auto count = static_cast<std::size_t>(extents.of[0] * extents.of[1] * extents.of[2] * extents.of[3]);
    return there ? Work() : each(count, Move{from, to, extents});
}

/// What a move along one axis from a dense tensor into another one keeps in place has the same bytes; so strides
/// of axes with one element do not count.
Elements normal(Elements elements, const Four &extents) {
    for (int axis = 0; axis < 4; ++axis) {
        elements.strides.of[axis] = extents.of[axis] == 1 ? 0 : elements.strides.of[axis];
    }
    return elements;
}

Work join(const Site &site) {
    const auto axis = site.axis(site.integer("axis"));
    const Four strides = dense_strides(extents_of(site.shape()));
    std::vector<Work> works;
    Count done = 0;
    for (std::size_t i = 0; i < site.op.inputs.size(); ++i) {
        const Four extents = extents_of(site.shape(i));
        const Elements to{site.output() + done * strides.of[axis], strides};
        const Elements from{site.input(i), dense_strides(extents)};
        works.push_back(move(normal(from, extents), normal(to, extents), extents));
        done += extents.of[axis];
    }
    works.push_back(finish(site, nullptr, nullptr, 1, 1));
    return in_turn(std::move(works));
}

Work cut(const Site &site) {
    const Four extents = extents_of(site.shape());
    Elements from{site.input(0), dense_strides(extents_of(site.shape(0)))};
    for (std::size_t i = 0; i < site.shape().size(); ++i) {
        const auto axis = site.axis(static_cast<std::int64_t>(i));
        from.data += site.integers("starts")[i] * from.strides.of[axis];
        from.strides.of[axis] *= site.integers("steps")[i];
    }
    const Elements to{site.output(), dense_strides(extents)};
    return with_activation(site, move(normal(from, extents), normal(to, extents), extents));
}

Work reshape(const Site &site) {
    const Four all{{1, 1, 1, static_cast<Count>(site.count())}};
    const Four strides{{0, 0, 0, 1}};
    return with_activation(site, move({site.input(0), strides}, {site.output(), strides}, all));
}

Work transpose(const Site &site) {
    const Four extents = extents_of(site.shape());
    const Four strides = dense_strides(extents_of(site.shape(0)));
    Elements from{site.input(0), strides};
    const auto &perm = site.integers("perm");
    for (std::size_t i = 0; i < perm.size(); ++i) {
        from.strides.of[site.axis(static_cast<std::int64_t>(i))] = strides.of[site.axis(perm[i])];
    }
    const Elements to{site.output(), dense_strides(extents)};
    return with_activation(site, each(site.count(), Move{from, to, extents}));
}

Work pad(const Site &site) {
    Border made{site.input(0), site.output(), extents_of(site.shape(0)), extents_of(site.shape()), Four{{0, 0, 0, 0}},
                site.number("value"), site.op.attributes.text("mode") == "reflect"};
    for (std::size_t i = 0; i < site.shape().size(); ++i) {
        made.before.of[site.axis(static_cast<std::int64_t>(i))] = site.integers("pads")[i];
    }
    return with_activation(site, each(site.count(), made));
}

Work gather(const Site &site) {
    const auto &x = site.shape(0);
    const auto axis = site.integer("axis");
    const auto behind = std::accumulate(x.begin() + axis + 1, x.end(), Count{1}, std::multiplies<>());
    const Gathered made{site.input(0), site.input(1), site.output(), static_cast<Count>(elements_of(site.shape(1))),
                        x[static_cast<std::size_t>(axis)], behind};
    return with_activation(site, each(site.count(), made));
}

Work resize(const Site &site) {
    const auto &coordinates = site.op.attributes.text("coordinates");
    const Resized made{site.input(0), site.output(), extents_of(site.shape(0)), extents_of(site.shape()),
                       site.op.attributes.text("mode") == "nearest",
                       coordinates == "half_pixel"      ? Coordinates::half_pixel
                       : coordinates == "align_corners" ? Coordinates::align_corners
                                                        : Coordinates::asymmetric};
    return with_activation(site, each(site.count(), made));
}

Work sample(const Site &site) {
    const Sampled made{site.input(0), site.input(1), site.output(), extents_of(site.shape(0)), extents_of(site.shape()),
                       site.integer("align_corners") == 1};
    return with_activation(site, each(site.count(), made));
}

using Make = Work (*)(const Site &site);

const std::map<std::string, Make> &makers() {
    static const auto all = [] {
        std::map<std::string, Make> by_type = {
            {"Conv", convolution}, {"ConvTranspose", transposed_convolution}, {"MaxPool", pool}, {"AveragePool", pool},
            {"GlobalAveragePool", pool}, {"GlobalMaxPool", pool}, {"Gemm", general_product}, {"MatMul", product},
            {"BatchNormalization", normalise}, {"LRN", local_response}, {"Softmax", softmax}, {"LogSoftmax", softmax},
            {"ReduceMean", mean}, {"Concat", join}, {"Slice", cut}, {"Reshape", reshape}, {"Transpose", transpose},
            {"Pad", pad}, {"Gather", gather}, {"Where", choose}, {"Resize", resize}, {"GridSample", sample}};
        for (const auto &[type, kind] : kSingles) {
            by_type.emplace(type, single);
        }
        for (const auto &[type, kind] : kDoubles) {
            by_type.emplace(type, pairwise);
        }
        return by_type;
    }();
    return all;
}

}  // namespace

Work work_of(const Plan &plan, const Operator &op, const std::vector<float *> &data, Lane &lane) {
    return makers().at(op.type)({plan, op, data, lane});
}

bool has_work(const std::string &type) {
    return makers().count(type) > 0;
}

}  // namespace parapipe::gpu
