#include "backends/onednn/bench.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace parapipe {

const dnnl::engine &Bench::engine() {
    static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return engine;
}

void Bench::reserve(std::size_t size_bytes) {
    if (size_bytes > size_bytes_) {
        size_bytes_ = size_bytes;
        scratchpad_ = std::make_unique<HostSlot>(size_bytes);
    }
}

dnnl::memory::desc desc_of(const Shape &shape, const Layout &layout) {
    const auto skipped = static_cast<std::ptrdiff_t>(kMostDimensions - shape.size());
    dnnl::memory::dims strides;
    std::transform(layout.strides.begin() + skipped, layout.strides.end(), std::back_inserter(strides),
                   [](std::size_t stride) { return static_cast<dnnl::memory::dim>(stride / sizeof(float)); });
    return {shape, dnnl::memory::data_type::f32, strides};
}

dnnl::memory::desc dense_desc(const Shape &shape) {
    return desc_of(shape, layout_of(shape));
}

dnnl::memory::desc any_layout(const Shape &shape) {
    return {shape, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

std::optional<Eltwise> eltwise_of(const std::string &type, const Attributes &attributes) {
    using dnnl::algorithm;
    static const std::map<std::string, Eltwise> plain = {
        {"Relu", {algorithm::eltwise_relu}},
        {"Sigmoid", {algorithm::eltwise_logistic}},
        {"Tanh", {algorithm::eltwise_tanh}},
        {"HardSwish", {algorithm::eltwise_hardswish, 1.0F / 6.0F, 0.5F}},
        {"Softplus", {algorithm::eltwise_soft_relu, 1.0F}},
        {"Abs", {algorithm::eltwise_abs}},
        {"Sqrt", {algorithm::eltwise_sqrt}},
        {"Exp", {algorithm::eltwise_exp}},
        {"Log", {algorithm::eltwise_log}},
        {"Neg", {algorithm::eltwise_linear, -1.0F}},
    };
    if (type == "LeakyRelu" || type == "Elu") {
        const auto alpha = static_cast<float>(attributes.number("alpha"));
        return Eltwise{type == "Elu" ? algorithm::eltwise_elu : algorithm::eltwise_relu, alpha};
    }
    if (type == "Clip") {
        return Eltwise{algorithm::eltwise_clip, static_cast<float>(attributes.number("min")),
                       static_cast<float>(attributes.number("max"))};
    }
    const auto found = plain.find(type);
    return found == plain.end() ? std::nullopt : std::optional(found->second);
}

dnnl::primitive_attr attributes_with(const std::optional<Activation> &activation, dnnl::post_ops after) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (activation) {
        const auto eltwise = eltwise_of(activation->type, activation->attributes);
        after.append_eltwise(eltwise->algorithm, eltwise->alpha, eltwise->beta);
    }
    attributes.set_post_ops(after);
    return attributes;
}

dnnl::memory packed(const float *constant, const dnnl::memory::desc &source, const dnnl::memory::desc &wanted) {
    struct Packed {
        dnnl::memory::desc desc;
        dnnl::memory memory;
    };
    static std::mutex mutex;
    static std::map<const float *, std::vector<Packed>> by_constant;
    const std::lock_guard<std::mutex> lock(mutex);
    auto &forms = by_constant[constant];
    const auto found = std::find_if(forms.begin(), forms.end(), [&wanted](const Packed &each) { return each.desc == wanted; });
    if (found != forms.end()) {
        return found->memory;
    }
    const auto &engine = Bench::engine();
    dnnl::memory from(source, engine, const_cast<float *>(constant));
    if (source == wanted) {
        return from;
    }
    dnnl::memory to(wanted, engine);
    dnnl::stream stream(engine);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    forms.push_back({wanted, to});
    return to;
}

}  // namespace parapipe
