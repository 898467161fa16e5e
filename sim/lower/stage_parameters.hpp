// Parameters that one GPU of a pipeline rank holds: the basis of memory, gradient traffic and optimizer
// steps.
//
//   A tied word embedding is held once by a rank that has both ends of the model: always with p = 1, on a V
//   or a wave, and where the pipeline runs both ways. Elsewhere each end has its own. Multi-token prediction
//   looks tokens up on its stage: a rank without the embedding has a copy of it (Megatron-LM
//   core/models/gpt/gpt_model.py, `pre_process or mtp_process`).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/model_spec.hpp"
#include "models/operators.hpp"
#include "models/shard.hpp"
#include "sim/plan/parallel_plan.hpp"

namespace stagecraft {

// The parameters of a stage, dense ones and those of routed experts.
[[nodiscard]] ParameterShare stage_share(const TransformerSpec& model, const ParallelPlan& plan, int stage);
// The parameters of all stages of the rank, of both copies where it holds two.
[[nodiscard]] ParameterShare rank_share(const TransformerSpec& model, const ParallelPlan& plan, int rank);

// The GEMM weights of the stage, and of the rank, that fp8 computes with.
[[nodiscard]] ParameterShare stage_products(const TransformerSpec& model, const ParallelPlan& plan,
                                            int stage);
[[nodiscard]] ParameterShare rank_products(const TransformerSpec& model, const ParallelPlan& plan, int rank);

// Does the rank with the head also hold the word embedding?
[[nodiscard]] bool ends_meet(const ParallelPlan& plan);
// The stage whose rank has a word embedding besides that of the first: the last where it is tied, that of
// multi-token prediction. Absent where there is none, or the ranks are the same.
[[nodiscard]] std::optional<int> second_embedding(const TransformerSpec& model, const ParallelPlan& plan);

// A ZeRO unit: a piece of a stage whose weights are gathered together and whose gradients are reduced
// together, as FSDP wraps models.
enum class UnitKind : std::uint8_t { kEmbedding, kLayer, kMtp, kHead };

struct StageUnit {
  UnitKind kind = UnitKind::kLayer;
  LayerKind layer = LayerKind::kDense;  // of kLayer
  bool recomputed = false;              // by full recompute
  ParameterShare gathered{};  // the head's matrix counts even where it is the embedding's: that was freed
  ParameterShare reduced{};
  ParameterShare products{};  // the gathered weights that fp8 GEMMs use
};

// Is it of the parameters outside the layers, which one root module of FSDP holds?
[[nodiscard]] bool is_root(const StageUnit& unit);
// Does the root stay gathered from the forward until the backward ends?
//   source  torch/distributed/fsdp/_runtime_utils.py, _post_forward_reshard; torch/distributed/fsdp/_fully_shard,
//           _lazy_init (post_forward_mesh_info of the root); megatron_fsdp.py, _root_pre_backward.
[[nodiscard]] bool root_stays_gathered(const Shard& shard);
// Are its gradients unsharded when the backward of the embedding ends, and only then, under ZeRO 3?
//   source  torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, post_backward; _fsdp_collectives.py, foreach_reduce
[[nodiscard]] bool reduces_root_last(const Shard& shard);
// What its all-gather brings: a tied word table is there already where the root stays gathered.
[[nodiscard]] const ParameterShare& gathered_of(const StageUnit& unit, const Shard& shard);

// The units of a stage in model order. Units of multi-token prediction come before the head, which is
// gathered once for both losses.
[[nodiscard]] std::vector<StageUnit> stage_units(const TransformerSpec& model, const ParallelPlan& plan,
                                                 int stage);

// Parameter counts of the matrices of a unit, one per GEMM; each expert has its own. Norms and biases do not
// count. The embedding and the head are one matrix each.
struct UnitMatrices {
  std::vector<std::int64_t> dense, experts;
};
class MatricesOfUnits {
 public:
  MatricesOfUnits(const TransformerSpec& model, const Shard& shard);  // computes each kind of layer once
  [[nodiscard]] UnitMatrices of(const StageUnit& unit) const;

 private:
  std::array<UnitMatrices, kLayerKinds.size()> of_layer_;
  UnitMatrices prediction_;
};

// A rank's shard of `whole`, divided over the ranks that share it and rounded up.
[[nodiscard]] ParameterShare sharded(const ParameterShare& whole, const ParallelPlan& plan);
[[nodiscard]] ByteShare sharded(const ByteShare& whole, const ParallelPlan& plan);

// Bytes of weights, of which `products` are kept and gathered in fp8 where the shard says so.
[[nodiscard]] ByteShare weight_bytes(const ParameterShare& share, const ParameterShare& products,
                                     const Shard& shard);

}  // namespace stagecraft
