#pragma once

namespace parapipe {

/// Computes an operator, on tensors that may lie elsewhere each time.
class Kernel {
public:
    virtual ~Kernel() = default;
    /// Takes in the constants; called once, before the first run.
    virtual void prepare() {}
    virtual void run() = 0;
    /// Whether it is a loop of the runner, or of the library's reference, and not a fast function.
    virtual bool plain() const { return false; }
};

}  // namespace parapipe
