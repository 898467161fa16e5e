// The repeats of a job with failures, and the checkpoints that it makes among them.
//
//   pilots  Where losses of work have no formula, eight repeats count them first, and the interval follows. An
//           interval that was given stays, and the losses are those of the repeats themselves. Where none is
//           seen, the rate at which all holders of a state are lost counts (in-memory checkpoints, hot spares
//           with peers) if it is below half a loss in that time; else this bound, and no interval is the
//           optimum.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/diagnostic.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/goodput/run_repeats.hpp"
#include "sim/resilience/checkpoint_times.hpp"
#include "sim/resilience/goodput_job.hpp"
#include "sim/resilience/policy_setup.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Losses of work per second of training: failures that send the job back to a checkpoint in storage.
struct LossRate {
  double per_s = 0;
  bool known = true;  // false: none was seen and no formula has them, so that this is a bound
};

// What the repeats of a job gave. The policies refer to the job.
struct GoodputRun {
  GoodputSetup setup;
  std::optional<Checkpointing> checkpointing = {};
  LossRate losses = {};
  GoodputResult result = {};
};

struct GoodputRunRequest {
  std::uint64_t seed = 1;
  int repeats = 1, threads = 1;
  bool timeline = false, describe = false;
  std::function<void()> after_each = {};  // after each repeat but those of pilots, from any thread
};

// throws ScenarioError where the policy or the checkpoints cannot be as `spec` asks.
[[nodiscard]] GoodputRun run_goodput(GoodputJob& job, const FailureSpec& spec,
                                     const GoodputRunRequest& request);

// The most nodes that are up at once, in the first repeat.
[[nodiscard]] int most_nodes_up(const FailureSpec& spec, const GoodputSetup& setup, std::uint64_t seed);

// throws ScenarioError where there are errors; what has no place yet gets that of its key, or of
// the section that holds it.
void throw_located(const Scenario& scenario, const Diagnostics& diagnostics);

}  // namespace stagecraft
