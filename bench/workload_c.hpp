// Workload C2: random messages that get into each other's way, the hard case of sharing.
//
// Each of N hosts on a fat tree (bench/fat_tree.hpp) sends K messages of 1 to 64 MB to other hosts, any size
// and any host equally likely, W of them outstanding: message i starts when message i - W has ended. A host
// draws from an mt19937 that is seeded with its number.
#pragma once

#include <cstddef>

#include "sim/program/program.hpp"

namespace stagecraft {

struct WorkloadC {
  int hosts = 2;        // N
  int messages = 1;     // K, of each host
  int outstanding = 1;  // W
};

// N * K
[[nodiscard]] std::size_t task_count(const WorkloadC& workload);

[[nodiscard]] Program build(const WorkloadC& workload);

}  // namespace stagecraft
