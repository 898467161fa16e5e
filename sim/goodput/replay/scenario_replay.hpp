// The replays as a scenario's policy: Oobleck, Varuna or Bamboo with a table of throughputs in place of
// simulated steps.
//
//   oobleck  reconfigure (or restart) is the rendezvous; stages.
//   varuna   reconfigure (or restart), without writing a checkpoint, is the rendezvous;
//            checkpoint_every; stages; the checkpoint's blocking time is what it writes. Published rules with a
//            restart by GPUs: each end of a rendezvous sets the time of the next one.
//   bamboo   global_rendezvous, local_rendezvous, takeover_slowdown, rebalance_threshold, stages.
//   all      throughput, samples_per_step, rules.
//   shape    pipelines of `stages` nodes, of oobleck and varuna by default as many as the table's first row that
//            trains has. A number between two rows has the throughput of the lower one, a number beyond the
//            last that of the last, one below the first that of the first.
//   history  nodes that come and go. What else a process tells (faults of processes, slowness,
//            corruption, notices) the published rules know nothing of: refuse it, or it is left out.
//
//   source  docs/resilience.md, section 7.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/goodput/account.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/incident.hpp"

namespace stagecraft {

// Is the policy a replay?
[[nodiscard]] bool is_replay(const PolicySpec& policy);

struct ScenarioReplay {
  PolicySpec policy;  // is_replay(policy), a throughput above 0 in its table
  std::int64_t samples_per_step = 1;
  int gpus_per_node = 1;        // for a restart by GPUs
  int stages = 1;               // bamboo: of a pipeline, in nodes; the others have those of the policy
  Duration checkpoint_write{};  // varuna
  Duration horizon{};
};

// The highest throughput of the table: samples a second.
[[nodiscard]] double ideal_throughput(const PolicySpec& policy);

// A function for run_repeats() that replays a history from 0 to the horizon.
[[nodiscard]] std::function<Account(const History& history, bool timeline)> replayed(ScenarioReplay replay);

}  // namespace stagecraft
