// Changes of settings that may make a transformer need less memory: one thing each, as in --set.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// More recompute, flash attention, the next ZeRO stages, smaller micro-batches, weights in fp8, narrow moments, a
// loss that is one kernel or in chunks, states over more replicas, weights gathered again, twice a parallel degree
// with the GPUs kept, sequence parallelism, experts on more ranks, offload, less of it, 1F1B for other orders of
// passes. For jobs that do not fit (`is_short`) other software as well, where it is assumed. Whether they are
// feasible and help is not asked here. None for abstract stages.
[[nodiscard]] std::vector<std::vector<std::string>> settings_for_memory(const Scenario& scenario,
                                                                        bool is_short);

}  // namespace stagecraft
