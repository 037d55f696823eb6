#pragma once

#include <functional>
#include <thread>

namespace parapipe {

/// Calls a function when SIGINT or SIGTERM comes; at the second, the process ends at once. There can be
/// one at a time.
class Interrupt {
public:
    explicit Interrupt(std::function<void()> stop);
    ~Interrupt();
    Interrupt(const Interrupt &) = delete;
    Interrupt &operator=(const Interrupt &) = delete;

private:
    int ends_[2] = {-1, -1};
    std::thread listener_;
};

}  // namespace parapipe
