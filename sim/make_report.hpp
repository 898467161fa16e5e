// Builds the report of simulate(): the scenario's work and texts, measurements of the timeline, the memory.
//
//   interval  90 % of a log-normal error: what the profile leaves unexplained, by families of operations; of
//             a profile that was never scored, its spread by kind of knowledge.
#pragma once

#include <span>
#include <string_view>

#include "sim/simulate.hpp"

namespace stagecraft {

// The warning of a scenario with `failures`.
inline constexpr std::string_view kFailuresLeftOut =
    "failures: an iteration is predicted without them; `stagecraft goodput` says what they leave of weeks";

// FLOP/s of a GPU in the precision of training, on average over the cluster. requires a profile.
[[nodiscard]] FlopRate mean_peak(const Scenario& scenario);

// `simulation` is complete but for its report; `weights` are those of its copies (measure_bubble), `memory` is
// the ledger of its plan and order.
[[nodiscard]] Report make_report(const Scenario& scenario, const Simulation& simulation,
                                 std::span<const int> weights, MemoryLedger memory);

}  // namespace stagecraft
