#include "bench/workload_b.hpp"

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "bench/fat_tree.hpp"
#include "topology/collective.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;
using namespace std::chrono_literals;
using Handle = ProgramBuilder::Handle;

constexpr Bytes kBuffer = 1_GiB;
constexpr Duration kLinkLatency = 1us;
const Bandwidth kLink{50.0 * 1024 * 1024 * 1024};

Bandwidth link_rate(RingNetwork network) {
  return network == RingNetwork::kFatTree ? FatTree::kLink : kLink;
}

// The route from each rank to the next.
std::vector<std::vector<LinkUse>> routes(ProgramBuilder& builder, const WorkloadB& workload) {
  std::vector<std::vector<LinkUse>> routes;
  std::optional<FatTree> tree;
  if (workload.network == RingNetwork::kFatTree) tree.emplace(builder, workload.ranks);
  std::vector<LinkId> ingress;
  if (workload.network == RingNetwork::kSwitch)
    for (int rank = 0; rank < workload.ranks; ++rank)
      ingress.push_back(builder.add_link({.name = "to " + std::to_string(rank), .capacity = kLink}));
  for (int rank = 0; rank < workload.ranks; ++rank) {
    const int next = (rank + 1) % workload.ranks;
    if (tree) {
      routes.push_back(tree->route(rank, next));
      continue;
    }
    routes.push_back(
        {{.link = builder.add_link({.name = "from " + std::to_string(rank), .capacity = kLink})}});
    if (!ingress.empty()) routes.back().push_back({.link = ingress[static_cast<std::size_t>(next)]});
  }
  return routes;
}

Duration transfer_of(const WorkloadB& workload) {
  return kBuffer / std::int64_t{workload.ranks} / link_rate(workload.network);
}

// The latency of a message: each link on its way takes its time once.
Duration latency_of(const WorkloadB& workload) {
  SC_CHECK(workload.network != RingNetwork::kFatTree, "messages of one latency only");
  return (workload.network == RingNetwork::kRing ? 1 : 2) * kLinkLatency;
}

}  // namespace

std::size_t task_count(const WorkloadB& workload) {
  const auto n = static_cast<std::size_t>(workload.ranks);
  return 2 * n * (n - 1);
}

Duration bound(const WorkloadB& workload) {
  return 2 * (workload.ranks - 1) * (latency_of(workload) + transfer_of(workload));
}

WorkloadBCluster cluster_of(const WorkloadB& workload) {
  const NodeSpec server{.name = "server",
                        .device = "GPU",
                        .gpus = 1,
                        .nics = 1,
                        .nic_bandwidth = kLink,
                        .pcie = 2 * kLink};  // not what holds the ring up
  const FabricSpec fabric{
      .name = "switch", .kind = FabricKind::kSingleSwitch, .step_latency = latency_of(workload)};
  return {.cluster = Cluster({.groups = {{server, workload.ranks}}, .fabric = fabric}),
          .group = {.ranks = workload.ranks, .nodes = workload.ranks}};
}

Duration closed_form(const WorkloadBCluster& workload) {
  return collective_cost({workload.cluster, workload.profile, DeviceId(0), workload.group,
                          CollectiveKind::kAllReduce, kBuffer})
      .time;
}

Program build(const WorkloadB& workload) {
  ProgramBuilder builder;
  builder.reserve(task_count(workload), task_count(workload));
  const LabelId label = builder.add_label({.name = "message", .parts = {}});
  const Duration transfer = transfer_of(workload);
  const auto steps = static_cast<std::uint32_t>(2 * (workload.ranks - 1));
  for (const std::vector<LinkUse>& uses : routes(builder, workload)) {
    const Duration duration = static_cast<std::int64_t>(uses.size()) * kLinkLatency + transfer;
    const RouteId route = builder.add_route(uses);
    const ResourceId stream = builder.add_resource({.rank = 0, .name = "network"});
    for (std::uint32_t step = 0; step < steps; ++step)
      builder.add_flow(builder.add_task(stream, duration, label), transfer, link_rate(workload.network),
                       route);
  }
  // Handles count up from zero, rank by rank.
  const auto ranks = static_cast<std::uint32_t>(workload.ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    for (std::uint32_t step = 1; step < steps; ++step)
      builder.add_dependency(Handle(rank * steps + step - 1), Handle((rank + 1) % ranks * steps + step));
  return std::move(builder).build();
}

}  // namespace stagecraft
