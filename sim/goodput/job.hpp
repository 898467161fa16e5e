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
//   source   docs/resilience.md, section 1 (rules, accounts).
#pragma once

#include <optional>

#include "base/units.hpp"
#include "sim/goodput/account.hpp"
#include "sim/goodput/checkpointing.hpp"
#include "sim/goodput/incident.hpp"
#include "sim/goodput/policy.hpp"
#include "sim/goodput/slowness.hpp"

namespace stagecraft {

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
