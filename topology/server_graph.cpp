#include "topology/server_graph.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "base/check.hpp"

namespace stagecraft {

NvSwitch add_nvswitch(FabricGraph& graph, const NodeSpec& spec, int server, int index) {
  Vertex vertex{.kind = VertexKind::kNvSwitch, .node = server, .index = index, .one = server >= 0};
  const VertexId in = graph.add_vertex(vertex);
  if (spec.nvswitch <= Bandwidth(0)) return {.in = in, .out = in};
  vertex.kind = VertexKind::kNvSwitchOut;
  const VertexId out = graph.add_vertex(vertex);
  graph.add_link(in, out, spec.nvswitch, Duration::zero());
  return {.in = in, .out = out};
}

VertexId ServerGraph::add(FabricGraph& graph, VertexKind kind, int count, bool one) const {
  SC_CHECK(count > 0, "a part of a server is there");
  const VertexId first = graph.add_vertex({.kind = kind, .node = place_.server, .index = 0, .one = one});
  for (int i = 1; i < count; ++i)
    graph.add_vertex({.kind = kind, .node = place_.server, .index = i, .one = false});
  return first;
}

ServerGraph::ServerGraph(FabricGraph& graph, const NodeSpec& spec, Place place, const NvSwitch* domain)
    : place_(place),
      has_switch_(spec.nvlink > Bandwidth(0) && spec.nvlink_pairs.empty()),
      has_mesh_(!spec.nvlink_pairs.empty()),
      per_pcie_switch_(spec.gpus_per_pcie_switch),
      sockets_(spec.sockets),
      node_gpus_(spec.gpus) {
  SC_CHECK(place.nics <= place.gpus, "each NIC is some GPU's");
  const bool has_root = !has_switch_ || per_pcie_switch_ > 0;
  gpu_ = add(graph, VertexKind::kGpu, place.gpus);
  if (has_switch_) nvswitch_ = domain != nullptr ? *domain : add_nvswitch(graph, spec, place.server, 0);
  const int roots = socket_of(place.gpus - 1) + 1;
  if (has_root) root_ = add(graph, VertexKind::kPcieRoot, roots, roots == 1);
  nic_ = add(graph, VertexKind::kNic, place.nics);
  if (per_pcie_switch_ > 0)
    pcie_switch_ = add(graph, VertexKind::kPcieSwitch, ceil_div(place.gpus, per_pcie_switch_));
  const Duration root_latency = has_mesh_ ? Duration::zero() : spec.nvlink_latency;
  for (int i = 0; i < place.gpus; ++i) {
    if (has_switch_) {
      graph.add_link(gpu(i), nvswitch_.in, spec.nvlink, spec.nvlink_latency);
      graph.add_link(nvswitch_.out, gpu(i), spec.nvlink, spec.nvlink_latency);
    } else if (per_pcie_switch_ == 0) {
      graph.add_cable(gpu(i), nth(root_, socket_of(i)), spec.pcie, root_latency);
    }
    if (per_pcie_switch_ == 0) graph.add_cable(gpu(i), nic(nic_of(i)), spec.pcie, Duration::zero());
  }
  if (has_root) add_pcie(graph, spec);
  if (has_mesh_) add_mesh(graph, spec);
}

void ServerGraph::add_pcie(FabricGraph& graph, const NodeSpec& spec) {
  const int roots = socket_of(place_.gpus - 1) + 1;
  for (int a = 0; a < roots; ++a)
    for (int b = a + 1; b < roots; ++b)
      graph.add_cable(nth(root_, a), nth(root_, b), spec.socket_link, Duration::zero());
  if (per_pcie_switch_ == 0) return;
  const Duration latency = spec.nvlink > Bandwidth(0) ? Duration::zero() : spec.nvlink_latency;
  for (int i = 0; i < place_.gpus; ++i)
    graph.add_cable(gpu(i), nth(pcie_switch_, i / per_pcie_switch_), spec.pcie, latency);
  for (int i = 0; i < place_.nics; ++i)
    graph.add_cable(nic(i), nth(pcie_switch_, first_slot_of(i) / per_pcie_switch_), spec.pcie,
                    Duration::zero());
  for (int first = 0; first < place_.gpus; first += per_pcie_switch_)
    graph.add_cable(nth(pcie_switch_, first / per_pcie_switch_), nth(root_, socket_of(first)), spec.uplink(),
                    Duration::zero());
}

void ServerGraph::add_mesh(FabricGraph& graph, const NodeSpec& spec) const {
  std::vector<int> links(static_cast<std::size_t>(spec.gpus));
  for (const NvlinkPair& pair : spec.nvlink_pairs)
    for (const int end : {pair.a, pair.b}) links.at(static_cast<std::size_t>(end)) += pair.links;
  const Bandwidth one = spec.nvlink / *std::ranges::max_element(links);
  for (const NvlinkPair& pair : spec.nvlink_pairs)
    if (std::max(pair.a, pair.b) < place_.gpus)
      graph.add_cable(gpu(pair.a), gpu(pair.b), pair.links * one, spec.nvlink_latency);
}

std::vector<VertexId> ServerGraph::climb(VertexId start, int slot) const {
  std::vector<VertexId> up = {start};
  if (per_pcie_switch_ > 0) {
    const int first = slot / per_pcie_switch_ * per_pcie_switch_;
    up.push_back(nth(pcie_switch_, slot / per_pcie_switch_));
    slot = first;  // a PCIe switch hangs on one root
  }
  up.push_back(nth(root_, socket_of(slot)));
  return up;
}

void ServerGraph::walk_pcie(Ways& ways, const std::vector<VertexId>& up,
                            const std::vector<VertexId>& down) const {
  std::vector<VertexId> way = up;
  auto rest = down.rbegin();
  // Both climbs are equally long; their common part at the top is removed.
  while (way.size() >= 2 && rest + 1 != down.rend() && way[way.size() - 2] == *(rest + 1)) {
    way.pop_back();
    ++rest;
  }
  if (way.back() == *rest) ++rest;
  way.insert(way.end(), rest, down.rend());
  ways.walk(way);
}

bool ServerGraph::walk_mesh(Ways& ways, int from, int to) const {
  const FabricGraph& graph = ways.graph();
  if (graph.find(gpu(from), gpu(to))) {
    ways.hop(gpu(from), gpu(to));
    return true;
  }
  std::vector<VertexId> between;
  for (int i = 0; i < place_.gpus; ++i)
    if (graph.find(gpu(from), gpu(i)) && graph.find(gpu(i), gpu(to))) between.push_back(gpu(i));
  if (between.empty()) return false;
  const auto chosen = ways.choices(static_cast<int>(between.size()), 3);
  for (int i = chosen.first; i < chosen.last; ++i)
    ways.walk({gpu(from), between[static_cast<std::size_t>(i)], gpu(to)}, chosen.share);
  return true;
}

void ServerGraph::walk(Ways& ways, int from, int to) const {
  if (has_switch_) return walk_across(ways, *this, from, *this, to);
  if (has_mesh_ && walk_mesh(ways, from, to)) return;
  walk_pcie(ways, climb(gpu(from), from), climb(gpu(to), to));
}

void ServerGraph::walk_across(Ways& ways, const ServerGraph& from, int slot, const ServerGraph& to,
                              int to_slot) {
  SC_CHECK(from.has_switch_ && from.nvswitch_.in == to.nvswitch_.in, "a domain has one NVSwitch");
  ways.hop(from.gpu(slot), from.nvswitch_.in);
  if (from.nvswitch_.in != from.nvswitch_.out) ways.hop(from.nvswitch_.in, from.nvswitch_.out);
  ways.hop(from.nvswitch_.out, to.gpu(to_slot));
}

void ServerGraph::walk_out(Ways& ways, int slot, int nic) const {
  if (per_pcie_switch_ == 0) return ways.hop(gpu(slot), this->nic(nic));
  walk_pcie(ways, climb(gpu(slot), slot), climb(this->nic(nic), first_slot_of(nic)));
}

void ServerGraph::walk_in(Ways& ways, int nic, int slot) const {
  if (per_pcie_switch_ == 0) return ways.hop(this->nic(nic), gpu(slot));
  walk_pcie(ways, climb(this->nic(nic), first_slot_of(nic)), climb(gpu(slot), slot));
}

}  // namespace stagecraft
