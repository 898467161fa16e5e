#include "sim/iteration_graphs.hpp"

#include <optional>
#include <utility>

#include "sim/engine/engine.hpp"

namespace stagecraft {
namespace {

// Upper limit of all kept graphs together, at about 24 bytes a step.
constexpr std::size_t kMostSteps = 2'000'000;

// With loads, the slowdown of a pass depends on when it and the traffic run; with flows it takes events.
Duration makespan_of(const Program& program) {
  if (!program.flows.empty()) return run(program).makespan;
  if (program.loads.empty()) return longest_path(program).makespan;
  std::optional<GraphSweep> sweep = GraphSweep::of(program);
  return sweep ? sweep->makespan(GraphSweep::times_of(program)) : run(program).makespan;
}

}  // namespace

Duration IterationGraphs::time(const Schedule& schedule, const IterationPrices& prices,
                               const LowerOptions& options) {
  if (is_traceable(prices, options)) {
    Graph& graph = graph_of(schedule, prices, options);
    if (graph.sweep) return graph.sweep->makespan(label_times(graph.sources, prices));
  }
  return makespan_of(lower(schedule, prices, options));
}

std::size_t IterationGraphs::steps_of(const Graph& graph) {
  return graph.sources.size() + (graph.sweep ? graph.sweep->size() : 0);
}

IterationGraphs::Graph& IterationGraphs::graph_of(const Schedule& schedule, const IterationPrices& prices,
                                                  const LowerOptions& options) {
  Key key{.schedule = &schedule,
          .overlaps = {options.blocking_messages, options.queued_messages, options.overlap_gradients,
                       options.overlap_parameters, options.aligned_gradients},
          .step = options.step,
          .slowdowns = {},
          .shape = shape_of(prices)};
  for (const StagePrice& stage : prices.stages) key.slowdowns.push_back(stage.beside.slowdown);
  if (options.queued_messages)
    for (const EdgePrice& edge : prices.edges) key.shape.push_back(edge.between_nodes ? 1 : 0);
  const auto known = graphs_.find(key);
  if (known != graphs_.end()) {
    uses_.splice(uses_.begin(), uses_, known->second.use);
    return known->second;
  }
  TracedProgram traced = lower_traced(schedule, prices, options);
  std::optional<GraphSweep> sweep = GraphSweep::of(traced.program);
  forget_beyond(kMostSteps);
  const auto added = graphs_.emplace(
      std::move(key), Graph{.sources = std::move(traced.sources), .sweep = std::move(sweep), .use = {}});
  uses_.push_front(&added.first->first);
  added.first->second.use = uses_.begin();
  size_ += steps_of(added.first->second);
  return added.first->second;
}

void IterationGraphs::forget_beyond(std::size_t most) {
  while (size_ > most) {
    const auto oldest = graphs_.find(*uses_.back());
    size_ -= steps_of(oldest->second);
    graphs_.erase(oldest);
    uses_.pop_back();
  }
}

}  // namespace stagecraft
