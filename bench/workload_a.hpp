// Workload A: one 1F1B iteration of a uniform pipeline as a task graph, message by message.
//
// p stages, m micro-batches, d replicas; rank = replica * p + stage. A forward takes 1000 us, a backward 2000
// us, a message of 16 MiB 312.5 us at 50 GiB/s plus 2 us of latency, and nothing shares a link. A rank has
// one send or collective in flight, receives of one kind arrive in order, a send waits for its compute. With
// d > 1 each rank ends with a ring all-reduce of 512 MiB over its replicas, a closed form of 2(d-1) steps.
//
// Simulated time for d = 1: (m+p-1)(F+B) + K*c with K = 2(p + m - 2 - ceil(m/p)) and c = 314.5 us. An
// observed fit, exact at the sizes that the test names: ASTRA-sim's analytical, congestion-unaware network
// gives the same milliseconds (251.998, 513.286, 2081.014).
//   source of the order  Narayanan et al., SC'21 (arXiv 2104.04473), section 2.2 (PipeDream-Flush)
//   source of the ring   Patarasuk and Yuan, J. Parallel Distrib. Comput. 69(2), 2009
#pragma once

#include <cstddef>

#include "sim/program/program.hpp"

namespace stagecraft {

struct WorkloadA {
  int stages = 1;         // p
  int micro_batches = 1;  // m
  int replicas = 1;       // d
  bool folded = false;    // build one replica for all d: they do the same at the same time
};

// d*(2pm + 4(p-1)m) + (d > 1 ? pd : 0); folded, one replica's share of it.
[[nodiscard]] std::size_t task_count(const WorkloadA& workload);

[[nodiscard]] Program build(const WorkloadA& workload);

}  // namespace stagecraft
