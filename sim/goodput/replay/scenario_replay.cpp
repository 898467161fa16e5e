#include "sim/goodput/replay/scenario_replay.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "sim/goodput/policies/throughput_table.hpp"
#include "sim/goodput/replay/bamboo.hpp"
#include "sim/goodput/replay/oobleck_varuna.hpp"
#include "sim/goodput/restart_time.hpp"

namespace stagecraft {
namespace {

using Row = std::pair<int, double>;

// The lowest row that trains.
const Row& least(const std::vector<Row>& table) {
  const auto row = std::find_if(table.begin(), table.end(), [](const Row& r) { return r.second > 0; });
  SC_CHECK(row != table.end(), "a table of throughputs has one above 0");
  return *row;
}

std::function<Duration(int)> step_by_nodes(const ScenarioReplay& replay) {
  return [&replay](int nodes) {
    const int row = std::max(nodes, replay.policy.throughput.front().first);
    return published_step(replay.samples_per_step, throughput_of(replay.policy.throughput, row));
  };
}

GlobalRestart global_restart(const ScenarioReplay& replay) {
  const PolicySpec& policy = replay.policy;
  GlobalRestart restart{.pipeline_nodes = policy.stages > 0 ? policy.stages : least(policy.throughput).first,
                        .step = step_by_nodes(replay)};
  const auto rendezvous = [&](int nodes) {
    return policy.reconfigure ? *policy.reconfigure
                              : restart_time(policy.restart, nodes * replay.gpus_per_node);
  };
  restart.rendezvous = rendezvous(policy.throughput.back().first);
  if (policy.kind != PolicyKind::kVaruna) return restart;
  restart.checkpoint_every = policy.checkpoint_every;
  restart.checkpoint_write = replay.checkpoint_write;
  if (policy.rules == Rules::kPublished && !policy.reconfigure && policy.restart.size() > 1)
    for (int nodes = restart.pipeline_nodes; nodes <= policy.throughput.back().first; ++nodes)
      restart.rendezvous_by_nodes[nodes] = rendezvous(nodes);
  return restart;
}

RedundantPipelines redundant_pipelines(const ScenarioReplay& replay) {
  const PolicySpec& policy = replay.policy;
  return {.stages = replay.stages,
          .step = [by_nodes = step_by_nodes(replay)](int, int nodes) { return by_nodes(nodes); },
          .global_rendezvous = policy.global_rendezvous,
          .local_rendezvous = policy.local_rendezvous,
          .slowdown = policy.takeover_slowdown,
          .rebalance_threshold = policy.rebalance_threshold};
}

Account account_for(const ScenarioReplay& replay, const History& history, bool timeline) {
  const std::vector<NodeChange> changes = changes_of(history);
  const bool published = replay.policy.rules == Rules::kPublished;
  const ReplayRules rules{.rules = replay.policy.rules,
                          .ties = published ? Ties::kHeapRebuilt : Ties::kTraceOrder,
                          .end = replay.horizon};
  const Replay result = replay.policy.kind == PolicyKind::kBamboo
                            ? replay_bamboo(changes, rules, redundant_pipelines(replay))
                            : replay_global_restart(changes, rules, global_restart(replay));
  return account_of(result,
                    {.ideal_step = published_step(replay.samples_per_step, ideal_throughput(replay.policy)),
                     .samples_per_step = replay.samples_per_step,
                     .causes = history.causes.size(),
                     .timeline = timeline});
}

}  // namespace

bool is_replay(const PolicySpec& policy) {
  const bool published = policy.kind == PolicyKind::kOobleck || policy.kind == PolicyKind::kVaruna ||
                         policy.kind == PolicyKind::kBamboo;
  return published && !policy.throughput.empty();
}

double ideal_throughput(const PolicySpec& policy) {
  double ideal = 0;
  for (const auto& [nodes, throughput] : policy.throughput) ideal = std::max(ideal, throughput);
  return ideal;
}

std::function<Account(const History& history, bool timeline)> replayed(ScenarioReplay replay) {
  SC_CHECK(is_replay(replay.policy) && replay.samples_per_step >= 1, "a policy with a table of throughputs");
  return [replay = std::move(replay)](const History& history, bool timeline) {
    return account_for(replay, history, timeline);
  };
}

}  // namespace stagecraft
