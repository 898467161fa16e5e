// Simulated times of equal pipelines with any split of the layers. Oobleck's templates use them instead of
// the paper's equations, and for the parts of a step beyond the equations.
//
//   layers     as job_costs() counts them: the embedding, each layer of the transformer, the head with the
//              loss; of abstract stages each stage, those of one rank added up
//   pipeline   1F1B, one stage a rank, its stages side by side; messages and the optimizer are in it
//   pipelines  reduce their gradients over each other; each holds the whole model (plain_pipeline.hpp)
//   nodes      of one pipeline, by group of the cluster, stages on those of the first group first; times the
//              pipelines. Not looked at without a cluster.
#pragma once

#include <tuple>
#include <vector>

#include "base/units.hpp"
#include "sim/resilience/memo.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

class PipelineTimes {
 public:
  // requires a scenario that can run.
  explicit PipelineTimes(const Scenario& scenario);

  // Each question is simulated once; the same answer from any thread.
  //   layers_per_stage  each at least 1; they add up to all layers
  //   nodes             by group; they hold the stages
  //   micro_batches     of each pipeline
  //   throws            ScenarioError where such pipelines cannot run
  [[nodiscard]] Duration time(const std::vector<int>& layers_per_stage, const std::vector<int>& nodes,
                              int micro_batches, int pipelines = 1) const;

 private:
  using Question = std::tuple<std::vector<int>, std::vector<int>, int, int>;
  [[nodiscard]] Scenario scenario_of(const std::vector<int>& layers_per_stage, const std::vector<int>& nodes,
                                     int micro_batches, int pipelines) const;
  void place(const std::vector<int>& nodes, Scenario& scenario) const;

  Scenario base_;       // the scenario without parts unrelated to a pipeline
  int stage_gpus_ = 1;  // GPUs per stage of one pipeline
  mutable Memo<Question, Duration> times_;
};

}  // namespace stagecraft
