// One job from time 0 to the horizon, through one history of incidents.
//
// Progress is counted in committed samples: a step counts at its end or not at all. Between incidents,
// checkpoints and reviews whole steps are skipped by arithmetic; nothing is scanned per step or per node, so
// that months cost microseconds.
//
//   order    at equal times incidents come first (add, remove, the rest), then a step end, then a
//            checkpoint's completion: a node lost at the instant a step or a checkpoint ends takes it along.
//            What ends at the horizon counts.
//   start    nodes added or removed at time 0 are there, or not, at the first plan: nothing has failed.
//   step     lasts its plan's duration × what its slow nodes make of it × the policy's kSlowDown × φ while a
//            checkpoint is written in the background, rounded to the nanosecond. A change of these factors
//            scales what is left of a step.
//   source   docs/resilience.md, sections 1 (rules, accounts) and 4 (checkpoints).
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "sim/goodput/account.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/incident.hpp"
#include "sim/goodput/policy.hpp"
#include "sim/goodput/slowness.hpp"

namespace stagecraft {

// Schedule and costs of the checkpoints, with every time known.
//
//   sync       training stands still for `block`; usable at its end.
//   async      stands still for `block`, then `persist` in the background with steps `slowdown` times as
//              long; usable at the end of that. The next snapshot waits for it.
//   interval   counts the work that is done: beside a persist less than the time that passes.
//   in-memory  like async, for storage. Besides, every `copy_every` steps each node's shard goes to
//              copies - 1 other hosts of its group in idle network time: usable when the next `copy_every`
//              steps have ended.
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

struct JobSpec {
  Duration horizon{};
  ShapedStep ideal;                                 // X*: no plan has a higher rate
  std::optional<Checkpointing> checkpointing = {};  // absent: going back means to the start
  SlowReplicas slow_replicas = {};                  // absent: a step takes its slowest node's factor
  bool timeline = false;
};

//   throws  InternalError on a plan that cannot be (a node that is not up, a rate above the ideal, no
//           duration) and on a history that cannot be (out of order, a node that comes twice).
[[nodiscard]] Account run_job(const JobSpec& spec, const History& history, Policy& policy);

}  // namespace stagecraft
