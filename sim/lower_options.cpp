#include "sim/lower_options.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace stagecraft {
namespace {

bool pairs_passes(const Scenario& scenario) {
  return runs_fused_pairs(scenario) || overlaps_expert_exchanges(scenario);
}

std::vector<FusedPairRule> pair_rules(const Scenario& scenario, const IterationPrices& prices) {
  const bool neighbours = overlaps_expert_exchanges(scenario);
  // Passes of one graph start on time: their two streams wait for no host.
  const bool in_one_graph = scenario.options.cuda_graphs == CudaGraphs::kIteration;
  std::vector<FusedPairRule> rules;
  if (!pairs_passes(scenario)) return rules;
  for (const StagePrice& stage : prices.stages)
    rules.push_back({.neighbours = neighbours,
                     .expert_overlap = in_one_graph ? std::nullopt : scenario.options.rules.expert_overlap,
                     .share = neighbours ? std::nullopt : scenario.schedule.fused_share,
                     .slowdown = stage.beside.pair_slowdown,
                     .tensor_overlap = stage.beside.tensor_overlap});
  return rules;
}

StepRule step_rule(const Scenario& scenario, const Schedule& schedule) {
  if (schedule.flush) return scenario.schedule.global_step ? StepRule::kBarrier : StepRule::kPostValidated;
  const ScheduleKind* kind = find_schedule(scenario.schedule.name);
  const bool stashed = kind != nullptr && kind->weight_versions > 1;
  return stashed && scenario.overlap.gradients ? StepRule::kDelayed : StepRule::kOwn;
}

// A rolled-back step costs itself and the forwards that ran with its weights: on rank r about the first
// 2(p-1-r) of the next iteration, until the result of all ranks is known. The rank with the largest loss
// counts.
//   source  Qi et al., ICLR'24 (arXiv 2401.10241), section 4
Duration expected_rollback(const Scenario& scenario, const Schedule& schedule,
                           const IterationPrices& prices) {
  Duration most{};
  if (scenario.schedule.rollback == 0) return most;
  const int p = schedule.shape.ranks;
  for (int rank = 0; rank < p; ++rank) {
    Duration lost = prices.ranks[static_cast<std::size_t>(rank)].optimizer.total() + prices.host.total();
    int left = 2 * (p - 1 - rank);
    for (const Action& action : schedule.ranks[static_cast<std::size_t>(rank)]) {
      if (action.pass != Pass::kForward || left-- == 0) break;
      const int copy = schedule.copy_of(action.micro_batch);
      lost += prices.stages[schedule.places().index_of(action.stage, copy)].forward.total();
    }
    most = std::max(most, lost);
  }
  return from_seconds(to_seconds(most) * scenario.schedule.rollback);
}

// Is a message still on its way when the next pass of its rank may send one?
bool outlasts_a_pass(const IterationPrices& prices) {
  Duration longest{}, shortest = Duration::max();
  for (const EdgePrice& edge : prices.edges)
    longest = std::max({longest, edge.forward.total(), edge.backward.total()});
  for (const StagePrice& stage : prices.stages)
    shortest = std::min({shortest, stage.forward.total(), stage.input_gradient.total()});
  return longest > shortest;
}

// Two passes of a pair end together, and send by one NIC at once.
bool messages_meet(const Scenario& scenario, const IterationPrices& prices) {
  return outlasts_a_pass(prices) ||
         (pairs_passes(scenario) && std::ranges::any_of(prices.edges, &EdgePrice::between_nodes));
}

}  // namespace

LowerOptions lower_options(const Scenario& scenario, const Schedule& schedule,
                           const IterationPrices& prices) {
  const bool once_an_iteration =
      scenario.options.rules.reduces_behind_backward && scenario.parallelism.pipeline > 1;
  const bool whole = keeps_gradients_whole(scenario);
  return {.blocking_messages = !scenario.overlap.pipeline,
          .queued_messages = scenario.overlap.pipeline && messages_meet(scenario, prices),
          .overlap_gradients = scenario.overlap.gradients,
          .overlap_parameters = scenario.overlap.parameters,
          .aligned_gradients = scenario.options.rules.aligned_gradients,
          .reduce_last = whole,
          .reduce_behind = once_an_iteration && whole,
          .gather_once = once_an_iteration,
          .iterations = scenario.schedule.iterations,
          .step = step_rule(scenario, schedule),
          .rollback = expected_rollback(scenario, schedule, prices),
          .pairs = pair_rules(scenario, prices)};
}

}  // namespace stagecraft
