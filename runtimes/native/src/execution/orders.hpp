#pragma once

#include "execution/layout.hpp"
#include "plan/plan.hpp"

#include <vector>

namespace parapipe {

/// Whether a backend keeps images as the channels of a pixel, one pixel behind the other.
bool keeps_channels_last(BackendKind backend);

/// How every processor keeps every tensor: images in the order that its backend computes with, all others
/// in ONNX's. An image is what slides windows, or scales channels, and all that meets one element by
/// element, in a Concat or in a Slice. So matrices of attention are none, though they have four dimensions.
class Orders {
public:
    explicit Orders(const Plan &plan);

    Order of(TensorId tensor, ProcessorId processor) const {
        return images_[tensor] && channels_last_[processor] ? Order::nhwc : Order::nchw;
    }

private:
    std::vector<bool> images_;         // by tensor
    std::vector<bool> channels_last_;  // by processor
};

}  // namespace parapipe
