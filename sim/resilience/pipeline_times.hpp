// The simulated time of one pipeline whose stages hold any layers: what Oobleck's templates are priced by,
// where the paper's equations are not asked.
//
//   layers    as job_costs() counts them: the embedding, each layer of the transformer, the head with the
//             loss
//   pipeline  1F1B, one stage a rank; one replica, or as few as the experts need. Messages and the optimizer
//             are in it, data parallelism is not.
//   nodes     of each group of the cluster, stages on those of the first group first; times the replicas
#pragma once

#include <vector>

#include "base/units.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

class PipelineTimes {
 public:
  // requires a transformer, and a scenario that can run.
  explicit PipelineTimes(const Scenario& scenario);

  // Pure: the same from any thread.
  //   layers_per_stage  each at least 1; they add up to the transformer's layers and 2
  //   nodes             by group; they hold the stages
  //   throws            ScenarioError where such a pipeline cannot run
  [[nodiscard]] Duration time(const std::vector<int>& layers_per_stage, const std::vector<int>& nodes,
                              int micro_batches) const;

 private:
  [[nodiscard]] Scenario scenario_of(const std::vector<int>& layers_per_stage, const std::vector<int>& nodes,
                                     int micro_batches) const;

  Scenario base_;  // with one replica, and without what has nothing to do with a pipeline
  int replicas_ = 1;
  int gpus_per_stage_ = 1;  // of all replicas
};

}  // namespace stagecraft
