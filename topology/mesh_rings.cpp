#include "topology/mesh_rings.hpp"

#include <algorithm>
#include <utility>

namespace stagecraft {
namespace {

int links_between(const Cluster& cluster, DeviceId a, DeviceId b) {
  const int first = cluster.first_gpu_of_server(cluster.server_of(a));
  const auto place = [&](DeviceId gpu) { return static_cast<int>(gpu.value()) - first; };
  const std::pair<int, int> wanted = std::minmax(place(a), place(b));
  int links = 0;
  for (const NvlinkPair& pair : cluster.node_spec_of(a).nvlink_pairs)
    if (std::pair<int, int>(std::minmax(pair.a, pair.b)) == wanted) links += pair.links;
  return links;
}

// `bytes` from a member to the others by its links to them; empty where it has none.
std::vector<Transfer> by_links(const Cluster& cluster, DeviceId from, const std::vector<DeviceId>& members,
                               double bytes) {
  std::vector<Transfer> transfers;
  double all = 0;
  for (const DeviceId to : members) {
    const int links = to == from ? 0 : links_between(cluster, from, to);
    if (links > 0) transfers.push_back({from, to, bytes * links});
    all += links;
  }
  for (Transfer& transfer : transfers) transfer.bytes /= all;
  return transfers;
}

}  // namespace

void spread_over_mesh(const Cluster& cluster, const std::vector<DeviceId>& members,
                      std::vector<Transfer>& transfers) {
  if (members.size() < 2 || cluster.node_spec_of(members.front()).nvlink_pairs.empty()) return;
  const auto inside = [&, node = cluster.node_of(members.front())](const Transfer& transfer) {
    return cluster.node_of(transfer.from) == node && cluster.node_of(transfer.to) == node;
  };
  std::vector<Transfer> spread;
  for (const DeviceId from : members) {
    double bytes = 0;
    for (const Transfer& transfer : transfers)
      if (transfer.from == from && inside(transfer)) bytes += transfer.bytes;
    const std::vector<Transfer> own = by_links(cluster, from, members, bytes);
    if (own.empty()) return;
    spread.insert(spread.end(), own.begin(), own.end());
  }
  std::erase_if(transfers, inside);
  transfers.insert(transfers.end(), spread.begin(), spread.end());
}

}  // namespace stagecraft
