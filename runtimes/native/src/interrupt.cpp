#include "interrupt.hpp"

#include "error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace parapipe {
namespace {

constexpr int kInterrupted = 130;

// A handler can reach nothing but what is global, and call next to nothing but `write`.
volatile std::sig_atomic_t handlers_pipe = -1;

extern "C" void tell_listener(int /*signal*/) {
    const int before = errno;
    const char byte = 0;
    [[maybe_unused]] const auto written = write(handlers_pipe, &byte, 1);
    errno = before;
}

void set_handlers(void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

/// Waits for a signal; false at the end.
bool next_signal(int pipe) {
    char byte = 0;
    ssize_t count = 0;
    do {
        count = read(pipe, &byte, 1);
    } while (count < 0 && errno == EINTR);
    return count > 0;
}

}  // namespace

Interrupt::Interrupt(std::function<void()> stop) {
    if (pipe2(ends_, O_CLOEXEC) != 0) {
        throw Error("no pipe can be made for signals; close other files");
    }
    handlers_pipe = ends_[1];
    listener_ = std::thread([stop = std::move(stop), pipe = ends_[0]] {
        if (next_signal(pipe)) {
            stop();
        }
        if (next_signal(pipe)) {
            _exit(kInterrupted);
        }
    });
    set_handlers(tell_listener);
}

Interrupt::~Interrupt() {
    set_handlers(SIG_DFL);
    close(ends_[1]);
    listener_.join();
    close(ends_[0]);
}

}  // namespace parapipe
