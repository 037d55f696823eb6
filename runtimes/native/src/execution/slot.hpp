#pragma once

#include <cstddef>

namespace parapipe {

/// Memory for one frame of a tensor, as a CPU sees it; for a GPU's memory, only while it is mapped.
class Slot {
public:
    virtual ~Slot() = default;
    virtual std::byte *host() = 0;
};

}  // namespace parapipe
