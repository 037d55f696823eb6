#pragma once

#include "execution/buffers.hpp"
#include "plan/plan.hpp"

namespace parapipe {

/// Says for how many frames each buffer has memory: as many as a processor works on at once; if several see it,
/// as many as memory apart from each other would hold on the longest way through it, so nobody waits for longer.
/// But no more than are ever in use, where what writes waits in any case for what reads the frames before.
void count_frames(const Plan &plan, Buffers &buffers);

}  // namespace parapipe
