// Parameters that one GPU of a pipeline rank holds: what memory, gradient traffic and optimizer steps are
// counted from.
//
//   A tied word embedding is held once by a rank that has both ends of the model: always with p = 1, on a V
//   or a wave, and where the pipeline runs both ways. Elsewhere each end has its own. Multi-token prediction
//   looks tokens up on the last stage: a rank without the embedding has a copy of it (Megatron-LM
//   core/models/gpt/gpt_model.py, `pre_process or mtp_process`).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/model_spec.hpp"
#include "models/operators.hpp"
#include "models/shard.hpp"
#include "sim/plan/parallel_plan.hpp"

namespace stagecraft {

// The parameters of a stage, dense ones and those of routed experts.
[[nodiscard]] ParameterShare stage_share(const TransformerSpec& model, const ParallelPlan& plan, int stage);
// The parameters of all stages of the rank, of both copies where there are two.
[[nodiscard]] ParameterShare rank_share(const TransformerSpec& model, const ParallelPlan& plan, int rank);

// The weights of the stage's and the rank's products that fp8 computes.
[[nodiscard]] ParameterShare stage_products(const TransformerSpec& model, const ParallelPlan& plan,
                                            int stage);
[[nodiscard]] ParameterShare rank_products(const TransformerSpec& model, const ParallelPlan& plan, int rank);

// Does whoever has the head have the word embedding as well?
[[nodiscard]] bool ends_meet(const ParallelPlan& plan);

// A piece of a stage whose weights are gathered and whose gradients are reduced as one, as FSDP wraps models.
enum class UnitKind : std::uint8_t { kEmbedding, kLayer, kMtp, kHead };

struct StageUnit {
  UnitKind kind = UnitKind::kLayer;
  LayerKind layer = LayerKind::kDense;  // of kLayer
  bool recomputed = false;              // by full recompute
  ParameterShare gathered{};  // the head's matrix counts here even where it is the embedding's: it was freed
  ParameterShare reduced{};
  ParameterShare products{};  // of those gathered, the weights that fp8 computes with
};

// The units of a stage in model order; those of multi-token prediction come before the head, which is
// gathered once for both losses.
[[nodiscard]] std::vector<StageUnit> stage_units(const TransformerSpec& model, const ParallelPlan& plan,
                                                 int stage);

// Weights of the matrices of a unit, each as a product uses it; an expert has its own. Norms and biases are
// none, the embedding and the head are one each, a prediction has those of its inner layer.
struct UnitMatrices {
  std::vector<std::int64_t> dense, experts;
};
class MatricesOfUnits {
 public:
  MatricesOfUnits(const TransformerSpec& model, const Shard& shard);  // asks once for each kind of layer
  [[nodiscard]] UnitMatrices of(const StageUnit& unit) const;

 private:
  LayerKind mtp_;
  std::array<UnitMatrices, kLayerKindNames.size()> of_layer_;
};

// What a rank has of a whole that is cut over those who share it, each part rounded up.
[[nodiscard]] ParameterShare sharded(const ParameterShare& whole, const ParallelPlan& plan);

// Bytes of weights, of which `products` are kept and gathered in fp8 where the shard says so.
[[nodiscard]] ParameterShare weight_bytes(const ParameterShare& share, const ParameterShare& products,
                                          const Shard& shard);

}  // namespace stagecraft
