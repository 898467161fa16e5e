#include "sim/lower/background.hpp"

#include <vector>

#include "base/check.hpp"

namespace stagecraft {
namespace {

std::vector<DeviceId> gpus_of(const Cluster& cluster, const NodePlace& place) {
  SC_CHECK(place.node >= 0 && place.node < cluster.server_count(),
           "the loader compares places with the cluster");
  const int first = cluster.first_gpu_of_server(place.node), count = cluster.gpus_in_server(place.node);
  std::vector<DeviceId> gpus;
  for (int slot = 0; slot < count; ++slot)
    if (!place.gpu || *place.gpu == slot) gpus.emplace_back(static_cast<std::uint32_t>(first + slot));
  SC_CHECK(!gpus.empty(), "the loader compares places with the cluster");
  return gpus;
}

}  // namespace

IdVector<EdgeId, Bandwidth> background_load(const Cluster& cluster, std::span<const BackgroundSpec> traffic) {
  IdVector<EdgeId, Bandwidth> load(cluster.link_count());
  for (const BackgroundSpec& spec : traffic) {
    const std::vector<DeviceId> from = gpus_of(cluster, spec.from), to = gpus_of(cluster, spec.to);
    const double pairs = static_cast<double>(from.size()) * static_cast<double>(to.size());
    for (const DeviceId a : from)
      for (const DeviceId b : to)
        for (const LinkShare& way : cluster.spread(a, b)) load[way.link] += spec.rate * (way.share / pairs);
  }
  return load;
}

}  // namespace stagecraft
