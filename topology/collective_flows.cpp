#include "topology/collective_flows.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {
namespace {

std::vector<LinkLoad> loads_of(const Cluster& cluster, const std::vector<Transfer>& transfers,
                               TierEfficiency efficiency) {
  std::vector<LinkLoad> loads;
  for (const Transfer& transfer : transfers) {
    const std::vector<LinkShare> ways = cluster.spread(transfer.from, transfer.to);
    const bool network =
        std::ranges::any_of(ways, [&](const LinkShare& way) { return cluster.between_nodes(way.link); });
    const double bytes = transfer.bytes / (network ? efficiency.network : efficiency.node);
    for (const LinkShare& way : ways) loads.push_back({way.link, way.share * bytes});
  }
  std::ranges::stable_sort(loads, {}, &LinkLoad::link);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (kept > 0 && loads[kept - 1].link == loads[i].link)
      loads[kept - 1].bytes += loads[i].bytes;
    else
      loads[kept++] = loads[i];
  }
  loads.resize(kept);
  return loads;
}

}  // namespace

std::vector<LinkLoad> collective_loads(const Cluster& cluster, std::span<const DeviceId> members,
                                       CollectiveKind kind, std::string_view algorithm, Bytes size,
                                       TierEfficiency efficiency) {
  return loads_of(cluster, collective_transfers(cluster, members, kind, algorithm, size), efficiency);
}

std::vector<LinkLoad> message_loads(const Cluster& cluster, DeviceId from, DeviceId to, Bytes size,
                                    TierEfficiency efficiency) {
  SC_CHECK(size >= Bytes(0), "a message has no negative bytes");
  if (from == to || size == Bytes(0)) return {};
  return loads_of(cluster, {{from, to, static_cast<double>(size.count())}}, efficiency);
}

}  // namespace stagecraft
