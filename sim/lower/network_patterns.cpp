#include "sim/lower/network_patterns.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.hpp"
#include "topology/collective_flows.hpp"

namespace stagecraft {
namespace {

// Loads are proportional to the size, so any size tells the pattern.
constexpr Bytes kReference = Bytes(std::int64_t{1} << 30);

// Sums loads of many groups, link by link.
class LoadSum {
 public:
  explicit LoadSum(const Cluster& cluster) : sum_(cluster.link_count()) {}

  void add(const std::vector<LinkLoad>& loads) {
    for (const LinkLoad& load : loads) {
      double& sum = sum_[load.link];
      if (sum == 0) used_.push_back(load.link);
      sum += load.bytes;
    }
  }

  // The pattern per byte: loads divided by `bytes`.
  Pattern over(double bytes) && {
    std::sort(used_.begin(), used_.end());
    Pattern pattern;
    pattern.loads.reserve(used_.size());
    for (const EdgeId link : used_) pattern.loads.push_back({link, sum_[link] / bytes});
    return pattern;
  }

 private:
  IdVector<EdgeId, double> sum_;
  std::vector<EdgeId> used_;
};

PatternKey key_of(std::pair<int, int> ranks, int group, CollectiveKind kind, const CollectiveCost& cost) {
  return {.from = ranks.first,
          .to = ranks.second,
          .group = group,
          .kind = kind,
          .algorithm = std::string(cost.algorithm),
          .node_efficiency = cost.node_efficiency,
          .network_efficiency = cost.network_efficiency};
}

TierEfficiency efficiency_of(const PatternKey& key) {
  return {.node = key.node_efficiency, .network = key.network_efficiency};
}

PatternTable& patterns_of(const Network& network) {
  SC_CHECK(network.patterns != nullptr, "patterns are of networks whose links are shared");
  return *network.patterns;
}

}  // namespace

PatternId collective_pattern(const Network& network, int pipeline_rank, RankGroup group, CollectiveKind kind,
                             const CollectiveCost& cost) {
  const PatternKey key = key_of({pipeline_rank, pipeline_rank}, static_cast<int>(group), kind, cost);
  return patterns_of(network).of(key, [&] {
    LoadSum sum(network.cluster);
    int ranks = 1;
    for (const std::vector<int>& members :
         all_groups(network, pipeline_members(network.plan, pipeline_rank), group)) {
      // A rail of a group inside one node has one rank.
      ranks = std::max(ranks, static_cast<int>(members.size()));
      sum.add(collective_loads(network.cluster, devices_of(members), kind, cost.algorithm, kReference,
                               efficiency_of(key)));
    }
    return std::move(sum).over(bus_factor(kind, ranks) * static_cast<double>(kReference.count()));
  });
}

PatternId message_pattern(const Network& network, int from, int to, const CollectiveCost& cost) {
  const PatternKey key = key_of({from, to}, -1, CollectiveKind::kSendReceive, cost);
  return patterns_of(network).of(key, [&] {
    LoadSum sum(network.cluster);
    const std::vector<DeviceId> senders = devices_of(pipeline_members(network.plan, from));
    const std::vector<DeviceId> receivers = devices_of(pipeline_members(network.plan, to));
    for (std::size_t i = 0; i < senders.size(); ++i)
      sum.add(message_loads(network.cluster, senders[i], receivers[i], kReference, efficiency_of(key)));
    return std::move(sum).over(static_cast<double>(kReference.count()));
  });
}

PatternId pair_pattern(const Network& network, int from, int to, const CollectiveCost& cost) {
  const PatternKey key = key_of({from, to}, -1, CollectiveKind::kAllReduce, cost);
  return patterns_of(network).of(key, [&] {
    LoadSum sum(network.cluster);
    const std::vector<DeviceId> firsts = devices_of(pipeline_members(network.plan, from));
    const std::vector<DeviceId> lasts = devices_of(pipeline_members(network.plan, to));
    for (std::size_t i = 0; i < firsts.size(); ++i)
      sum.add(collective_loads(network.cluster, std::array{firsts[i], lasts[i]}, CollectiveKind::kAllReduce,
                               cost.algorithm, kReference, efficiency_of(key)));
    return std::move(sum).over(bus_factor(CollectiveKind::kAllReduce, 2) *
                               static_cast<double>(kReference.count()));
  });
}

NetworkUse network_use(Category category, const CollectiveCost& cost, PatternId pattern, double sent) {
  NetworkUse use{.category = category, .time = cost.time, .transfer = cost.transfer};
  if (cost.transfer > Duration::zero()) use.traffic.add(pattern, sent);
  return use;
}

}  // namespace stagecraft
