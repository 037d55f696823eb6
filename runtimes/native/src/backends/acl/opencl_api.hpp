#pragma once

#include <arm_compute/runtime/CL/CLFunctions.h>
#include <arm_compute/runtime/CL/CLTensor.h>

namespace parapipe {

/// The library's OpenCL functions under the names that both back ends share.
struct OpenClApi {
    using Tensor = arm_compute::CLTensor;
    using ITensor = arm_compute::ICLTensor;

    using Activation = arm_compute::CLActivationLayer;
    using Add = arm_compute::CLArithmeticAddition;
    using BatchNormalization = arm_compute::CLBatchNormalizationLayer;
    using Concatenate = arm_compute::CLConcatenateLayer;
    using Convolution = arm_compute::CLConvolutionLayer;
    using Deconvolution = arm_compute::CLDeconvolutionLayer;
    using DepthwiseConvolution = arm_compute::CLDepthwiseConvolutionLayer;
    using Divide = arm_compute::CLArithmeticDivision;
    using Exp = arm_compute::CLExpLayer;
    using FullyConnected = arm_compute::CLFullyConnectedLayer;
    using Log = arm_compute::CLLogLayer;
    using LogSoftmax = arm_compute::CLLogSoftmaxLayer;
    using Maximum = arm_compute::CLElementwiseMax;
    using Minimum = arm_compute::CLElementwiseMin;
    using Multiply = arm_compute::CLPixelWiseMultiplication;
    using Negate = arm_compute::CLNegLayer;
    using Normalization = arm_compute::CLNormalizationLayer;
    using PRelu = arm_compute::CLPReluLayer;
    using Pad = arm_compute::CLPadLayer;
    using Permute = arm_compute::CLPermute;
    using Pooling = arm_compute::CLPoolingLayer;
    using ReduceMean = arm_compute::CLReduceMean;
    using Reshape = arm_compute::CLReshapeLayer;
    using Scale = arm_compute::CLScale;
    using Softmax = arm_compute::CLSoftmaxLayer;
    using StridedSlice = arm_compute::CLStridedSlice;
    using Subtract = arm_compute::CLArithmeticSubtraction;
};

}  // namespace parapipe
