#pragma once

#include "backends/acl/builder.hpp"

namespace parapipe {

template <class Api, class Function>
void build_sum(Builder<Api> &b) {
    b.template add<Function>(b.input(0), b.input(1), b.output(), arm_compute::ConvertPolicy::SATURATE);
}

template <class Api>
void build_product_of_elements(Builder<Api> &b) {
    b.template add<typename Api::Multiply>(b.input(0), b.input(1), b.output(), 1.0F,
                                           arm_compute::ConvertPolicy::SATURATE,
                                           arm_compute::RoundingPolicy::TO_ZERO);
}

template <class Api, class Function>
void build_binary(Builder<Api> &b) {
    b.template add<Function>(b.input(0), b.input(1), b.output());
}

template <class Api, class Function>
void build_unary(Builder<Api> &b) {
    b.template add<Function>(b.input(0), b.output());
}

template <class Api>
void build_activation(Builder<Api> &b) {
    b.template add<typename Api::Activation>(b.input(0), b.output(),
                                             Builder<Api>::activation_info(b.op.type, b.op.attributes));
}

template <class Api>
Builds<Api> elementwise_builds() {
    Builds<Api> builds = {{"Add", build_sum<Api, typename Api::Add>},
                          {"Sub", build_sum<Api, typename Api::Subtract>},
                          {"Mul", build_product_of_elements<Api>},
                          {"Div", build_binary<Api, typename Api::Divide>},
                          {"Max", build_binary<Api, typename Api::Maximum>},
                          {"Min", build_binary<Api, typename Api::Minimum>},
                          {"PRelu", build_binary<Api, typename Api::PRelu>},
                          {"Exp", build_unary<Api, typename Api::Exp>},
                          {"Log", build_unary<Api, typename Api::Log>},
                          {"Neg", build_unary<Api, typename Api::Negate>}};
    for (const char *type : {"Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Abs", "Sqrt", "LeakyRelu", "Elu", "Clip"}) {
        builds.emplace(type, build_activation<Api>);
    }
    return builds;
}

}  // namespace parapipe
