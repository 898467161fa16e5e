// A validated placement of a model on a cluster. Only valid plans exist.
//
//   GPUs = tensor * context * data * pipeline; micro-batches m = global batch / (data * micro-batch). The
//   ranks of a pipeline stage are also expert_tensor * expert * expert_data: experts live on a mesh of their
//   own over the same GPUs, pipeline rank by pipeline rank. Global stage s holds its layers in model order;
//   the schedule says on which pipeline rank it lives (sim/schedule/placement.hpp). A pipeline that runs both
//   ways has two copies of every stage, on the same GPUs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/diagnostic.hpp"
#include "models/model_spec.hpp"
#include "sim/plan/specs.hpp"
#include "sim/schedule/placement.hpp"
#include "topology/cluster_spec.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {

// Content of one global stage (a model chunk).
struct StageContent {
  LayerNumbers layers = {};  // without multi-token prediction
  // Layers that full recompute repeats: the first of the stage under `block`, all under `uniform`.
  LayerNumbers recomputed = {};
  // The order has a recompute pass (R) that restores all of the stage's activations. Otherwise the backward
  // recomputes, layer by layer.
  bool recompute_pass = false;
  // Multi-token prediction: on the stage of the last layers, or on one of its own before the head's.
  std::int64_t mtp_layers = 0;
  bool recomputed_mtp = false;  // full recompute repeats these too
  bool embedding = false;
  bool head = false;

  friend bool operator==(const StageContent&, const StageContent&) = default;
};

// Do so many of the data x context ranks hold some weights more than once? In a mixture these may be routed
// experts alone. `Degrees` are a plan, or what a plan is made of.
template <class Degrees>
[[nodiscard]] constexpr bool hold_weights_twice(std::int64_t ranks, const Degrees& degrees,
                                                bool has_experts) {
  const std::int64_t holders = std::int64_t{degrees.expert} * degrees.expert_tensor;
  return ranks > 1 || (has_experts && ranks * degrees.tensor > holders);
}

struct ParallelPlan {
  int tensor = 1, pipeline = 1, data = 1, virtual_stages = 1;
  int context = 1, expert = 1, expert_tensor = 1;
  bool replicated_embedding = false;  // each tensor rank holds the whole word embedding
  // Data x context ranks that share one copy of what ZeRO shards; all of them unless limited.
  int shard_group = 1;
  int micro_batches = 1;
  Placement placement = Placement::kLoop;
  std::vector<StageContent> stages;  // pipeline * virtual_stages, in model order; copies are alike
  RankMesh mesh;                     // tensor, context, data, pipeline; expert degree 1
  // expert_tensor on the tensor axis, expert, expert_data on the data axis, pipeline: the same ranks in each
  // stage as in `mesh`. Of a model without experts it means nothing.
  RankMesh expert_mesh;

  [[nodiscard]] int gpus() const { return tensor * context * pipeline * data; }
  // Ranks that share the word embedding.
  [[nodiscard]] int embedding_ranks() const { return replicated_embedding ? 1 : tensor; }
  // Ranks over which gradients are reduced: of dense weights, and of routed experts.
  [[nodiscard]] int replicas() const { return data * context; }
  [[nodiscard]] int expert_data() const { return tensor * context * data / (expert * expert_tensor); }
  // Ranks that share the sharded states of routed experts: there are as many sharded copies of experts as of dense
  // weights.
  //   source  Megatron-Core, parallel_state.py, intra_partial_expert_data_parallel_size; torchtitan,
  //           ParallelDims, dp_shard_mod_ep
  [[nodiscard]] int expert_shard_group() const { return expert_data() / (replicas() / shard_group); }
  // Is any gradient reduced, any state sharded under ZeRO? Experts' may be where the dense weights' are not.
  [[nodiscard]] bool has_replicas() const { return hold_weights_twice(replicas(), *this, has_experts()); }
  [[nodiscard]] bool has_shards() const { return hold_weights_twice(shard_group, *this, has_experts()); }
  [[nodiscard]] bool has_experts() const {
    return std::ranges::any_of(stages,
                               [](const StageContent& stage) { return stage.layers.with_experts() > 0; });
  }
  [[nodiscard]] int stage_count() const { return static_cast<int>(stages.size()); }
  [[nodiscard]] StagePlaces places() const {
    return {.placement = placement, .ranks = pipeline, .chunks = virtual_stages};
  }
};

struct PlanRequest {
  const ModelSpec& model;
  const ClusterSpec* cluster;  // nullptr: abstract stages on GPUs of their own, or a mistake in its section
  const ParallelSpec& parallelism;
  const TrainingSpec& training;
  const Origins& origins;                  // where the user wrote each value
  SourceLocation fallback;                 // the scenario file, for values that were not written
  Placement placement = Placement::kLoop;  // the schedule's
  // Reported of this scenario before: no check asks for a value that was refused.
  std::vector<Diagnostic> mistakes = {};
};

// nullopt with diagnostics when tensor does not divide heads, stages do not divide layers, GPUs do not add
// up, and so on: every independent mistake at once, each with both numbers and a way out. nullopt as well
// where there were mistakes before.
//   requires  degrees, batch sizes and counts of at least 1: the loader refuses less (throws InternalError
//   here).
[[nodiscard]] std::optional<ParallelPlan> resolve(const PlanRequest& request, Diagnostics& diagnostics);

// Units of the even split: the layers, and the ends where they count as one each.
//   source  Megatron-LM, account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split.
[[nodiscard]] std::int64_t counted_layers(const TransformerSpec& model, const ParallelSpec& spec);

// The most even split of L layers on S stages: each has L/S rounded down, and L mod S of them one more. The
// extra layers go to middle stages, since the first also has the embedding and the last the head.
[[nodiscard]] std::vector<std::int64_t> spread_layers(std::int64_t layers, std::int64_t stages);

}  // namespace stagecraft
