#include "sim/lower/messages.hpp"

#include <array>

namespace stagecraft {

int pipeline_member(const ParallelPlan& plan, int pipeline_rank) {
  std::array<int, kAxisCount> at{};
  at[static_cast<std::size_t>(Axis::kPipeline)] = pipeline_rank;
  return plan.mesh.rank_at(at);
}

int same_stage_on_node(const Cluster& cluster, const ParallelPlan& plan, int member) {
  const int node = cluster.node_of(DeviceId(static_cast<std::uint32_t>(member)));
  const int stage = plan.mesh.coordinate(member, Axis::kPipeline);
  // A node's GPUs are neighbours in number: walk out from the member both ways.
  int count = 0;
  const auto alike = [&](int rank) { return plan.mesh.coordinate(rank, Axis::kPipeline) == stage; };
  const auto here = [&](int rank) {
    return rank >= 0 && rank < plan.gpus() &&
           cluster.node_of(DeviceId(static_cast<std::uint32_t>(rank))) == node;
  };
  for (int rank = member; here(rank); ++rank) count += alike(rank) ? 1 : 0;
  for (int rank = member - 1; here(rank); --rank) count += alike(rank) ? 1 : 0;
  return count;
}

PassPrice group_price(const Network& network, int member, Axis axis, const CollectiveJob& job) {
  const GroupPlacement group = network.plan.mesh.placement(network.cluster, member, axis);
  const CollectiveCost cost =
      collective_cost(network.cluster, network.profile, DeviceId(static_cast<std::uint32_t>(member)), group,
                      job.kind, job.size);
  PassPrice price;
  price.add(job.category, cost.time, cost.provenance);
  return price;
}

EdgePrice edge_price(const Cluster& cluster, const ParallelPlan& plan, int stage, Bytes size) {
  const int from = pipeline_member(plan, plan.rank_of_stage(stage));
  const int to = pipeline_member(plan, plan.rank_of_stage(stage + 1));
  EdgePrice price;
  if (from == to || size == Bytes(0)) return price;
  const auto device = [](int rank) { return DeviceId(static_cast<std::uint32_t>(rank)); };
  const CollectiveCost there =
      message_cost(cluster, device(from), device(to), size, same_stage_on_node(cluster, plan, from));
  const CollectiveCost back =
      message_cost(cluster, device(to), device(from), size, same_stage_on_node(cluster, plan, to));
  price.forward.add(Category::kPipelineComm, there.time, there.provenance);
  price.backward.add(Category::kPipelineComm, back.time, back.provenance);
  return price;
}

}  // namespace stagecraft
