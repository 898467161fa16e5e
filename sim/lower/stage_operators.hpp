// Which operators the stages of a plan run for a micro-batch, and how often: what a price is a sum of, before
// any of it has one.
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

// A layer that full recompute repeats, or one that it leaves alone.
[[nodiscard]] LayerOps layer_operators(const TransformerSpec& model, const Shard& shard, LayerKind kind,
                                       bool recomputed);
// The operators that multi-token prediction puts before its layer.
[[nodiscard]] LayerOps mtp_operators(const TransformerSpec& model, const Shard& shard, bool recomputed);

// Pieces of a stage that run the same operators.
struct CountedOps {
  UnitKind unit = UnitKind::kLayer;
  LayerKind layer = LayerKind::kDense;  // of kLayer
  bool recomputed = false;              // by full recompute; of kLayer
  std::int64_t times = 0;               // at least 1
  LayerOps ops{};
};

// The operators of a stage in the order layers, embedding, multi-token prediction, head. The inner layer of a
// prediction is one of the layers, and its head one of the heads.
[[nodiscard]] std::vector<CountedOps> stage_operators(const TransformerSpec& model,
                                                      const PricingRequest& request,
                                                      const StageContent& content);

// What all stages of a plan hold, as if they were one.
[[nodiscard]] StageContent whole_content(const ParallelPlan& plan);

}  // namespace stagecraft
