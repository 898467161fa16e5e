// Schedule and costs of the checkpoints, with every time known.
//
//   sync       training stands still for `block`; usable at its end.
//   async      stands still for `block`, then `persist` in the background with steps `slowdown` times as
//              long; usable at the end of that. The next snapshot waits for it.
//   interval   counts the work that is done: beside a persist less than the time that passes.
//   in-memory  like async, for storage. Besides, every `copy_every` steps each node's shard goes to
//              copies - 1 other hosts of its group in idle network time: usable when the next `copy_every`
//              steps have ended.
//   source     docs/resilience.md, section 4 (checkpoints).
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "sim/goodput/failure_spec.hpp"

namespace stagecraft {

struct Checkpointing {
  CheckpointMode mode = CheckpointMode::kSync;
  // Training between two snapshots, rounded to whole steps (at least 1); zero: `every_steps` steps.
  Duration interval{};
  std::int64_t every_steps = 0;
  Duration block{};
  Duration persist{};
  double slowdown = 1;
  Duration load{};
  int copies = 2;               // m
  std::int64_t copy_every = 1;  // steps
  Duration copy_load{};         // time to load from host memories

  // Training time lost during a persist: P (1 - 1/φ).
  [[nodiscard]] Duration slowed_by() const;
  // Time of a checkpoint on demand: training stands still until it is usable.
  [[nodiscard]] Duration on_demand() const;

  friend bool operator==(const Checkpointing&, const Checkpointing&) = default;
};

}  // namespace stagecraft
