// Task graphs of iterations that are kept: plans that run the same passes in the same order, with as many
// buckets, differ in times alone.
//
// The graph of lower() is built for the first of them, and the others fill in their times: for a large plan,
// building the graph is most of a simulation. Times equal those of run() on each program, to the nanosecond.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "sim/engine/graph_sweep.hpp"
#include "sim/lower/time_sources.hpp"

namespace stagecraft {

// One object per thread. Orders are identified by their address: they must outlive the graphs unchanged.
class IterationGraphs {
 public:
  IterationGraphs() = default;
  IterationGraphs(IterationGraphs&&) = default;
  IterationGraphs& operator=(IterationGraphs&&) = default;

  // The makespan of the lowered iteration.
  //   requires  what lower() requires.
  [[nodiscard]] Duration time(const Schedule& schedule, const IterationPrices& prices,
                              const LowerOptions& options);

 private:
  // All inputs of the graph.
  struct Key {
    const Schedule* schedule = nullptr;
    std::array<bool, 5> overlaps{};
    StepRule step = StepRule::kBarrier;
    std::vector<double> slowdowns;  // by place
    std::vector<std::uint32_t> shape;

    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Graph {
    std::vector<TimeSource> sources;
    std::optional<GraphSweep> sweep;  // none where a program of this shape needs events
    std::list<const Key*>::iterator use{};
  };
  [[nodiscard]] Graph& graph_of(const Schedule& schedule, const IterationPrices& prices,
                                const LowerOptions& options);
  [[nodiscard]] static std::size_t steps_of(const Graph& graph);
  void forget_beyond(std::size_t most);

  std::map<Key, Graph> graphs_;
  std::list<const Key*> uses_;  // the latest first
  std::size_t size_ = 0;        // of all, in steps
};

}  // namespace stagecraft
