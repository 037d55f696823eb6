#pragma once

#include <stdexcept>
#include <string>

namespace parapipe {

/// What a user can meet and mend: one sentence that says where, what, and what to do. Exit code 1.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A command line that makes no sense. Exit code 2.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Joins anything that can be written to a stream, for messages.
template <class... Parts>
std::string text_of(const Parts &...parts);

}  // namespace parapipe

#include <sstream>

template <class... Parts>
std::string parapipe::text_of(const Parts &...parts) {
    std::ostringstream text;
    (text << ... << parts);
    return text.str();
}
