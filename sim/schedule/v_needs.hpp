// What a pass on a V needs of its own micro-batch: passes of four types, each running one way along the
// ranks.
//
//   F0, B1   down: the same on the rank before
//   F1, B0   up: the same on the rank behind; on the last rank F1 turns from F0, and B0 from B1
// and a backward needs the forward of its own chunk. B stands for a whole backward or for its input gradient.
#pragma once

#include <cstdint>

namespace stagecraft {

enum class VPass : std::uint8_t { kF0, kF1, kB1, kB0 };

// Calls need(VPass, rank) for each.
template <class Need>
void for_each_v_need(VPass pass, int rank, int ranks, const Need& need) {
  switch (pass) {
    case VPass::kF0:
      if (rank > 0) need(VPass::kF0, rank - 1);
      return;
    case VPass::kF1:
      rank + 1 < ranks ? need(VPass::kF1, rank + 1) : need(VPass::kF0, rank);
      return;
    case VPass::kB1:
      if (rank > 0) need(VPass::kB1, rank - 1);
      need(VPass::kF1, rank);
      return;
    case VPass::kB0:
      rank + 1 < ranks ? need(VPass::kB0, rank + 1) : need(VPass::kB1, rank);
      need(VPass::kF0, rank);
      return;
  }
}

}  // namespace stagecraft
