#include "sim/lower/flow_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

// Tolerance for rounding: a flow may exceed the capacity of a link by this fraction, because launch times are
// whole nanoseconds and sizes whole bytes.
double rounding_of(Duration transfer, std::int64_t launches) {
  return 1e-6 + 2e-9 * static_cast<double>(launches) / to_seconds(transfer);
}

// Keeps the sum below the capacity, whatever the order of summing.
constexpr double kAlmost = 1 - 1e-12;

}  // namespace

FlowPlan::FlowPlan(const SharedNetwork& network, const PatternTable& patterns, std::vector<int> weights)
    : network_(network), patterns_(patterns), weights_(std::move(weights)) {
  SC_CHECK(!weights_.empty() && *std::min_element(weights_.begin(), weights_.end()) >= 1,
           "at least one copy, and each stands for some");
  for (const SharedLink& link : network_.links) slowest_ = std::min(slowest_, link.capacity.count());
}

FlowPlan::Route FlowPlan::make_route(const RouteKey& key) const {
  IdVector<EdgeId, double> sum(network_.links.size());
  std::vector<EdgeId> used;
  for (const auto& [pattern, share] : key)
    for (const LinkLoad& load : patterns_[pattern].loads) {
      if (sum[load.link] == 0) used.push_back(load.link);
      sum[load.link] += load.bytes * share;
    }
  std::sort(used.begin(), used.end());
  Route route;
  for (const EdgeId link : used) {
    const double share = sum[link] / network_.links[link].capacity.count();
    if (share <= route.busiest) continue;
    route.busiest = share;
    route.unit = std::min(1.0, sum[link] * (slowest_ / network_.links[link].capacity.count()));
  }
  route.flows.reserve(used.size());
  for (const EdgeId link : used) route.flows.push_back({link, sum[link] / route.unit});
  return route;
}

std::uint32_t FlowPlan::route_of(const Traffic& traffic) {
  RouteKey key;
  const double bytes = traffic.bytes();
  for (const Traffic::Part& part : traffic.parts()) key.emplace_back(part.pattern, part.bytes / bytes);
  const auto [at, is_new] = known_.try_emplace(std::move(key), static_cast<std::uint32_t>(routes_.size()));
  if (is_new) routes_.push_back(make_route(at->first));
  return at->second;
}

std::optional<FlowKind> FlowPlan::kind(const Traffic& traffic, Duration transfer, std::int64_t launches) {
  if (traffic.empty() || transfer <= Duration::zero()) return std::nullopt;
  const std::uint32_t route = route_of(traffic);
  if (routes_[route].flows.empty()) return std::nullopt;
  double rate = traffic.bytes() / to_seconds(transfer);
  const double use = rate * routes_[route].busiest;  // load of the fullest link
  if (use > kAlmost && use <= 1 + rounding_of(transfer, launches)) rate *= kAlmost / use;
  return FlowKind{.route = route, .transfer = transfer, .rate = Bandwidth(rate * routes_[route].unit)};
}

void FlowPlan::finish(ProgramBuilder& builder) const {
  for (std::uint32_t i = 0; i < network_.links.size(); ++i) {
    const EdgeId link(i);
    Bandwidth capacity = network_.links[link].capacity;
    if (!network_.background.empty()) capacity -= network_.background[link];
    builder.add_link({.name = network_.links[link].name, .capacity = capacity});
  }
  add_changes(builder);
  const int all = std::accumulate(weights_.begin(), weights_.end(), 0);
  std::map<int, std::vector<RouteId>> ids;  // by weight
  for (const int weight : weights_) {
    std::vector<RouteId>& of_weight = ids[weight];
    if (!of_weight.empty()) continue;
    for (const Route& route : routes_) {
      std::vector<LinkUse> uses;
      uses.reserve(route.flows.size());
      for (const LinkLoad& load : route.flows)
        uses.push_back({LinkId(load.link.value()), load.bytes * weight / all});
      of_weight.push_back(builder.add_route(std::move(uses)));
    }
  }
  for (const TaskFlow& flow : flows_)
    builder.add_flow(flow.task, flow.kind.transfer, flow.kind.rate,
                     ids.at(weights_[static_cast<std::size_t>(flow.copy)])[flow.kind.route]);
}

void FlowPlan::add_changes(ProgramBuilder& builder) const {
  for (const LinkShareChange& change : network_.changes) {
    Bandwidth capacity = change.share * network_.links[change.link].capacity;
    if (!network_.background.empty()) capacity -= network_.background[change.link];
    builder.add_link_change({.time = change.time, .link = LinkId(change.link.value()), .capacity = capacity});
  }
}

}  // namespace stagecraft
