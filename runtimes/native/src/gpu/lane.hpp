#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#ifdef __CUDACC__
#include <cuda_runtime.h>

#include <algorithm>
#define PARAPIPE_GPU __host__ __device__
#else
#include <functional>
#define PARAPIPE_GPU
#endif

namespace parapipe::gpu {

/// Two numbers, of height and width.
using Pair = std::array<int, 2>;

/// A convolution of images with symmetric borders; of a transposed one, `x` is what it makes.
struct Convolution {
    std::array<int, 4> x;        // images, channels, height, width
    std::array<int, 4> weights;  // [out, in / groups, height, width]
    std::array<int, 4> y;
    Pair pads, strides, dilations;
    int groups;
};

/// Products of matrices that lie row by row: c = a b, or a bᵀ, so many times.
struct Product {
    int rows, depth, columns;
    bool transposed;
    std::int64_t a_step, b_step, c_step;  // elements from one to the next
    int count;
};

/// Memory of the GPU.
class Memory {
public:
    explicit Memory(std::size_t size_bytes);
    ~Memory();
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    std::byte *data() const { return static_cast<std::byte *>(data_); }

private:
    void *data_ = nullptr;
};

class Lane;

/// A point in a lane that others can wait for.
class Event {
public:
    Event();
    ~Event();
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;

private:
    friend class Lane;
    void *event_ = nullptr;
};

/// Captured work, started at one go.
class Graph {
public:
    ~Graph();
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

private:
    friend class Lane;
    Graph() = default;
    void *graph_ = nullptr;
};

/// A CUDA stream with handles of cuDNN and cuBLAS. What is called returns at once, and is done in order.
class Lane {
public:
    Lane();
    ~Lane();
    Lane(const Lane &) = delete;
    Lane &operator=(const Lane &) = delete;

    void bring(void *to, const void *from, std::size_t bytes);  // from the CPU's memory
    void fetch(void *to, const void *from, std::size_t bytes);  // to the CPU's memory

    /// What follows is noted, not done, until `captured`.
    void capture();
    std::unique_ptr<Graph> captured();
    void launch(const Graph &graph);

    void record(const Event &event);
    void wait(const Event &event);
    /// @throws Error if something that was started has failed.
    void synchronize();

    /// Chooses an algorithm, and returns a number for it; all before `reserve`.
    std::size_t prepare(const Convolution &convolution, bool transposed);
    /// Gets the memory that the algorithms need.
    void reserve();
    void convolve(std::size_t number, const float *x, const float *weights, float *y);
    void multiply(const Product &product, const float *a, const float *b, float *c);
    void softmax(int rows, int columns, bool logarithm, const float *x, float *y);

    /// Calls a function with the numbers from 0, each by another thread.
    template <class Function>
    void each(std::size_t count, Function function);

private:
    struct State;
#ifdef __CUDACC__
    void *stream() const;
#else
    void start(std::function<void()> task);
#endif

    std::unique_ptr<State> state_;
};

#ifdef __CUDACC__
void check_last_launch();

template <class Function>
__global__ void call_each(std::size_t count, Function function) {
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
        function(i);
    }
}

template <class Function>
void Lane::each(std::size_t count, Function function) {
    constexpr std::size_t kThreads = 256;
    constexpr std::size_t kBlocks = 65535;
    const auto blocks = static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kBlocks));
    if (blocks > 0) {
        call_each<<<blocks, static_cast<unsigned>(kThreads), 0, static_cast<cudaStream_t>(stream())>>>(count, function);
        check_last_launch();
    }
}
#else
/// Without a GPU, for tests.
template <class Function>
void Lane::each(std::size_t count, Function function) {
    start([count, function] {
        for (std::size_t i = 0; i < count; ++i) {
            function(i);
        }
    });
}
#endif

}  // namespace parapipe::gpu
