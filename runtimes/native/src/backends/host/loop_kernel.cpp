#include "backends/host/loop_kernel.hpp"

#include "backends/host/loops.hpp"
#include "error.hpp"

#include <map>

namespace parapipe {
namespace {

const LoopOfType *loop_of(const std::string &type) {
    static const auto loops = [] {
        std::map<std::string, LoopOfType> by_type;
        for (auto &&family : {elementwise_loops(), movement_loops(), matrix_loops(), window_loops()}) {
            for (const auto &loop : family) {
                by_type.emplace(loop.type, loop);
            }
        }
        return by_type;
    }();
    const auto found = loops.find(type);
    return found == loops.end() ? nullptr : &found->second;
}

class LoopKernel : public Kernel {
public:
    LoopKernel(const Tensors &tensors, OperatorId op, const LoopOfType &loop)
        : tensors_(tensors), loop_(loop), call_{tensors.plan().operators[op], {}, {}, {}, {}, {}} {
        const auto &plan = tensors.plan();
        for (const TensorId t : call_.op.inputs) {
            call_.shapes.push_back(t == kNone ? Shape() : plan.tensors[t].shape);
            call_.inputs.push_back(t == kNone ? Elements() : elements_of(nullptr, tensors.layout(t)));
        }
        call_.shape = plan.tensors[call_.op.output].shape;
        call_.output = elements_of(nullptr, tensors.layout(call_.op.output));
        call_.order = tensors.order(call_.op.output);
    }

    void run() override {
        for (std::size_t i = 0; i < call_.inputs.size(); ++i) {
            const TensorId t = call_.op.inputs[i];
            call_.inputs[i].data = t == kNone ? nullptr : tensors_.data(t);
        }
        call_.output.data = tensors_.data(call_.op.output);
        loop_.loop(call_);
        if (call_.op.activation) {
            activate(*call_.op.activation, call_.output, call_.order);
        }
    }

    bool plain() const override { return !loop_.moves; }

private:
    const Tensors &tensors_;
    const LoopOfType &loop_;
    LoopCall call_;
};

}  // namespace

std::unique_ptr<Kernel> make_loop_kernel(const Tensors &tensors, OperatorId op) {
    const auto &found = tensors.plan().operators[op];
    const auto *loop = loop_of(found.type);
    if (loop == nullptr) {
        throw Error("operator '" + found.id + "' (" + found.type + ") has no loop; please report this");
    }
    return std::make_unique<LoopKernel>(tensors, op, *loop);
}

bool moves_only(const std::string &type) {
    const auto *loop = loop_of(type);
    return loop != nullptr && loop->moves;
}

}  // namespace parapipe
