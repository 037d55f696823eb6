#include "gpu/lane.hpp"

#include "error.hpp"

#include <cublas_v2.h>
#include <cudnn.h>

#include <vector>

namespace parapipe::gpu {
namespace {

constexpr std::size_t kWorkspaceOfProducts = std::size_t{32} << 20;

void check(cudaError_t status) {
    if (status != cudaSuccess) {
        throw Error(text_of("CUDA: ", cudaGetErrorString(status)));
    }
}

void check(cudnnStatus_t status) {
    if (status != CUDNN_STATUS_SUCCESS) {
        throw Error(text_of("cuDNN: ", cudnnGetErrorString(status)));
    }
}

void check(cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS) {
        throw Error(text_of("cuBLAS: ", cublasGetStatusString(status)));
    }
}

/// Descriptors of a convolution, and the algorithm chosen for it.
struct Chosen {
    cudnnTensorDescriptor_t x = nullptr;
    cudnnTensorDescriptor_t y = nullptr;
    cudnnFilterDescriptor_t weights = nullptr;
    cudnnConvolutionDescriptor_t how = nullptr;
    bool transposed = false;
    cudnnConvolutionFwdAlgo_t forward{};
    cudnnConvolutionBwdDataAlgo_t backward{};
    std::size_t workspace_bytes = 0;
};

cudnnTensorDescriptor_t tensor_of(const std::array<int, 4> &shape) {
    cudnnTensorDescriptor_t made = nullptr;
    check(cudnnCreateTensorDescriptor(&made));
    check(cudnnSetTensor4dDescriptor(made, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, shape[0], shape[1], shape[2], shape[3]));
    return made;
}

}  // namespace

void check_last_launch() {
    check(cudaGetLastError());
}

Memory::Memory(std::size_t size_bytes) {
    check(cudaMalloc(&data_, size_bytes == 0 ? 1 : size_bytes));
}

Memory::~Memory() {
    cudaFree(data_);
}

Event::Event() {
    check(cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t *>(&event_), cudaEventDisableTiming));
}

Event::~Event() {
    cudaEventDestroy(static_cast<cudaEvent_t>(event_));
}

Graph::~Graph() {
    cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph_));
}

struct Lane::State {
    cudaStream_t stream = nullptr;
    cudnnHandle_t cudnn = nullptr;
    cublasHandle_t cublas = nullptr;
    std::vector<Chosen> convolutions;
    std::unique_ptr<Memory> workspace;
    std::size_t workspace_bytes = 0;
    Memory of_products{kWorkspaceOfProducts};
};

Lane::Lane() : state_(std::make_unique<State>()) {
    auto &s = *state_;
    check(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    check(cudnnCreate(&s.cudnn));
    check(cudnnSetStream(s.cudnn, s.stream));
    check(cublasCreate(&s.cublas));
    check(cublasSetStream(s.cublas, s.stream));
    // Memory of our own, so that products may be captured.
    check(cublasSetWorkspace(s.cublas, s.of_products.data(), kWorkspaceOfProducts));
}

Lane::~Lane() {
    for (const auto &each : state_->convolutions) {
        cudnnDestroyTensorDescriptor(each.x);
        cudnnDestroyTensorDescriptor(each.y);
        cudnnDestroyFilterDescriptor(each.weights);
        cudnnDestroyConvolutionDescriptor(each.how);
    }
    cublasDestroy(state_->cublas);
    cudnnDestroy(state_->cudnn);
    cudaStreamDestroy(state_->stream);
}

void *Lane::stream() const {
    return state_->stream;
}

void Lane::bring(void *to, const void *from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, state_->stream));
}

void Lane::fetch(void *to, const void *from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, state_->stream));
}

void Lane::capture() {
    check(cudaStreamBeginCapture(state_->stream, cudaStreamCaptureModeThreadLocal));
}

std::unique_ptr<Graph> Lane::captured() {
    cudaGraph_t noted = nullptr;
    check(cudaStreamEndCapture(state_->stream, &noted));
    std::unique_ptr<Graph> graph(new Graph());
    const auto status = cudaGraphInstantiate(reinterpret_cast<cudaGraphExec_t *>(&graph->graph_), noted, 0);
    cudaGraphDestroy(noted);
    check(status);
    return graph;
}

void Lane::launch(const Graph &graph) {
    check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph.graph_), state_->stream));
}

void Lane::record(const Event &event) {
    check(cudaEventRecord(static_cast<cudaEvent_t>(event.event_), state_->stream));
}

void Lane::wait(const Event &event) {
    check(cudaStreamWaitEvent(state_->stream, static_cast<cudaEvent_t>(event.event_), 0));
}

void Lane::synchronize() {
    check(cudaStreamSynchronize(state_->stream));
}

std::size_t Lane::prepare(const Convolution &wanted, bool transposed) {
    auto &s = *state_;
    Chosen made;
    made.transposed = transposed;
    made.x = tensor_of(wanted.x);
    made.y = tensor_of(wanted.y);
    check(cudnnCreateFilterDescriptor(&made.weights));
    const auto &w = wanted.weights;
    check(cudnnSetFilter4dDescriptor(made.weights, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, w[0], w[1], w[2], w[3]));
    check(cudnnCreateConvolutionDescriptor(&made.how));
    check(cudnnSetConvolution2dDescriptor(made.how, wanted.pads[0], wanted.pads[1], wanted.strides[0], wanted.strides[1],
                                          wanted.dilations[0], wanted.dilations[1], CUDNN_CROSS_CORRELATION,
                                          CUDNN_DATA_FLOAT));
    check(cudnnSetConvolutionGroupCount(made.how, wanted.groups));
    // Numbers of 32 bits all through: none of fewer bits in between.
    check(cudnnSetConvolutionMathType(made.how, CUDNN_FMA_MATH));
    int found = 0;
    if (transposed) {
        cudnnConvolutionBwdDataAlgoPerf_t best{};
        check(cudnnGetConvolutionBackwardDataAlgorithm_v7(s.cudnn, made.weights, made.y, made.how, made.x, 1, &found, &best));
        made.backward = best.algo;
        made.workspace_bytes = best.memory;
    } else {
        cudnnConvolutionFwdAlgoPerf_t best{};
        check(cudnnGetConvolutionForwardAlgorithm_v7(s.cudnn, made.x, made.weights, made.how, made.y, 1, &found, &best));
        made.forward = best.algo;
        made.workspace_bytes = best.memory;
    }
    if (found == 0) {
        throw Error("cuDNN has no algorithm for a convolution of this network");
    }
    s.workspace_bytes = std::max(s.workspace_bytes, made.workspace_bytes);
    s.convolutions.push_back(made);
    return s.convolutions.size() - 1;
}

void Lane::reserve() {
    state_->workspace = std::make_unique<Memory>(state_->workspace_bytes);
}

void Lane::convolve(std::size_t number, const float *x, const float *weights, float *y) {
    const auto &s = *state_;
    const auto &made = s.convolutions.at(number);
    const float one = 1;
    const float zero = 0;
    if (made.transposed) {
        // The gradient of a convolution's input is the transposed convolution: ours makes `x`.
        check(cudnnConvolutionBackwardData(s.cudnn, &one, made.weights, weights, made.y, x, made.how, made.backward,
                                           s.workspace->data(), made.workspace_bytes, &zero, made.x, y));
    } else {
        check(cudnnConvolutionForward(s.cudnn, &one, made.x, x, made.weights, weights, made.how, made.forward,
                                      s.workspace->data(), made.workspace_bytes, &zero, made.y, y));
    }
}

/// Column by column, as cuBLAS counts, a matrix that lies row by row is its transpose: so cᵀ = bᵀ aᵀ.
void Lane::multiply(const Product &p, const float *a, const float *b, float *c) {
    const float one = 1;
    const float zero = 0;
    check(cublasSgemmStridedBatched(state_->cublas, p.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, p.columns, p.rows,
                                    p.depth, &one, b, p.transposed ? p.depth : p.columns, p.b_step, a, p.depth, p.a_step,
                                    &zero, c, p.columns, p.c_step, p.count));
}

void Lane::softmax(int rows, int columns, bool logarithm, const float *x, float *y) {
    const auto shape = tensor_of({rows, columns, 1, 1});
    const float one = 1;
    const float zero = 0;
    const auto status =
        cudnnSoftmaxForward(state_->cudnn, logarithm ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE,
                            CUDNN_SOFTMAX_MODE_CHANNEL, &one, shape, x, &zero, shape, y);
    cudnnDestroyTensorDescriptor(shape);
    check(status);
}

}  // namespace parapipe::gpu
