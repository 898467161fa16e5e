#include "sim/lower/fault_plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "topology/cluster_links.hpp"

namespace stagecraft {
namespace {

int replica_of(const ParallelPlan& plan, int rank) {
  return plan.mesh.coordinate(rank, Axis::kData);
}

// Data replicas that exchange tokens of experts inside their passes form one set. Its first replica names it.
class ReplicaSets {
 public:
  explicit ReplicaSets(const ParallelPlan& plan) : first_(static_cast<std::size_t>(plan.data)) {
    std::iota(first_.begin(), first_.end(), 0);
    if (plan.expert == 1 && plan.expert_tensor == 1) return;
    for (int rank = 0; rank < plan.gpus(); ++rank)
      for (const Axis axis : {Axis::kExpert, Axis::kTensor})
        for (const int other : plan.expert_mesh.group(rank, {axis}))
          join(replica_of(plan, rank), replica_of(plan, other));
  }

  [[nodiscard]] int find(int replica) const {
    while (first_[static_cast<std::size_t>(replica)] != replica)
      replica = first_[static_cast<std::size_t>(replica)];
    return replica;
  }

 private:
  void join(int a, int b) {
    const int x = find(a), y = find(b);
    first_[static_cast<std::size_t>(std::max(x, y))] = std::min(x, y);
  }
  std::vector<int> first_;
};

bool is_of_gpus(const FaultSpec& fault) {
  return fault.kind != FaultKind::kDegradedLink;
}

bool lasts(const FaultSpec& fault, Duration time) {
  return fault.at <= time && (!fault.lasts || time < fault.at + *fault.lasts);
}

// Times at which a fault begins or ends, ascending.
std::vector<Duration> times_of(std::span<const FaultSpec> faults) {
  std::set<Duration> times;
  for (const FaultSpec& fault : faults) {
    times.insert(fault.at);
    if (fault.lasts) times.insert(fault.at + *fault.lasts);
  }
  return {times.begin(), times.end()};
}

std::vector<std::vector<int>> copies_of(std::span<const FaultSpec> faults, const ParallelPlan& plan,
                                        const ReplicaSets& sets, bool unfold) {
  std::set<int> faulty;
  for (const FaultSpec& fault : faults)
    if (is_of_gpus(fault))
      for (const int rank : fault.ranks) faulty.insert(sets.find(replica_of(plan, rank)));
  std::vector<std::vector<int>> copies;
  std::map<int, std::size_t> of_set;
  std::vector<int> others;
  for (int replica = 0; replica < plan.data; ++replica) {
    const int set = sets.find(replica);
    if (unfold) {
      copies.push_back({replica});
    } else if (!faulty.contains(set)) {
      others.push_back(replica);
    } else if (const auto [at, is_new] = of_set.try_emplace(set, copies.size()); is_new) {
      copies.push_back({replica});
    } else {
      copies[at->second].push_back(replica);
    }
  }
  if (!others.empty()) copies.push_back(std::move(others));
  return copies;
}

// The speed of a GPU at that time.
double speed_at(std::span<const FaultSpec> faults, int gpu_rank, Duration time) {
  double speed = 1;
  for (const FaultSpec& fault : faults) {
    if (!is_of_gpus(fault) || !lasts(fault, time)) continue;
    if (std::find(fault.ranks.begin(), fault.ranks.end(), gpu_rank) == fault.ranks.end()) continue;
    speed = fault.kind == FaultKind::kDeadNode ? 0 : speed / fault.factor;
  }
  return speed;
}

std::vector<RankSpeed> speeds_of(std::span<const FaultSpec> faults, const ParallelPlan& plan,
                                 const ReplicaSets& sets, const FaultPlan& found) {
  std::set<int> gpus;
  for (const FaultSpec& fault : faults)
    if (is_of_gpus(fault)) gpus.insert(fault.ranks.begin(), fault.ranks.end());
  std::map<std::pair<int, int>, double> now;  // speed now, by copy and rank
  std::vector<RankSpeed> speeds;
  for (const Duration time : times_of(faults)) {
    std::map<std::pair<int, int>, double> next;
    for (const int gpu : gpus) {
      const double speed = speed_at(faults, gpu, time);
      for (std::size_t copy = 0; copy < found.copies.size(); ++copy) {
        if (sets.find(found.copies[copy].front()) != sets.find(replica_of(plan, gpu))) continue;
        const std::pair at{static_cast<int>(copy), plan.mesh.coordinate(gpu, Axis::kPipeline)};
        const auto [entry, is_new] = next.try_emplace(at, speed);
        if (!is_new) entry->second = std::min(entry->second, speed);
      }
    }
    for (const auto& [at, speed] : next) {
      const auto [entry, is_new] = now.try_emplace(at, 1.0);
      if (entry->second == speed) continue;
      entry->second = speed;
      speeds.push_back({.time = time, .copy = at.first, .rank = at.second, .speed = speed});
    }
  }
  return speeds;
}

std::vector<LinkShareChange> links_of(std::span<const FaultSpec> faults, const Cluster& cluster) {
  std::vector<LinkShareChange> changes;
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i) {
    const std::string name = cluster.link_name(EdgeId(i));
    std::vector<FaultSpec> of_link;
    for (const FaultSpec& fault : faults)
      if (fault.kind == FaultKind::kDegradedLink && matches(fault.link, name)) of_link.push_back(fault);
    double now = 1;
    for (const Duration time : times_of(of_link)) {
      double share = 1;
      for (const FaultSpec& fault : of_link) share *= lasts(fault, time) ? fault.factor : 1;
      if (share != now) changes.push_back({.time = time, .link = EdgeId(i), .share = share});
      now = share;
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const LinkShareChange& a, const LinkShareChange& b) { return a.time < b.time; });
  return changes;
}

}  // namespace

FaultPlan plan_faults(std::span<const FaultSpec> faults, const ParallelPlan& plan, const Cluster* cluster,
                      bool unfold) {
  const ReplicaSets sets(plan);
  FaultPlan found;
  found.copies = copies_of(faults, plan, sets, unfold);
  found.speeds = speeds_of(faults, plan, sets, found);
  const bool names_links =
      std::any_of(faults.begin(), faults.end(), [](const FaultSpec& fault) { return !is_of_gpus(fault); });
  if (!names_links) return found;
  SC_CHECK(cluster != nullptr, "a link is one of a cluster");
  found.links = links_of(faults, *cluster);
  return found;
}

}  // namespace stagecraft
