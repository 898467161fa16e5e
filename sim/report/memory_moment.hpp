// Time of each rank's memory peak: the pass found by the ledger's replay, looked up in a timeline.
#pragma once

#include "sim/engine/engine.hpp"
#include "sim/lower/memory_ledger.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

// Sets the time of every stage's moment to the start of its pass; a moment that is the optimizer step, or
// whose pass is not in the program, stays without.
void time_peaks(MemoryLedger& ledger, const Program& program, const Timeline& timeline);

}  // namespace stagecraft
