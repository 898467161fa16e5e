#include "sim/resilience/held_states.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>
#include <variant>

#include "sim/lower/stage_parameters.hpp"

namespace stagecraft {
namespace {

// Pipeline rank, 0 or 1 for experts, rank of the tensor and of the expert axis, position of the shard.
using StateKey = std::array<int, 5>;

bool has_experts(const JobStates& job, int pipeline_rank) {
  const auto* model = std::get_if<TransformerSpec>(&job.model);
  return model != nullptr && rank_share(*model, job.plan, pipeline_rank).experts > 0;
}

// Among data and context ranks, ascending, as RankMesh::block_of cuts them.
int dense_position(const RankMesh& mesh, int rank) {
  const int context = mesh.coordinate(rank, Axis::kContext), data = mesh.coordinate(rank, Axis::kData);
  return mesh.stride(Axis::kContext) <= mesh.stride(Axis::kData)
             ? context + data * mesh.degree(Axis::kContext)
             : data + context * mesh.degree(Axis::kData);
}

class StatesOfRanks {
 public:
  explicit StatesOfRanks(const JobStates& job) : job_(job) {
    for (int rank = 0; rank < job.plan.pipeline; ++rank) experts_.push_back(has_experts(job, rank));
  }

  void add(int rank, int unit) {
    const ParallelPlan& plan = job_.plan;
    const bool sharded = job_.zero_stage >= 1;
    const int stage = plan.mesh.coordinate(rank, Axis::kPipeline);
    const int shard = sharded ? dense_position(plan.mesh, rank) % plan.shard_group : 0;
    add({stage, 0, plan.mesh.coordinate(rank, Axis::kTensor), 0, shard}, unit);
    if (!experts_[static_cast<std::size_t>(stage)]) return;
    const RankMesh& mesh = plan.expert_mesh;
    const int of_experts = sharded ? mesh.coordinate(rank, Axis::kData) % plan.expert_shard_group() : 0;
    add({stage, 1, mesh.coordinate(rank, Axis::kTensor), mesh.coordinate(rank, Axis::kExpert), of_experts},
        unit);
  }

  [[nodiscard]] Holders holders() && {
    for (std::vector<int>& units : holders_) {
      std::ranges::sort(units);
      units.erase(std::unique(units.begin(), units.end()), units.end());
    }
    return std::move(holders_);
  }

 private:
  void add(const StateKey& key, int unit) {
    const auto [known, added] = numbers_.try_emplace(key, holders_.size());
    if (added) holders_.emplace_back();
    holders_[known->second].push_back(unit);
  }

  const JobStates& job_;
  std::vector<bool> experts_;  // by pipeline rank
  std::map<StateKey, std::size_t> numbers_;
  Holders holders_;
};

}  // namespace

Holders held_by_nodes(const JobStates& job, const std::vector<int>& node_gpus) {
  StatesOfRanks states(job);
  int rank = 0;
  for (std::size_t node = 0; node < node_gpus.size(); ++node)
    for (const int end = std::min(rank + node_gpus[node], job.plan.gpus()); rank < end; ++rank)
      states.add(rank, static_cast<int>(node));
  return std::move(states).holders();
}

Holders held_by_replicas(const JobStates& job, int side_by_side) {
  StatesOfRanks states(job);
  for (int rank = 0; rank < job.plan.gpus(); ++rank)
    states.add(rank, job.plan.mesh.coordinate(rank, Axis::kData) / side_by_side);
  return std::move(states).holders();
}

int replicas_lost_together(const ParallelPlan& plan, int node_gpus) {
  std::vector<int> linked(
      static_cast<std::size_t>(plan.data));  // each to one of its group, the first to itself
  std::iota(linked.begin(), linked.end(), 0);
  const auto link_of = [&](int replica) -> int& { return linked[static_cast<std::size_t>(replica)]; };
  const auto first_of = [&](int replica) {
    while (link_of(replica) != replica) replica = link_of(replica) = link_of(link_of(replica));
    return replica;
  };
  for (int rank = 0; rank < plan.gpus(); ++rank) {
    const int one = first_of(plan.mesh.coordinate(rank, Axis::kData));
    const int other = first_of(plan.mesh.coordinate(rank - rank % node_gpus, Axis::kData));
    link_of(std::max(one, other)) = std::min(one, other);
  }
  std::vector<int> sizes(linked.size());
  for (int replica = 0; replica < plan.data; ++replica) ++sizes[static_cast<std::size_t>(first_of(replica))];
  return std::ranges::max(sizes);
}

std::optional<int> without_peer(const Holders& holders) {
  std::optional<int> first;
  for (const std::vector<int>& units : holders)
    if (units.size() == 1) first = std::min(first.value_or(units.front()), units.front());
  return first;
}

bool are_copies(const Holders& holders, int units) {
  return std::ranges::all_of(
      holders, [&](const std::vector<int>& of_state) { return static_cast<int>(of_state.size()) == units; });
}

}  // namespace stagecraft
