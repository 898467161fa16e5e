// The cluster as a graph: GPUs, NVSwitches, NICs and switches, joined by links with capacity and latency.
//
// Immutable once built. The closed-form network only asks it for bandwidths and placements; a flow network
// routes over the same graph, so that one topology serves both fidelities. Servers are built one by one:
// 1,024 GPUs in 128 servers are 2,184 vertices and 6,158 links.
//
//   node        the first tier: GPUs that meet without the network. A server, or with `nvlink_domain` those
//               servers that share NVSwitches: 18 servers of 4 GPUs are one node of GB200 NVL72.
//   server      see server_graph.hpp. Servers with more NICs than GPUs have one NIC vertex per GPU that
//               bundles what the GPU can use.
//   fabric      see fabric.hpp; one node has none. Single switch: all NICs on one leaf. Fat tree: the NICs of
//               `nodes_per_leaf` servers on one leaf. Rail-optimised: NIC i of these servers on leaf i. By
//               default leaves meet in one spine, which stands for all spine switches: adaptive routing
//               shares them like a fluid.
//   source      docs of NVIDIA DGX SuperPOD for rails and leaves; oversubscription as capacity of uplinks
//               over downlinks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "topology/cluster_spec.hpp"
#include "topology/fabric.hpp"
#include "topology/fabric_graph.hpp"
#include "topology/server_graph.hpp"

namespace stagecraft {

using DeviceId = Id<struct DeviceTag>;  // a GPU, 0 .. gpu_count-1: server by server
[[nodiscard]] constexpr DeviceId device_of(int gpu) {
  return DeviceId(static_cast<std::uint32_t>(gpu));
}

class Cluster {
 public:
  // throws InternalError on what loaders reject: no servers, a server without GPUs or NICs, `gpus_used`
  // beyond one server, a fabric that does not fit, exceptions for links that there are not.
  explicit Cluster(const ClusterSpec& spec);

  // The cluster of a job on some of the servers: only their GPUs and nodes, numbered from 0 in the order of
  // the list, and described by spec(). Servers, links and their names are those of the whole cluster. The
  // part of the servers 0, 1, 2, … is the cluster itself.
  //   servers   each once; those of one NVLink domain side by side.
  [[nodiscard]] Cluster part(std::span<const int> servers) const;

  [[nodiscard]] const ClusterSpec& spec() const { return spec_; }
  [[nodiscard]] const FabricGraph& graph() const { return graph_; }
  [[nodiscard]] int gpu_count() const { return static_cast<int>(server_of_gpu_.size()); }
  [[nodiscard]] int node_count() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] int node_of(DeviceId gpu) const { return server(gpu).node; }
  [[nodiscard]] int server_of(DeviceId gpu) const { return server_of_gpu_.at(gpu.index()); }
  [[nodiscard]] int node_of_server(int server) const {
    return servers_.at(static_cast<std::size_t>(server)).node;
  }
  [[nodiscard]] const NodeSpec& node_spec_of(DeviceId gpu) const;

  // Servers are the nodes of listings and names. Servers outside this part of the cluster have no GPUs.
  [[nodiscard]] int server_count() const { return static_cast<int>(servers_.size()); }
  [[nodiscard]] int first_gpu_of_server(int server) const {
    return servers_.at(static_cast<std::size_t>(server)).first_gpu;
  }
  [[nodiscard]] int gpus_in_server(int server) const {
    return servers_.at(static_cast<std::size_t>(server)).gpus;
  }

  // GPUs of a node are consecutive: first_gpu(node) .. first_gpu(node) + gpus_in(node) - 1.
  [[nodiscard]] int first_gpu(int node) const { return at(node).first_gpu; }
  [[nodiscard]] int gpus_in(int node) const { return at(node).gpus; }

  // Network bandwidth out of the node of `gpu`, all its NICs together (the fabric's override counts).
  [[nodiscard]] Bandwidth node_network(DeviceId gpu) const { return at(node_of(gpu)).network; }
  // Bandwidth of the node where `senders` of its GPUs send equally much, each through its nearest NIC. Where
  // all of them send, the NIC that serves most GPUs decides: 8 GPUs get 4 of 6 NICs.
  [[nodiscard]] Bandwidth node_network(DeviceId gpu, int senders) const {
    const Node& node = at(node_of(gpu));
    return senders >= node.gpus ? node.even : node.network;
  }
  // Bandwidth of one GPU alone out of its node: its nearest NIC, or its share where NICs outnumber GPUs; at
  // most its PCIe bandwidth.
  [[nodiscard]] Bandwidth gpu_network(DeviceId gpu) const;

  // In a tree of switches: the leaf, or group of rail switches, of the server of `gpu`; 0 in other fabrics.
  [[nodiscard]] int leaf_of(DeviceId gpu) const;
  // Bandwidth of all uplinks of that leaf together (fabric.hpp).
  [[nodiscard]] Bandwidth leaf_uplinks(DeviceId gpu) const;

  // The route that NCCL uses, as links from `a` to `b`; empty when a == b. Of several equal routes the one
  // that ECMP takes. The rules below give it; a search runs only where a missing link breaks the rule.
  //   same node       over NVLink, else PCIe.
  //   other node      GPU, nearest NIC, switches of the fabric, NIC, GPU.
  //   rail-optimised  with NVLink first to the GPU on the rail of `b` (NCCL's PXN), so that rails never meet
  //                   in the spine below one group of rail switches.
  //   planes          first to a GPU whose NIC is in the plane where `b` receives.
  // throws InternalError where there is no way; see unreachable().
  [[nodiscard]] std::vector<EdgeId> route(DeviceId a, DeviceId b) const;

  [[nodiscard]] std::size_t link_count() const { return graph_.link_count(); }
  [[nodiscard]] const Link& link(EdgeId id) const { return graph_.link(id); }
  // "node 3 gpu 2 -> nvswitch", "node 3 nic 1 -> leaf 0": `node` is the server, and not named twice.
  [[nodiscard]] std::string link_name(EdgeId id) const { return graph_.name(id); }
  // Does it lead to or from a switch of the fabric? The others are inside a node.
  [[nodiscard]] bool between_nodes(EdgeId id) const;

  // Distribution of the bytes from `a` to `b` over links: inflow equals outflow at every vertex but both
  // ends. Ascending by link; empty when a == b. Adaptive routing shares all equal routes, ECMP takes one.
  // throws InternalError where there is no route.
  [[nodiscard]] std::vector<LinkShare> spread(DeviceId a, DeviceId b) const;

  // Switches of the fabric on that way: 0 in a node, 1 below one leaf, 3 through the spine, 5 through a core.
  [[nodiscard]] int switches_between(DeviceId a, DeviceId b) const;

  // Two GPUs between which the missing links left no way, the first such pair by the first GPU; nullopt
  // without missing links.
  [[nodiscard]] std::optional<std::pair<DeviceId, DeviceId>> unreachable() const;
  [[nodiscard]] std::string name_of(DeviceId gpu) const;  // "node 3 gpu 2"

 private:
  struct Server {
    int group = 0;
    int node = 0;
    int first_gpu = 0;
    int gpus = 0;            // 0: not of this part of the cluster
    int first_of_whole = 0;  // number of its first GPU in the whole cluster, for ECMP's hash
    int nics = 0;            // NIC vertices
    Bandwidth network{};
    Bandwidth even{};  // network bandwidth per GPU where all GPUs send
    ServerGraph inside;
  };
  struct Node {
    int first_gpu = 0;
    int gpus = 0;
    Bandwidth network{}, even{};
  };

  [[nodiscard]] const Node& at(int node) const { return nodes_.at(static_cast<std::size_t>(node)); }
  [[nodiscard]] const Server& server(DeviceId gpu) const {
    return servers_[static_cast<std::size_t>(server_of(gpu))];
  }
  [[nodiscard]] int slot_of(DeviceId gpu) const {
    return static_cast<int>(gpu.value()) - server(gpu).first_gpu;
  }
  [[nodiscard]] std::uint64_t address_of(DeviceId gpu) const {
    return static_cast<std::uint64_t>(server(gpu).first_of_whole + slot_of(gpu));
  }
  [[nodiscard]] VertexId vertex_of(DeviceId gpu) const { return server(gpu).inside.gpu(slot_of(gpu)); }
  [[nodiscard]] const NodeSpec& spec_of(const Server& server) const;

  // The GPU slot in a's server whose NIC carries traffic from a to b, and the NIC that b receives on.
  struct Rail {
    int slot = 0;
    int from_nic = 0;
    int to_nic = 0;
  };
  [[nodiscard]] Rail rail_between(DeviceId a, DeviceId b) const;
  [[nodiscard]] Ways ways_between(DeviceId a, DeviceId b, Routing routing) const;
  void walk(Ways& ways, DeviceId a, DeviceId b) const;

  void add_servers(int group);
  void add_fabric();
  void apply_exceptions();
  [[nodiscard]] std::vector<DeviceId> representatives() const;

  ClusterSpec spec_;
  FabricGraph graph_;
  std::vector<int> server_of_gpu_;
  std::vector<Server> servers_;
  std::vector<Node> nodes_;
  std::optional<Fabric> fabric_;  // set for two nodes or more
  std::vector<bool> touched_;     // servers with a missing link
};

}  // namespace stagecraft
