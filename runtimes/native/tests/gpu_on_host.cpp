// A GPU's memory, streams and libraries on the CPU, so that all of a program for GPUs but CUDA's own calls can be
// tested without one. Streams are queues: what they were given runs as late as it may, in an order that only
// events decide, so that a missing event is seen.
#include "gpu/lane.hpp"

#include "error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

namespace parapipe::gpu {
namespace {

using Task = std::function<void()>;

struct Step {
    Task task;
    const void *event = nullptr;  // recorded, or waited for
    bool waits = false;
    long number = 0;  // of the recording that is waited for, or made
};

struct Queue {
    std::deque<Step> steps;
};

struct Recorded {
    long asked = 0;
    long done = 0;
};

struct Noted {
    std::vector<Task> tasks;
};

/// Runs a queue, and of the others only what it waits for.
std::vector<Queue *> &queues() {
    static std::vector<Queue *> all;
    return all;
}

void advance(Queue &queue, long depth = 0);

void reach(Recorded &event, long number, long depth) {
    for (auto *queue : queues()) {
        while (event.done < number && !queue->steps.empty() &&
               std::any_of(queue->steps.begin(), queue->steps.end(),
                           [&](const Step &step) { return step.event == &event && !step.waits; })) {
            advance(*queue, depth + 1);
        }
    }
    if (event.done < number) {
        throw Error("an event that is waited for was never recorded");
    }
}

void advance(Queue &queue, long depth) {
    if (depth > 10000) {
        throw Error("streams wait for each other in a circle");
    }
    Step step = queue.steps.front();
    auto *event = const_cast<Recorded *>(static_cast<const Recorded *>(step.event));
    if (step.waits) {
        reach(*event, step.number, depth);
    }
    queue.steps.pop_front();
    if (step.task) {
        step.task();
    } else if (!step.waits) {
        event->done = step.number;
    }
}

}  // namespace

Memory::Memory(std::size_t size_bytes) : data_(std::malloc(size_bytes + 1)) {
    std::memset(data_, 0xFF, size_bytes);  // no numbers: what is read too early is seen
}

Memory::~Memory() {
    std::free(data_);
}

Event::Event() : event_(new Recorded()) {}
Event::~Event() {
    delete static_cast<Recorded *>(event_);
}
Graph::~Graph() {
    delete static_cast<Noted *>(graph_);
}

struct Lane::State {
    Queue queue;
    bool capturing = false;
    std::vector<Task> noted;
    std::vector<std::pair<Convolution, bool>> convolutions;
    bool reserved = false;
};

Lane::Lane() : state_(std::make_unique<State>()) {
    queues().push_back(&state_->queue);
}

Lane::~Lane() {
    auto &all = queues();
    all.erase(std::remove(all.begin(), all.end(), &state_->queue), all.end());
}

void Lane::start(Task task) {
    if (state_->capturing) {
        state_->noted.push_back(std::move(task));
    } else {
        state_->queue.steps.push_back({std::move(task), nullptr, false, 0});
    }
}

void Lane::bring(void *to, const void *from, std::size_t bytes) {
    start([=] { std::memcpy(to, from, bytes); });
}

void Lane::fetch(void *to, const void *from, std::size_t bytes) {
    start([=] { std::memcpy(to, from, bytes); });
}

void Lane::capture() {
    state_->capturing = true;
}

std::unique_ptr<Graph> Lane::captured() {
    state_->capturing = false;
    std::unique_ptr<Graph> graph(new Graph());
    graph->graph_ = new Noted{std::move(state_->noted)};
    state_->noted.clear();
    return graph;
}

void Lane::launch(const Graph &graph) {
    start([noted = static_cast<const Noted *>(graph.graph_)] {
        for (const auto &task : noted->tasks) {
            task();
        }
    });
}

void Lane::record(const Event &event) {
    auto *recorded = static_cast<Recorded *>(event.event_);
    state_->queue.steps.push_back({nullptr, recorded, false, ++recorded->asked});
}

void Lane::wait(const Event &event) {
    const auto *recorded = static_cast<const Recorded *>(event.event_);
    state_->queue.steps.push_back({nullptr, recorded, true, recorded->asked});
}

void Lane::synchronize() {
    while (!state_->queue.steps.empty()) {
        advance(state_->queue);
    }
}

std::size_t Lane::prepare(const Convolution &convolution, bool transposed) {
    state_->convolutions.emplace_back(convolution, transposed);
    return state_->convolutions.size() - 1;
}

void Lane::reserve() {
    state_->reserved = true;
}

void Lane::convolve(std::size_t number, const float *from, const float *weights, float *to) {
    if (!state_->reserved) {
        throw Error("a convolution runs before its memory is there");
    }
    const auto [c, transposed] = state_->convolutions.at(number);
    start([=, c = c, transposed = transposed] {
        const auto &w = c.weights;
        const int made = w[0] / c.groups;
        const auto at = [](const std::array<int, 4> &shape, int n, int k, int h, int v) {
            return ((static_cast<std::size_t>(n) * static_cast<std::size_t>(shape[1]) + static_cast<std::size_t>(k)) *
                        static_cast<std::size_t>(shape[2]) + static_cast<std::size_t>(h)) *
                       static_cast<std::size_t>(shape[3]) + static_cast<std::size_t>(v);
        };
        const auto &out = transposed ? c.x : c.y;
        std::fill_n(to, at(out, out[0] - 1, out[1] - 1, out[2] - 1, out[3] - 1) + 1, 0.0F);
        for (int n = 0; n < c.y[0]; ++n) {
            for (int m = 0; m < c.y[1]; ++m) {
                for (int h = 0; h < c.y[2]; ++h) {
                    for (int v = 0; v < c.y[3]; ++v) {
                        for (int k = 0; k < w[1]; ++k) {
                            for (int i = 0; i < w[2]; ++i) {
                                for (int j = 0; j < w[3]; ++j) {
                                    const int row = h * c.strides[0] - c.pads[0] + i * c.dilations[0];
                                    const int column = v * c.strides[1] - c.pads[1] + j * c.dilations[1];
                                    if (row < 0 || row >= c.x[2] || column < 0 || column >= c.x[3]) {
                                        continue;
                                    }
                                    const auto x = at(c.x, n, m / made * w[1] + k, row, column);
                                    const auto y = at(c.y, n, m, h, v);
                                    const float weight = weights[at(w, m, k, i, j)];
                                    to[transposed ? x : y] += from[transposed ? y : x] * weight;
                                }
                            }
                        }
                    }
                }
            }
        }
    });
}

void Lane::multiply(const Product &p, const float *a, const float *b, float *c) {
    start([=] {
        for (int k = 0; k < p.count; ++k) {
            for (int row = 0; row < p.rows; ++row) {
                for (int column = 0; column < p.columns; ++column) {
                    float sum = 0;
                    for (int d = 0; d < p.depth; ++d) {
                        sum += a[k * p.a_step + row * p.depth + d] *
                               b[k * p.b_step + (p.transposed ? column * p.depth + d : d * p.columns + column)];
                    }
                    c[k * p.c_step + row * p.columns + column] = sum;
                }
            }
        }
    });
}

void Lane::softmax(int rows, int columns, bool logarithm, const float *x, float *y) {
    start([=] {
        for (int row = 0; row < rows; ++row) {
            const float *from = x + row * columns;
            const float most = *std::max_element(from, from + columns);
            float sum = 0;
            for (int i = 0; i < columns; ++i) {
                sum += std::exp(from[i] - most);
            }
            for (int i = 0; i < columns; ++i) {
                const float above = from[i] - most;
                y[row * columns + i] = logarithm ? above - std::log(sum) : std::exp(above) / sum;
            }
        }
    });
}

}  // namespace parapipe::gpu
