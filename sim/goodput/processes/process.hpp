// What makes things happen to the machines: the law of one entry of `failures.process`.
//
// Processes know nothing of each other. Each puts its next events on the machines' agenda and is told when
// one is due; a node that comes back has its clocks started anew.
#pragma once

#include <cstdint>
#include <tuple>

#include "base/units.hpp"
#include "sim/goodput/incident.hpp"

namespace stagecraft {

struct Event {
  Duration time{};
  IncidentKind kind = IncidentKind::kAdd;  // of the incident that it will be: orders equal times
  std::int32_t id = 0;                     // canonical: the row of a trace, else the node
  std::int32_t process = 0;                // who is told; kRepairShop: the fleet itself
  std::int32_t node = 0;
  std::int32_t what = 0;     // the process's own
  std::uint32_t number = 0;  // the process's own

  // Never the order of insertion: no two events of a process are due at one time with all of this equal.
  [[nodiscard]] auto order() const { return std::tuple(time, kind, id, process, node, what, number); }
};

class Process {
 public:
  Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  virtual ~Process() = default;

  virtual void start() = 0;  // once, at time 0
  virtual void fire(const Event& event) = 0;
  virtual void back(int node, Duration now) = 0;    // the node is up again, or for the first time
  virtual void failed(int node, Duration now) = 0;  // by any process; its number of incidents has grown
};

}  // namespace stagecraft
