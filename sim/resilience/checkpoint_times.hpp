// Time of a checkpoint, and its optimal interval: bytes over bandwidths.
//
//   write     one copy of the state, cut evenly over all nodes, each at node_write, all at storage_write:
//             the slower of both. Savers without duplicates (PyTorch DCP, ByteCheckpoint).
//   load      each byte is read once, evenly by all nodes, at node_read and storage_read, and goes on to its
//             replicas over the network meanwhile (ByteCheckpoint).
//   sync      blocks for the write. async blocks for the copy of a GPU's part to its host, writes behind.
//   memory    each node sends its state to m - 1 other hosts while its network is idle: every iteration if
//             that suffices, else every so many.
//   interval  of checkpoints in storage, by CheckpointSpec::rule, with C what one costs: block, and what a
//             persist slows training down by. Beside copies in memory only what these lose counts as a failure
//             (memory_losses.hpp).
//   source    docs/resilience.md, sections 4 and 8; Gemini (SOSP 2023) for copies in memory.
#pragma once

#include <cstdint>
#include <optional>

#include "base/diagnostic.hpp"
#include "base/units.hpp"
#include "sim/goodput/checkpointing.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/resilience/job_costs.hpp"

namespace stagecraft {

struct CheckpointedJob {
  const JobCosts& costs;
  int nodes = 1;  // training nodes
  int gpus = 1;
  Duration iteration{};
  double failures_per_s = 0;  // failures per second that send the job back to storage
};

// So many iterations between two checkpoints.
struct StepsBetween {
  std::int64_t steps = 1;
  Duration iteration{};
  const char* path = "failures.checkpoint.interval";  // the key that says how many
};
// Are they a time that goodput counts? If not, false with a diagnostic.
[[nodiscard]] bool is_countable(const StepsBetween& interval, Diagnostics& diagnostics);

// Given values of the spec are used, missing ones derived. nullopt with a diagnostic where that is
// impossible: in-memory copies without idle time on the network, or on more nodes than there are.
[[nodiscard]] std::optional<Checkpointing> checkpointing_of(const CheckpointSpec& spec,
                                                            const CheckpointedJob& job,
                                                            Diagnostics& diagnostics);

// Training time that a checkpoint of this kind costs.
[[nodiscard]] Duration cost_of(const Checkpointing& checkpointing);

// Is this the interval of a job in which nothing fails, or so rarely that no checkpoint pays?
[[nodiscard]] bool is_never(Duration interval);

// Number of steps until a snapshot is written and the next may be taken; 1 without a background write.
[[nodiscard]] std::int64_t steps_until_written(const Checkpointing& checkpointing, Duration iteration);

// The exact optimum for that cost, in whole steps, at least 1; nothing where nothing fails, or so rarely that
// it would be a century.
struct BestInterval {
  Duration time{};
  std::int64_t steps = 1;
};
[[nodiscard]] std::optional<BestInterval> best_interval(const Checkpointing& checkpointing,
                                                        Duration iteration, double failures_per_s);

}  // namespace stagecraft
