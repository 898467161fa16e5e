// Random acyclic programs: the same for a seed on every machine, because only the bits of the generator are
// used.
#pragma once

#include <cstdint>

#include "sim/program/program.hpp"

namespace stagecraft {

// Up to 12 streams and concurrent resources, up to 200 tasks, durations mostly small and often zero so that
// ties abound, edges only from earlier to later tasks, memory on about half of the tasks.
[[nodiscard]] Program random_program(std::uint64_t seed);

}  // namespace stagecraft
