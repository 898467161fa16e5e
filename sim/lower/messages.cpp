#include "sim/lower/messages.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

DeviceId device(int rank) {
  return DeviceId(static_cast<std::uint32_t>(rank));
}

}  // namespace

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

std::vector<int> pipeline_members(const ParallelPlan& plan, int pipeline_rank) {
  return plan.mesh.group(pipeline_member(plan, pipeline_rank),
                         {Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData});
}

bool alike(const Cluster& cluster, const PlacedGroup& a, const PlacedGroup& b) {
  return a.placement == b.placement &&
         cluster.node_spec_of(device(a.member)) == cluster.node_spec_of(device(b.member));
}

std::vector<PlacedGroup> groups_of(const Network& network, int pipeline_rank, Axis axis) {
  // The first of a group speaks for it, except where nodes differ. Along the pipeline each GPU of the rank is
  // in a group of its own.
  const bool ask_all = axis == Axis::kPipeline || network.cluster.spec().groups.size() > 1;
  std::vector<PlacedGroup> groups;
  for (const int member : pipeline_members(network.plan, pipeline_rank)) {
    if (!ask_all && network.plan.mesh.coordinate(member, axis) != 0) continue;
    const PlacedGroup group{.member = member,
                            .placement = network.plan.mesh.placement(network.cluster, member, axis)};
    const bool known = std::any_of(groups.begin(), groups.end(), [&](const PlacedGroup& other) {
      return alike(network.cluster, group, other);
    });
    if (!known) groups.push_back(group);
  }
  return groups;
}

PassPrice group_price(const Network& network, const std::vector<PlacedGroup>& groups,
                      const CollectiveJob& job) {
  SC_CHECK(!groups.empty(), "a pipeline rank is in a group of every axis");
  CollectiveCost slowest;
  for (const PlacedGroup& group : groups) {
    const CollectiveCost cost = collective_cost(network.cluster, network.profile, device(group.member),
                                                group.placement, job.kind, job.size);
    if (cost.time > slowest.time) slowest = cost;
  }
  PassPrice price;
  price.add(job.category, slowest.time, slowest.provenance);
  return price;
}

EdgePrice edge_price(const Cluster& cluster, const ParallelPlan& plan, int stage, Bytes size) {
  const int from = plan.rank_of_stage(stage);
  const int to = plan.rank_of_stage(stage + 1);
  EdgePrice price;
  if (from == to || size == Bytes(0)) return price;
  const std::vector<int> senders = pipeline_members(plan, from);
  const std::vector<int> receivers = pipeline_members(plan, to);
  CollectiveCost there, back;
  std::pair<int, int> before{-1, -1};
  for (std::size_t i = 0; i < senders.size(); ++i) {
    const int a = senders[i], b = receivers[i];
    const std::pair nodes{cluster.node_of(device(a)), cluster.node_of(device(b))};
    if (nodes == before) continue;  // what the GPU before it sent
    before = nodes;
    const CollectiveCost out =
        message_cost(cluster, device(a), device(b), size, same_stage_on_node(cluster, plan, a));
    const CollectiveCost home =
        message_cost(cluster, device(b), device(a), size, same_stage_on_node(cluster, plan, b));
    if (out.time > there.time) there = out;
    if (home.time > back.time) back = home;
  }
  price.forward.add(Category::kPipelineComm, there.time, there.provenance);
  price.backward.add(Category::kPipelineComm, back.time, back.provenance);
  return price;
}

}  // namespace stagecraft
