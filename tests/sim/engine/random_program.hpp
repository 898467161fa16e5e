// Random acyclic programs: the same for a seed on every machine, because only the bits of the generator are
// used.
#pragma once

#include <cstdint>

#include "sim/program/program.hpp"

namespace stagecraft {

// Up to 12 streams and concurrent resources, up to 200 tasks, durations mostly small and often zero so that
// ties abound, edges only from earlier to later tasks, memory on about half of the tasks.
[[nodiscard]] Program random_program(std::uint64_t seed);

// Up to 8 links of 1 to 9 GB/s and up to 60 tasks on streams and concurrent resources, most of them with a
// flow over some links, some with latency; edges from earlier to later tasks; some streams yield, some tasks
// load.
[[nodiscard]] Program random_flow_program(std::uint64_t seed, bool loads = true);

}  // namespace stagecraft
