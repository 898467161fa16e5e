// Replays of published evaluations, whose steps are from a table of throughputs.
#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "sim/goodput/replay/scenario_replay.hpp"
#include "sim/resilience/checkpoint_times.hpp"
#include "sim/resilience/setup_parts.hpp"

namespace stagecraft {
namespace {

bool comes_and_goes(const FailureLaw& law) {
  return !std::holds_alternative<FailSlow>(law) && !std::holds_alternative<SilentCorruption>(law) &&
         !std::holds_alternative<Maintenance>(law);
}

// A replay supports only nodes that arrive and leave.
bool is_replayable(const FailureSpec& spec, Diagnostics& diagnostics) {
  const bool nodes_only = std::ranges::all_of(spec.processes, [](const FailureProcess& process) {
    return comes_and_goes(process.law) && std::ranges::none_of(process.causes, [](const Cause& cause) {
             return cause.severity == FailureSeverity::kProcess && cause.share > 0;
           });
  });
  if (nodes_only && ideal_throughput(spec.policy) > 0) return true;
  diagnostics.error(
      {.code = "policy-constraint",
       .path = nodes_only ? "failures.policy.throughput" : "failures.process",
       .message = nodes_only ? "no row of the table trains"
                             : "a policy with a table of throughputs replays a published evaluation, which "
                               "knows only nodes that come and go",
       .hint = nodes_only ? "give a throughput above 0"
                          : "use kind: trace or spot, or causes of severity node; or leave throughput out"});
  return false;
}

}  // namespace

// Varuna's write time is the checkpoint's blocking time.
std::optional<GoodputSetup> set_up_replay(const SetupRequest& request, Diagnostics& diagnostics) {
  const FailureSpec& spec = request.spec;
  if (!is_replayable(spec, diagnostics)) return std::nullopt;
  const JobCosts& costs = request.job.costs;
  const std::int64_t samples = samples_of_table(request);
  const double ideal = ideal_throughput(spec.policy);
  GoodputSetup setup{.ideal = {.duration = from_seconds(static_cast<double>(samples) / ideal),
                               .samples = samples,
                               .nodes = request.job.shapes.nodes()},
                     .nodes = request.job.shapes.nodes(),
                     .checkpoints = false};
  if (!is_countable({.steps = spec.policy.checkpoint_every,
                     .iteration = setup.ideal.duration,
                     .path = "failures.policy.checkpoint_every"},
                    diagnostics))
    return std::nullopt;
  setup.replay =
      replayed({.policy = spec.policy,
                .samples_per_step = samples,
                .gpus_per_node = costs.gpus_per_node,
                .stages = spec.policy.stages > 0 ? spec.policy.stages : pipeline_nodes(request.job),
                .checkpoint_write = spec.checkpoint.block.value_or(Duration::zero()),
                .horizon = spec.horizon});
  return setup;
}

}  // namespace stagecraft
