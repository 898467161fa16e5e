// Interface of a failure process: the law of one entry of `failures.process`.
//
// Processes are independent. Each puts its next events on the agenda of the fleet and is called when one is
// due. A node that returns has its clocks restarted.
#pragma once

#include <cstdint>
#include <tuple>

#include "base/units.hpp"
#include "sim/goodput/incident.hpp"

namespace stagecraft {

struct Event {
  Duration time{};
  IncidentKind kind = IncidentKind::kAdd;  // kind of the resulting incident: orders equal times
  std::int32_t id = 0;                     // canonical: the row of a trace, else the node
  std::int32_t process = 0;                // process to call; kRepairShop: the fleet itself
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

  virtual void start() {}  // once, at time 0
  virtual void fire(const Event& event) = 0;
  // The node is up again, or for the first time: at time 0 after start().
  virtual void back(int /*node*/, Duration /*now*/) {}
  // A failure by any process; the node's number of incidents has grown.
  virtual void failed(int /*node*/, Duration /*now*/) {}
};

}  // namespace stagecraft
