// Mistakes that every point of a sweep would share: they are the sweep's, and none of its points runs.
#pragma once

#include "base/diagnostic.hpp"
#include "sim/scenario/library.hpp"
#include "sim/study/sweep_spec.hpp"

namespace stagecraft {

// Reports keys that no point's scenario has (one that some have is theirs), and values that cannot be read and
// that no point changes. Each varied value is tried beside the first ones of the others; of an axis of many
// values the first 100.
void report_shared_mistakes(const SweepSpec& spec, Library& library, Diagnostics& diagnostics);

}  // namespace stagecraft
