#pragma once

#include "backends/acl/builder.hpp"

namespace parapipe {

template <class Api>
void build_concatenation(Builder<Api> &b) {
    std::vector<const typename Api::ITensor *> inputs;
    for (std::size_t i = 0; i < b.op.inputs.size(); ++i) {
        inputs.push_back(b.input(i));
    }
    const auto axis = acl_axis(b.op.attributes.integer("axis"), b.output_shape().size());
    b.template add<typename Api::Concatenate>(inputs, b.output(), static_cast<std::size_t>(axis));
}

template <class Api>
void build_reshape(Builder<Api> &b) {
    b.template add<typename Api::Reshape>(b.input(0), b.output());
}

template <class Api>
void build_transpose(Builder<Api> &b) {
    b.template add<typename Api::Permute>(b.input(0), b.output(), acl_permutation(b.op.attributes.integers("perm")));
}

template <class Api>
void build_pad(Builder<Api> &b) {
    const auto &a = b.op.attributes;
    const auto &pads = a.integers("pads");
    const std::size_t rank = pads.size() / 2;
    arm_compute::PaddingList list;
    for (std::size_t i = 0; i < rank; ++i) {
        list.emplace_back(static_cast<std::uint32_t>(pads[rank - 1 - i]), static_cast<std::uint32_t>(pads[2 * rank - 1 - i]));
    }
    const auto mode = a.text("mode") == "reflect" ? arm_compute::PaddingMode::REFLECT : arm_compute::PaddingMode::CONSTANT;
    b.template add<typename Api::Pad>(b.input(0), b.output(), list,
                                      arm_compute::PixelValue(a.number("value"), arm_compute::DataType::F32), mode);
}

template <class Api>
void build_slice(Builder<Api> &b) {
    const auto &a = b.op.attributes;
    b.template add<typename Api::StridedSlice>(b.input(0), b.output(), acl_coordinates(a.integers("starts")),
                                               acl_coordinates(a.integers("ends")),
                                               acl_coordinates(a.integers("steps")));
}

template <class Api>
Builds<Api> movement_builds() {
    return {{"Concat", build_concatenation<Api>},
            {"Reshape", build_reshape<Api>},
            {"Transpose", build_transpose<Api>},
            {"Pad", build_pad<Api>},
            {"Slice", build_slice<Api>}};
}

}  // namespace parapipe
