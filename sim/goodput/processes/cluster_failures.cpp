#include "sim/goodput/processes/cluster_failures.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "sim/goodput/failure_spec.hpp"

namespace stagecraft {

void ClusterFailures::next(std::uint32_t number, Duration now) {
  Stream stream = fleet_.stream(process_, 0, Purpose::kClusterGap, number);
  const double rate = law_.rate_per_node_day * fleet_.nodes() / kSecondsPerDay;
  const Duration gap = stream.weibull(law_.shape, rate);
  if (gap >= fleet_.horizon() - now) return;
  fleet_.schedule({.time = now + gap, .kind = IncidentKind::kRemove, .process = process_, .number = number});
}

void ClusterFailures::fire(const Event& event) {
  next(event.number + 1, event.time);
  if (fleet_.up_count() == 0) return;
  Stream stream = fleet_.stream(process_, event.number, Purpose::kNodeChoice);
  const int node = fleet_.choose_up(stream);
  fleet_.fail({.time = event.time,
               .process = process_,
               .node = node,
               .cause = fleet_.choose_cause(process_, event.number, 0),
               .id = node,
               .entity = event.number});
}

double mean_burst(const BurstFailures& law, int nodes) {
  if (law.sizes.empty()) {  // geometric: P(size > i) = (1 − 1/m)^i, summed over i < nodes
    const double stop = 1 / law.mean_size;
    return stop == 1 ? 1 : (1 - std::pow(1 - stop, nodes)) / stop;
  }
  double sum = 0, weights = 0;
  for (const auto& [size, weight] : law.sizes) {
    sum += weight * std::min(size, nodes);
    weights += weight;
  }
  return sum / weights;
}

int Bursts::nodes_of(int domain) const {
  return std::min(law_.domain_nodes, fleet_.nodes() - first_node(domain));
}

void Bursts::start() {
  SC_CHECK(law_.domain_nodes >= 1, "a fault domain has nodes");
  for (int domain = 0; first_node(domain) < fleet_.nodes(); ++domain) next(domain, 0, Duration(0));
}

void Bursts::next(int domain, std::uint32_t number, Duration now) {
  Stream stream = fleet_.stream(process_, static_cast<std::uint32_t>(domain), Purpose::kBurstTime, number);
  const int nodes = nodes_of(domain);
  const double per_day = law_.bursts_per_day ? *law_.bursts_per_day * nodes / fleet_.job_nodes()
                                             : law_.rate_per_node_day * nodes / mean_burst(law_, nodes);
  const Duration gap = stream.exponential(per_day / kSecondsPerDay);
  if (gap >= fleet_.horizon() - now) return;
  fleet_.schedule({.time = now + gap,
                   .kind = IncidentKind::kRemove,
                   .id = first_node(domain),
                   .process = process_,
                   .node = first_node(domain),
                   .what = domain,
                   .number = number});
}

int Bursts::size_of(int domain, std::uint32_t number) const {
  Stream stream = fleet_.stream(process_, static_cast<std::uint32_t>(domain), Purpose::kBurstSize, number);
  const double u = stream.uniform();
  if (law_.sizes.empty()) {
    if (law_.mean_size == 1) return 1;
    const double size = 1 + std::floor(std::log(u) / std::log1p(-1 / law_.mean_size));
    return static_cast<int>(std::min<double>(size, law_.domain_nodes));
  }
  double weights = 0;
  for (const auto& size : law_.sizes) weights += size.second;
  double rest = u * weights;
  for (const auto& [size, weight] : law_.sizes) {
    rest -= weight;
    if (rest < 0) return size;
  }
  return law_.sizes.back().first;
}

void Bursts::fire(const Event& event) {
  const int domain = event.what;
  const auto entity = static_cast<std::uint32_t>(domain);
  next(domain, event.number + 1, event.time);
  std::vector<int> up;
  for (int node = event.node; node < event.node + nodes_of(domain); ++node)
    if (fleet_.up(node)) up.push_back(node);
  const std::size_t size = std::min(up.size(), as_index(size_of(domain, event.number)));
  // A burst draws at most as many numbers as its domain has nodes; the next burst starts after them.
  const auto domain_nodes = static_cast<std::uint32_t>(law_.domain_nodes);
  Stream stream = fleet_.stream(process_, entity, Purpose::kBurstChoice, event.number * domain_nodes);
  for (std::size_t i = 0; i < size; ++i)
    std::swap(up[i], up[i + static_cast<std::size_t>(stream.below(static_cast<int>(up.size() - i)))]);
  std::sort(up.begin(), up.begin() + static_cast<std::ptrdiff_t>(size));
  const int cause = fleet_.choose_cause(process_, entity, event.number);
  for (std::size_t i = 0; i < size; ++i)
    fleet_.fail({.time = event.time,
                 .process = process_,
                 .node = up[i],
                 .cause = cause,
                 .id = up[i],
                 .number = event.number,
                 .entity = static_cast<std::uint32_t>(up[i])});
}

Duration PlannedMaintenance::due(std::uint32_t number) const {
  Stream stream = fleet_.stream(process_, number, Purpose::kMaintenance);
  const double jitter = to_seconds(law_.jitter) * (2 * stream.uniform() - 1);
  const Duration middle = law_.period * (std::int64_t{number} + 1);
  return jitter < 0 ? middle - from_seconds(-jitter) : middle + from_seconds(jitter);
}

void PlannedMaintenance::next(std::uint32_t number) {
  SC_CHECK(law_.period > Duration(0), "maintenance has a period");
  if (law_.period * std::int64_t{number} >= fleet_.horizon()) return;
  fleet_.schedule({.time = std::max(Duration(0), due(number) - law_.notice),
                   .kind = law_.notice > Duration(0) ? IncidentKind::kAnnounced : IncidentKind::kRemove,
                   .process = process_,
                   .what = kChoose,
                   .number = number});
}

void PlannedMaintenance::choose(const Event& event) {
  next(event.number + 1);
  if (fleet_.up_count() == 0) return;
  Stream stream = fleet_.stream(process_, event.number, Purpose::kNodeChoice);
  const int node = fleet_.choose_up(stream);
  const Duration due_at = std::max(event.time, due(event.number));
  if (due_at > event.time)
    fleet_.announce({.time = event.time, .process = process_, .node = node, .id = node}, due_at);
  const Event taken{.time = due_at,
                    .kind = IncidentKind::kRemove,
                    .id = node,
                    .process = process_,
                    .node = node,
                    .what = kTakeAway,
                    .number = event.number};
  if (due_at > event.time)
    fleet_.schedule(taken);
  else
    fire(taken);
}

// Skips a node that has failed meanwhile.
void PlannedMaintenance::fire(const Event& event) {
  if (event.what == kChoose) return choose(event);
  if (event.what == kBringBack) return fleet_.mend(event, event.number);
  if (!fleet_.up(event.node)) return;
  Event back = event;
  back.number =
      fleet_.break_down({.time = event.time, .process = process_, .node = event.node, .id = event.id});
  back.time += std::max(law_.duration, Duration(1));
  back.kind = IncidentKind::kAdd;
  back.what = kBringBack;
  fleet_.schedule(back);
}

}  // namespace stagecraft
