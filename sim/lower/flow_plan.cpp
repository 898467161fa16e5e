#include "sim/lower/flow_plan.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

// What a link may be asked for beyond its capacity before that is taken for more than rounding: times are
// whole nanoseconds, bytes are whole.
double rounding_of(Duration transfer) {
  return 1e-6 + 2e-9 / to_seconds(transfer);
}

// Below the capacity for certain, whatever the order of summing.
constexpr double kAlmost = 1 - 1e-12;

}  // namespace

FlowPlan::FlowPlan(const SharedNetwork& network, const PatternTable& patterns, int copies)
    : network_(network), patterns_(patterns), copies_(copies) {
  SC_CHECK(copies >= 1, "at least one copy");
}

FlowPlan::Route FlowPlan::make_route(const RouteKey& key) const {
  IdVector<EdgeId, double> sum(network_.cluster.link_count());
  std::vector<EdgeId> used;
  for (const auto& [pattern, share] : key)
    for (const LinkLoad& load : patterns_[pattern].loads) {
      if (sum[load.link] == 0) used.push_back(load.link);
      sum[load.link] += load.bytes * share;
    }
  std::sort(used.begin(), used.end());
  Route route;
  route.flows.reserve(used.size());
  for (const EdgeId link : used) {
    route.flows.push_back({link, sum[link] / copies_});
    route.busiest = std::max(route.busiest, sum[link] / network_.cluster.link(link).capacity.count());
  }
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

std::optional<FlowKind> FlowPlan::kind(const Traffic& traffic, Duration transfer) {
  if (traffic.empty() || transfer <= Duration::zero()) return std::nullopt;
  const std::uint32_t route = route_of(traffic);
  if (routes_[route].flows.empty()) return std::nullopt;
  double rate = traffic.bytes() / to_seconds(transfer);
  const double use = rate * routes_[route].busiest;  // of the fullest link
  if (use > kAlmost && use <= 1 + rounding_of(transfer)) rate *= kAlmost / use;
  return FlowKind{.route = route, .transfer = transfer, .rate = Bandwidth(rate)};
}

std::vector<FoldedLink> FlowPlan::finish(ProgramBuilder& builder) const {
  std::vector<std::vector<LinkLoad>> routes;
  for (const Route& route : routes_) routes.push_back(route.flows);
  std::vector<Bandwidth> capacity;
  for (std::uint32_t i = 0; i < network_.cluster.link_count(); ++i) {
    const EdgeId link(i);
    capacity.push_back(network_.cluster.link(link).capacity);
    if (!network_.background.empty()) capacity.back() -= network_.background[link];
  }
  FoldedLinks folded = fold_links(capacity, routes);
  for (const FoldedLink& link : folded.links)
    builder.add_link(
        {.name = network_.cluster.link_name(link.first), .capacity = capacity[link.first.index()]});
  std::vector<RouteId> ids;
  for (std::vector<LinkUse>& route : folded.routes) ids.push_back(builder.add_route(std::move(route)));
  for (const TaskFlow& flow : flows_)
    builder.add_flow(flow.task, flow.kind.transfer, flow.kind.rate, ids[flow.kind.route]);
  return std::move(folded.links);
}

}  // namespace stagecraft
