#include "sim/lower/stage_parameters.hpp"

#include "models/operators.hpp"
#include "models/partition.hpp"

namespace stagecraft {

std::int64_t stage_parameters(const TransformerSpec& model, const ParallelPlan& plan, int stage) {
  const StageContent& content = plan.stages[static_cast<std::size_t>(stage)];
  std::int64_t parameters =
      content.layers * layer_parameters(model, LayerKind::kDense, {.tensor = plan.tensor}).all();
  if (content.embedding) parameters += embedding_parameters(model, plan.tensor);
  if (content.head) parameters += head_parameters(model, plan.tensor);
  if (content.head && model.tied_embeddings && plan.pipeline == 1)
    parameters -= vocabulary_share(model, plan.tensor) * model.hidden;
  return parameters;
}

std::int64_t rank_parameters(const TransformerSpec& model, const ParallelPlan& plan, int rank) {
  std::int64_t parameters = 0;
  for (int stage = rank; stage < plan.stage_count(); stage += plan.pipeline)
    parameters += stage_parameters(model, plan, stage);
  return parameters;
}

}  // namespace stagecraft
