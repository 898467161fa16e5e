#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/text.hpp"
#include "sim/scenario/no_effect_listener.hpp"

namespace stagecraft {

namespace {

// A named fabric brings this key along with the others of its file, and nobody wrote it.
bool is_of_named_fabric(const Scenario& scenario, const std::string& path) {
  const std::string file = place_of(scenario, path).file;
  return file == place_of(scenario, "cluster.fabric.kind").file &&
         file != place_of(scenario, "stagecraft").file;
}

// Latencies that the graph of the cluster has and prices do not.
void listen_to_latencies(Listener& listener, const Scenario& scenario) {
  if (!scenario.cluster) return;
  constexpr const char* kSwitches = "cluster.fabric.switch_latency";
  const bool unasked = scenario.parallelism.pipeline == 1 || scenario.cluster->server_count() == 1;
  listener.say(kSwitches, unasked && !is_of_named_fabric(scenario, kSwitches),
               "it is of messages between stages on several nodes; collectives have collective_latency and "
               "step_latency");
  if (!scenario.network.shared()) return;  // cluster.links then has no effect at all
  const ClusterSpec& whole = whole_cluster(scenario);
  for (std::size_t i = 0; i < whole.links.size(); ++i)
    listener.say(fmt::format("cluster.links.{}.latency", i), true,
                 "prices know the latencies of the fabric, not of single links; topology show does");
}

// Uplinks that carry nothing. A ratio of 1 asks for nothing, as in most presets.
void listen_to_uplinks(Listener& listener, const Scenario& scenario) {
  if (!scenario.cluster) return;
  constexpr const char* kPath = "cluster.fabric.oversubscription";
  const bool shared = scenario.network.shared();
  const ClusterSpec& cluster = shared ? whole_cluster(scenario) : *scenario.cluster;
  const FabricSpec& fabric = cluster.fabric;
  if (fabric.oversubscription <= 1) return;
  listener.say(kPath, fabric.kind == FabricKind::kSingleSwitch, "a single switch has no uplinks");
  // On shared links the rails below one group of leaf switches meet above them.
  const bool rails_meet = shared && fabric.kind == FabricKind::kRailOptimized;
  listener.say(
      kPath, !rails_meet && cluster.server_count() <= fabric.nodes_per_leaf,
      fmt::format("a leaf has room for {} nodes, and all of them are on one", fabric.nodes_per_leaf));
}

// NICs that give a GPU more than its PCIe: the rest of them is idle.
void listen_to_nics(Listener& listener, const Scenario& scenario) {
  if (!scenario.cluster) return;
  const ClusterSpec& cluster = *scenario.cluster;
  const NodeSpec& node = cluster.groups.front().node;
  if (cluster.server_count() <= node.nvlink_domain) return;
  const auto share = [&](const NodeSpec& of) {
    return cluster.fabric.nics_of(of) * cluster.fabric.nic_rate_of(of) / of.gpus;
  };
  const auto binds = [&](const NodeGroup& group) { return share(group.node) > group.node.pcie; };
  if (!std::ranges::all_of(cluster.groups, binds)) return;
  const bool overruled = cluster.fabric.nic_bandwidth > Bandwidth(0);
  listener.warn(
      overruled ? "cluster.fabric.nic_bandwidth" : "cluster.node.nic_bandwidth", "more-than-possible",
      fmt::format(
          "counts in part: a GPU has NICs of {}, and reaches them over PCIe of {} (cluster.node.pcie)",
          human(share(node)), human(node.pcie)));
}

// Sums that switches could add up.
void listen_to_sharp(Listener& listener, const Scenario& scenario) {
  if (!scenario.cluster || !scenario.cluster->fabric.sharp) return;
  constexpr const char* kPath = "cluster.fabric.sharp";
  const ClusterSpec& cluster = *scenario.cluster;
  listener.say(kPath, cluster.server_count() == 1, "there is one node, and no switch between nodes");
  const ParallelSpec& parallel = scenario.parallelism;
  const bool in_a_node = std::ranges::all_of(cluster.groups, [&](const NodeGroup& group) {
    return cluster.gpus_of(group.node) % parallel.tensor == 0;
  });
  const bool tensor_apart = parallel.tensor > 1 && (parallel.order.front() != Axis::kTensor || !in_a_node);
  if (std::holds_alternative<StagesSpec>(scenario.model) || tensor_apart || parallel.expert_tensor > 1)
    return;
  if (parallel.zero_stage == 0 || parallel.zero_group || !has_replicas(scenario)) return;
  listener.warn(kPath, "little-effect",
                "speeds up the norm of the gradients alone: under ZeRO gradients are scattered and weights "
                "gathered, and switches add up all-reduces only");
}

// Keys of a fabric that only `network: flow` uses, so that a closed-form price is not overrated.
void listen_to_fabric(Listener& listener, const Scenario& scenario) {
  if (!scenario.cluster || scenario.network.shared()) return;
  const FabricSpec& fabric = scenario.cluster->fabric;
  const bool one_node = scenario.cluster->server_count() == 1;
  const char* rates =
      "but for the latency of messages, closed-form prices know the rates of a fabric alone; network: flow "
      "knows its ways";
  listener.say("cluster.links", !scenario.cluster->links.empty(), "closed-form prices see no single link");
  const bool grid = fabric.kind == FabricKind::kTorus || fabric.kind == FabricKind::kDragonfly;
  listener.say("cluster.fabric.",
               {"dims", "groups", "routers_per_group", "nodes_per_router", "global_links", "link_bandwidth",
                "global_bandwidth"},
               grid, rates);
  listener.say(
      "cluster.fabric.",
      {"nodes_per_pod", "core_oversubscription", "cores", "spines", "planes", "routing", "routing_seed"},
      !one_node, rates);
  const char* own = "closed-form prices give every GPU its own PCIe";
  listener.say("cluster.node.", {"sockets", "socket_link"}, true, own);
  const bool copies =
      std::holds_alternative<TransformerSpec>(scenario.model) && !(scenario.offload == OffloadSpec{});
  listener.say("cluster.node.", {"gpus_per_pcie_switch", "pcie_uplink"}, !copies, own);
}

}  // namespace

void listen_to_cluster(Listener& listener, const Scenario& scenario) {
  listen_to_latencies(listener, scenario);
  listen_to_uplinks(listener, scenario);
  listen_to_nics(listener, scenario);
  listen_to_sharp(listener, scenario);
  listen_to_fabric(listener, scenario);
}

}  // namespace stagecraft
