// The flows of a program on shared links: those of a cluster, or in closed form the own links of each rank. Routes
// are collected while tasks are added, and finish() hands them to the program.
//
//   unit flow   what one member of a group, or one GPU of a message, sends; of a group that it takes several
//               members of to fill a link, as a ring that enters a node by one NIC, what they put on the link
//               that they fill most: two rings that meet there have half of it each. A link that is faster
//               than the slowest counts for less: where traffic of NVLink and of NICs go in step, what meets
//               it on a NIC is slowed as much (dominant shares: Ghodsi et al., NSDI 2011). All of a task go
//               in step, because a collective is as slow as its slowest member and the groups of a rank meet
//               at the next barrier.
//   rate        bytes of the unit flow over its transfer. Rounding times to nanoseconds may ask for a little
//               more than a link has; the rate is then what the link has, so that a flow alone takes what the
//               closed form says.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "sim/lower/fault_plan.hpp"
#include "sim/lower/traffic.hpp"
#include "sim/program/program.hpp"
#include "topology/collective_flows.hpp"

namespace stagecraft {

// The links that traffic shares, the background load of each, and the times at which a link changes its
// capacity.
struct SharedNetwork {
  IdVector<EdgeId, SharedLink> links{};
  IdVector<EdgeId, Bandwidth> background{};  // empty: nothing
  std::vector<LinkShareChange> changes{};    // ascending by time
};

// A kind of flow, shared by many tasks.
struct FlowKind {
  std::uint32_t route = 0;
  Duration transfer{};
  Bandwidth rate{};
};

class FlowPlan {
 public:
  using Handle = ProgramBuilder::Handle;

  // `weights` of the simulated copies of each rank: a copy carries the traffic of as many replicas.
  FlowPlan(const SharedNetwork& network, const PatternTable& patterns, std::vector<int> weights);

  // The flow of `launches` consecutive collectives; nullopt where there is no traffic.
  [[nodiscard]] std::optional<FlowKind> kind(const Traffic& traffic, Duration transfer,
                                             std::int64_t launches = 1);
  void add(Handle task, const FlowKind& kind, int copy) { flows_.push_back({task, kind, copy}); }

  // Adds all links, in order of EdgeId, and the routes and flows.
  void finish(ProgramBuilder& builder) const;

 private:
  struct Route {
    // Unit flows over each link, summed over all copies; 1 or more on the fullest.
    std::vector<LinkLoad> flows;
    double unit = 1;     // bytes of a unit flow per byte that one member sends
    double busiest = 0;  // seconds of the fullest link per byte that one member sends
  };
  struct TaskFlow {
    Handle task;
    FlowKind kind;
    int copy = 0;
  };
  using RouteKey = std::vector<std::pair<PatternId, double>>;  // share of each pattern

  [[nodiscard]] std::uint32_t route_of(const Traffic& traffic);
  void add_changes(ProgramBuilder& builder) const;
  [[nodiscard]] Route make_route(const RouteKey& key) const;

  const SharedNetwork& network_;
  const PatternTable& patterns_;
  const std::vector<int> weights_;
  double slowest_ = std::numeric_limits<double>::max();  // capacity of the slowest link
  std::map<RouteKey, std::uint32_t> known_;
  std::vector<Route> routes_;
  std::vector<TaskFlow> flows_;
};

}  // namespace stagecraft
