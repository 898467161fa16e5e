// --require-fit of run and memory: does the job fit, and if not, what takes most and what makes it smaller.
#pragma once

#include "sim/lower/memory_ledger.hpp"
#include "sim/scenario/scenario.hpp"
#include "tools/command_line.hpp"

namespace stagecraft {

// Says why not on standard error. `memory` is the ledger of `scenario`.
[[nodiscard]] bool fits(const Scenario& scenario, const MemoryLedger& memory, Session& session);

}  // namespace stagecraft
