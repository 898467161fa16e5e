// Makespans of many programs with the same task graph, which differ only in the times of their labels.
//
// The graph is sorted once so that every task follows its predecessors. Each program is then a single pass
// over that order, without events, and ends when run() says, to the nanosecond. This works because no links
// are shared, and a load slows only the stream of its own rank, whose tasks and loads the pass knows before
// later tasks of that stream. Tests compare it with the event loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

class GraphSweep {
 public:
  // nullopt where events are needed: flows, changes and loops; ranks with more than one stream of loads, or
  // more than one that yields; loads that wait for other ranks; cycles.
  [[nodiscard]] static std::optional<GraphSweep> of(const Program& program);

  // End of the last task when each task lasts the time of its label in `times`. Uses scratch memory of its
  // own: one thread at a time.
  //   requires  one time a label, none negative.
  [[nodiscard]] Duration makespan(std::span<const Duration> times);

  // The times of a program's own labels: makespan() of them is when run() ends.
  [[nodiscard]] static std::vector<Duration> times_of(const Program& program);

  [[nodiscard]] std::size_t size() const { return steps_.size(); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Starts when the steps before it have ended, counted from 1; step 0 ends when all begins.
  struct Step {
    std::uint32_t label = 0;
    std::uint32_t first = 0, second = 0;
    std::uint32_t device = kNone;
    std::uint32_t load = kNone;  // number of its speed in `speeds_`; kNone: it yields, if it has a device
  };
  // While it lasts, the yielding stream of its rank runs at `speed`.
  struct Load {
    Duration start{}, end{};
    double speed = 1;
  };
  // A yielding stream, and the loads on its rank. Equal ones that touch are one, if the stream is not past the
  // first.
  struct Device {
    std::vector<Load> loads;
    std::size_t next = 0;  // the first that has not ended when the stream's next task starts
  };
  class Ordering;

  [[nodiscard]] static Duration slowed(Device& device, Duration start, Duration time);
  static void add_load(Device& device, const Load& load);

  std::vector<Step> steps_;
  std::uint32_t labels_ = 0;
  std::vector<double> speeds_;  // beside a load, each once
  std::vector<Device> devices_;
  std::vector<Duration> times_, ends_;  // room for makespan()
};

}  // namespace stagecraft
