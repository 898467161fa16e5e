#include "topology/collective_flows.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {
namespace {

std::vector<LinkLoad> loads_of(const Cluster& cluster, const std::vector<Transfer>& transfers) {
  std::vector<LinkLoad> loads;
  for (const Transfer& transfer : transfers)
    for (const LinkShare& way : cluster.spread(transfer.from, transfer.to))
      loads.push_back({way.link, way.share * transfer.bytes});
  std::stable_sort(loads.begin(), loads.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.link < b.link; });
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
                                       CollectiveKind kind, std::string_view algorithm, Bytes size) {
  return loads_of(cluster, collective_transfers(cluster, members, kind, algorithm, size));
}

std::vector<LinkLoad> message_loads(const Cluster& cluster, DeviceId from, DeviceId to, Bytes size) {
  SC_CHECK(size >= Bytes(0), "a message has no negative bytes");
  if (from == to || size == Bytes(0)) return {};
  return loads_of(cluster, {{from, to, static_cast<double>(size.count())}});
}

}  // namespace stagecraft
