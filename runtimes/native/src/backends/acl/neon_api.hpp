#pragma once

#include <arm_compute/runtime/NEON/NEFunctions.h>
#include <arm_compute/runtime/Tensor.h>

namespace parapipe {

/// The library's NEON functions under the names that both back ends share.
struct NeonApi {
    using Tensor = arm_compute::Tensor;
    using ITensor = arm_compute::ITensor;

    using Activation = arm_compute::NEActivationLayer;
    using Add = arm_compute::NEArithmeticAddition;
    using BatchNormalization = arm_compute::NEBatchNormalizationLayer;
    using Concatenate = arm_compute::NEConcatenateLayer;
    using Convolution = arm_compute::NEConvolutionLayer;
    using Deconvolution = arm_compute::NEDeconvolutionLayer;
    using DepthwiseConvolution = arm_compute::NEDepthwiseConvolutionLayer;
    using Divide = arm_compute::NEElementwiseDivision;
    using Exp = arm_compute::NEExpLayer;
    using FullyConnected = arm_compute::NEFullyConnectedLayer;
    using Log = arm_compute::NELogLayer;
    using LogSoftmax = arm_compute::NELogSoftmaxLayer;
    using Maximum = arm_compute::NEElementwiseMax;
    using Minimum = arm_compute::NEElementwiseMin;
    using Multiply = arm_compute::NEPixelWiseMultiplication;
    using Negate = arm_compute::NENegLayer;
    using Normalization = arm_compute::NENormalizationLayer;
    using PRelu = arm_compute::NEPReluLayer;
    using Pad = arm_compute::NEPadLayer;
    using Permute = arm_compute::NEPermute;
    using Pooling = arm_compute::NEPoolingLayer;
    using ReduceMean = arm_compute::NEReduceMean;
    using Reshape = arm_compute::NEReshapeLayer;
    using Scale = arm_compute::NEScale;
    using Softmax = arm_compute::NESoftmaxLayer;
    using StridedSlice = arm_compute::NEStridedSlice;
    using Subtract = arm_compute::NEArithmeticSubtraction;
};

}  // namespace parapipe
