// The operators that the stages of a plan run for a micro-batch, with their counts: the terms of every price.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model_spec.hpp"
#include "models/operators.hpp"
#include "models/shard.hpp"
#include "sim/lower/prices.hpp"
#include "sim/lower/stage_parameters.hpp"
#include "sim/plan/parallel_plan.hpp"

namespace stagecraft {

// Pieces of a stage that run the same operators.
struct CountedOps {
  UnitKind unit = UnitKind::kLayer;
  LayerKind layer = LayerKind::kDense;  // kind of a kLayer unit
  bool recomputed = false;              // repeated by full recompute; kLayer only
  std::int64_t times = 0;               // at least 1
  LayerOps ops{};
};

// The operators of a stage in the order layers, embedding, multi-token prediction, head. The inner layer of a
// prediction is one of the layers, and its head one of the heads.
[[nodiscard]] std::vector<CountedOps> stage_operators(const TransformerSpec& model,
                                                      const PricingRequest& request,
                                                      const StageContent& content);

// Content of all stages of a plan, as if they were one stage.
[[nodiscard]] StageContent whole_content(const ParallelPlan& plan);

}  // namespace stagecraft
