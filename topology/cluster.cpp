#include "topology/cluster.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "base/ceil_div.hpp"
#include "base/check.hpp"
#include "topology/cluster_links.hpp"

namespace stagecraft {
namespace {

// The number of NICs that serve the node's first `gpus` GPUs.
int nics_serving(const NodeSpec& node, const FabricSpec& fabric, int gpus) {
  const std::int64_t all = fabric.nics_of(node);
  return static_cast<int>(ceil_div(all * gpus, node.gpus));
}

// The part of `network`, on `nics` equal NICs, that `gpus` get which send equally much.
Bandwidth even_part(Bandwidth network, int nics, int gpus) {
  if (gpus % nics == 0) return network;
  const int fullest = gpus / nics + 1;
  return static_cast<double>(gpus) / (nics * fullest) * network;
}

}  // namespace

Cluster::Cluster(const ClusterSpec& spec) : spec_(spec) {
  SC_CHECK(spec.gpu_count() > 0, "a cluster has GPUs");
  SC_CHECK(spec.gpus_used == 0 || (spec.groups.size() == 1 && spec.groups[0].count == 1),
           "only one node can be used in part");
  server_of_gpu_.reserve(static_cast<std::size_t>(spec.gpu_count()));
  for (std::size_t group = 0; group < spec.groups.size(); ++group) add_servers(static_cast<int>(group));
  if (node_count() > 1) add_fabric();
  graph_.index();
  touched_.resize(servers_.size());
  apply_exceptions();
}

void Cluster::add_servers(int group) {
  const NodeSpec& spec = spec_.groups[static_cast<std::size_t>(group)].node;
  SC_CHECK(spec.gpus > 0 && spec_.gpus_used <= spec.gpus, "a node has the GPUs that are used of it");
  const int gpus = spec_.gpus_of(spec);
  const int nics = nics_serving(spec, spec_.fabric, gpus);
  SC_CHECK(nics > 0, "a node has a NIC");
  const int vertices = std::min(nics, gpus);
  NvSwitch domain;
  for (int i = 0; i < spec_.groups[static_cast<std::size_t>(group)].count; ++i) {
    const int index = static_cast<int>(servers_.size());
    const bool shared = spec.nvlink_domain > 1;
    const bool first = i % spec.nvlink_domain == 0;
    if (first) nodes_.push_back({.first_gpu = gpu_count()});
    if (first && shared) domain = add_nvswitch(graph_, spec, -1, node_count() - 1);
    const Bandwidth network = nics * spec_.fabric.nic_rate_of(spec);
    const Bandwidth even = even_part(network, vertices, gpus);
    servers_.push_back({.group = group,
                        .node = node_count() - 1,
                        .first_gpu = gpu_count(),
                        .gpus = gpus,
                        .first_of_whole = gpu_count(),
                        .nics = vertices,
                        .network = network,
                        .even = even,
                        .inside = ServerGraph(graph_, spec, {.server = index, .gpus = gpus, .nics = vertices},
                                              shared ? &domain : nullptr)});
    nodes_.back().gpus += gpus;
    nodes_.back().network += network;
    nodes_.back().even += even;
    server_of_gpu_.insert(server_of_gpu_.end(), static_cast<std::size_t>(gpus), index);
  }
}

void Cluster::add_fabric() {
  int nics = 1;
  for (const Server& server : servers_) nics = std::max(nics, server.nics);
  fabric_.emplace(spec_.fabric, static_cast<int>(servers_.size()), nics);
  fabric_->add_entries(graph_);
  std::vector<Bandwidth> down;
  for (std::size_t i = 0; i < servers_.size(); ++i)
    for (int nic = 0; nic < servers_[i].nics; ++nic) {
      SC_CHECK(servers_[i].nics >= spec_.fabric.planes, "a node has a NIC in every plane");
      const Bandwidth rate = servers_[i].network / servers_[i].nics;
      const Entry entry = fabric_->entry_of(static_cast<int>(i), nic);
      graph_.add_cable(servers_[i].inside.nic(nic), fabric_->vertex_of(entry), rate,
                       spec_.fabric.switch_latency);
      if (down.size() <= static_cast<std::size_t>(entry)) down.resize(static_cast<std::size_t>(entry) + 1);
      down[static_cast<std::size_t>(entry)] += rate;
    }
  fabric_->add_cables(graph_, down);
}

void Cluster::apply_exceptions() {
  if (spec_.links.empty()) return;
  for (const VertexId end : apply_links(graph_, spec_.links))
    if (const int server = graph_.vertex(end).node; server >= 0)
      touched_[static_cast<std::size_t>(server)] = true;
}

Cluster Cluster::part(std::span<const int> servers) const {
  Cluster part(*this);
  part.spec_ = part_of(spec_, servers);
  part.server_of_gpu_.clear();
  part.nodes_.clear();
  for (Server& server : part.servers_) server.gpus = 0;
  int group = -1, left = 0, node = -1;
  for (const int index : servers) {
    const Server& whole = servers_.at(static_cast<std::size_t>(index));
    Server& server = part.servers_[static_cast<std::size_t>(index)];
    SC_CHECK(server.gpus == 0, "a part has each server once");
    if (left == 0) left = part.spec_.groups[static_cast<std::size_t>(++group)].count;
    --left;
    if (part.nodes_.empty() || whole.node != node) part.nodes_.push_back({.first_gpu = part.gpu_count()});
    node = whole.node;
    server.group = group;
    server.node = part.node_count() - 1;
    server.first_gpu = part.gpu_count();
    server.gpus = whole.gpus;
    part.nodes_.back().gpus += whole.gpus;
    part.nodes_.back().network += whole.network;
    part.nodes_.back().even += whole.even;
    part.server_of_gpu_.insert(part.server_of_gpu_.end(), static_cast<std::size_t>(whole.gpus), index);
  }
  return part;
}

const NodeSpec& Cluster::spec_of(const Server& server) const {
  return spec_.groups[static_cast<std::size_t>(server.group)].node;
}

const NodeSpec& Cluster::node_spec_of(DeviceId gpu) const {
  return spec_of(server(gpu));
}

Bandwidth Cluster::gpu_network(DeviceId gpu) const {
  const Bandwidth nic = server(gpu).network / server(gpu).nics;
  const Bandwidth pcie = node_spec_of(gpu).pcie;
  return pcie > Bandwidth(0) ? std::min(nic, pcie) : nic;
}

int Cluster::leaf_of(DeviceId gpu) const {
  return spec_.fabric.has_leaves() ? server_of(gpu) / spec_.fabric.nodes_per_leaf : 0;
}

Bandwidth Cluster::leaf_uplinks(DeviceId gpu) const {
  const int size = spec_.fabric.nodes_per_leaf, first = leaf_of(gpu) * size;
  const int last = std::min(first + size, server_count());
  Bandwidth down{};
  for (int i = first; i < last; ++i) down += servers_[static_cast<std::size_t>(i)].network;
  return down * (static_cast<double>(size) / (last - first) / spec_.fabric.oversubscription);
}

std::string Cluster::name_of(DeviceId gpu) const {
  return graph_.name(vertex_of(gpu));
}

Cluster::Rail Cluster::rail_between(DeviceId a, DeviceId b) const {
  const Server& from = server(a);
  const ServerGraph& inside = from.inside;
  Rail rail{.slot = slot_of(a),
            .from_nic = inside.nic_of(slot_of(a)),
            .to_nic = server(b).inside.nic_of(slot_of(b))};
  const bool changes_rail = fabric_->entry_of(0, rail.from_nic) != fabric_->entry_of(0, rail.to_nic);
  const bool changes_plane = fabric_->plane_of(rail.from_nic) != fabric_->plane_of(rail.to_nic);
  if (!changes_rail) return rail;
  int nic = rail.to_nic;
  if (nic >= from.nics && changes_plane) nic = fabric_->plane_of(rail.to_nic);
  if (!changes_plane && (spec_of(from).nvlink <= Bandwidth(0) || nic >= from.nics)) return rail;
  while (inside.nic_of(rail.slot) > nic) --rail.slot;
  while (inside.nic_of(rail.slot) < nic) ++rail.slot;
  rail.from_nic = nic;
  return rail;
}

void Cluster::walk(Ways& ways, DeviceId a, DeviceId b) const {
  const ServerGraph &from = server(a).inside, &to = server(b).inside;
  if (server_of(a) == server_of(b)) return from.walk(ways, slot_of(a), slot_of(b));
  if (node_of(a) == node_of(b)) return ServerGraph::walk_across(ways, from, slot_of(a), to, slot_of(b));
  const Rail rail = rail_between(a, b);
  if (rail.slot != slot_of(a)) from.walk(ways, slot_of(a), rail.slot);
  from.walk_out(ways, rail.slot, rail.from_nic);
  const Entry up = fabric_->entry_of(server_of(a), rail.from_nic);
  const Entry down = fabric_->entry_of(server_of(b), rail.to_nic);
  ways.hop(from.nic(rail.from_nic), fabric_->vertex_of(up));
  fabric_->walk(ways, up, down);
  ways.hop(fabric_->vertex_of(down), to.nic(rail.to_nic));
  to.walk_in(ways, rail.to_nic, slot_of(b));
}

Ways Cluster::ways_between(DeviceId a, DeviceId b, Routing routing) const {
  const auto seed = static_cast<std::uint64_t>(spec_.fabric.routing_seed);
  const std::uint64_t hash = mixed(mixed(mixed(0, seed), address_of(a)), address_of(b));
  Ways ways(graph_, routing, hash);
  if (a == b) return ways;
  walk(ways, a, b);
  if (!ways.broken()) return ways;
  Ways sought(graph_, routing, hash);
  SC_CHECK(detour(sought, vertex_of(a), vertex_of(b)), "a loader refuses clusters that fall apart");
  return sought;
}

std::vector<EdgeId> Cluster::route(DeviceId a, DeviceId b) const {
  const Ways ways = ways_between(a, b, Routing::kEcmp);
  std::vector<EdgeId> links;
  for (const LinkShare& share : ways.shares()) links.push_back(share.link);
  return links;
}

std::vector<LinkShare> Cluster::spread(DeviceId a, DeviceId b) const {
  const Ways ways = ways_between(a, b, spec_.fabric.routing);
  std::vector<LinkShare> shares = ways.shares();
  std::ranges::stable_sort(shares, {}, &LinkShare::link);
  std::vector<LinkShare> merged;
  for (const LinkShare& share : shares) {
    if (!merged.empty() && merged.back().link == share.link)
      merged.back().share += share.share;
    else
      merged.push_back(share);
  }
  return merged;
}

bool Cluster::between_nodes(EdgeId id) const {
  return is_fabric_switch(graph_.vertex(link(id).from).kind) ||
         is_fabric_switch(graph_.vertex(link(id).to).kind);
}

int Cluster::switches_between(DeviceId a, DeviceId b) const {
  if (node_of(a) == node_of(b)) return 0;
  int switches = 0;
  for (const EdgeId id : route(a, b)) switches += is_fabric_switch(graph_.vertex(link(id).to).kind) ? 1 : 0;
  return switches;
}

// Enough GPUs to find a pair without a way: all of the servers that lack a link, and of the others, which
// reach each other inside, the first of two nodes of those that hang on the same switches.
std::vector<DeviceId> Cluster::representatives() const {
  std::vector<DeviceId> some;
  std::map<std::vector<Entry>, std::set<int>> nodes_seen;  // nodes by the switches that they hang on
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const Server& server = servers_[i];
    if (server.gpus == 0) continue;
    if (touched_[i]) {
      for (int slot = 0; slot < server.gpus; ++slot) some.push_back(device_of(server.first_gpu + slot));
      continue;
    }
    std::vector<Entry> entries;
    for (int nic = 0; fabric_ && nic < server.nics; ++nic)
      entries.push_back(fabric_->entry_of(static_cast<int>(i), nic));
    std::set<int>& seen = nodes_seen[std::move(entries)];
    if (seen.size() < 2 && seen.insert(server.node).second) some.push_back(device_of(server.first_gpu));
  }
  return some;
}

std::optional<std::pair<DeviceId, DeviceId>> Cluster::unreachable() const {
  const bool missing =
      std::ranges::any_of(spec_.links, [](const LinkException& exception) { return exception.missing; });
  if (!missing) return std::nullopt;
  const std::vector<DeviceId> some = representatives();
  for (const DeviceId a : some) {
    const std::vector<bool> reached = reachable_from(graph_, vertex_of(a));
    for (const DeviceId b : some)
      if (!reached[vertex_of(b).index()]) return std::pair(a, b);
  }
  return std::nullopt;
}

}  // namespace stagecraft
