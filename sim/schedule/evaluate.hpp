// How long an order lasts, by the rules of the pipeline alone: no engine, no program, integers only.
//
// A search asks this a thousand times where a simulation asks the engine once. Both give the same integers
// (a property test), because both play the same rules:
//
//   order     a rank runs its passes one at a time as written; it waits, it never overtakes.
//   needs     F(s,j): F(s-1,j). B or I(s,j): B or I(s+1,j), on the last stage its own F. R, W and what else
//             stays on the rank are behind their needs in the order already.
//   message   a need that crosses ranks arrives `costs.message` later; sends cost the sender nothing.
//   fused     a pair of passes starts when the needs of both are met; what it makes leaves at its end.
//   lengths   makespan: time 0 to the last end of any rank. span: the longest that any one rank takes from
//             its first start to its last end; what counts where a rank may go on by itself.
//   source    Qi et al., ICLR'24 (arXiv 2401.10241), section 4 minimises the span.
//   time      linear in the passes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/costs.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

struct Evaluation {
  std::int64_t makespan = 0;
  std::int64_t span = 0;
  std::vector<std::int64_t> busy;   // [rank] -> the sum of its passes
  std::vector<int> peak_in_flight;  // [rank] -> as peak_in_flight()
  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

// requires an order that check() finds valid and costs for its stages; throws InternalError on a deadlock.
[[nodiscard]] Evaluation evaluate(const Schedule& schedule, const ScheduleCosts& costs = {});

}  // namespace stagecraft
