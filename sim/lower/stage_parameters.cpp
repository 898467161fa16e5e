#include "sim/lower/stage_parameters.hpp"

#include "base/ceil_div.hpp"
#include "models/memory.hpp"
#include "models/op_builder.hpp"

namespace stagecraft {
namespace {

WeightSplit split_of(const ParallelPlan& plan) {
  return {.tensor = plan.tensor, .expert = plan.expert, .expert_tensor = plan.expert_tensor};
}

void add(ParameterShare& sum, const ParameterShare& share, std::int64_t times = 1) {
  sum.dense += share.dense * times;
  sum.experts += share.experts * times;
}

void add_matrices(UnitMatrices& matrices, const Ops& forward) {
  for (const Op& op : forward) {
    const std::int64_t size = op.gemm.n * op.gemm.k;
    if (op.kind == OpKind::kGemm) matrices.dense.push_back(size);
    if (op.kind == OpKind::kGroupedGemm)
      matrices.experts.insert(matrices.experts.end(), static_cast<std::size_t>(op.gemm.batch), size);
  }
}

// Does the rank of `stage` hold the first one too?
bool meets_first(const ParallelPlan& plan, int stage) {
  const StagePlaces places = plan.places();
  const int rank = places.rank_of(stage);
  for (int copy = 0; copy < places.copies(); ++copy)
    if (places.rank_of(0, copy) == rank) return true;
  return false;
}

// The part of the head's matrix that the rank already holds as its word embedding.
std::int64_t tied_parameters(const TransformerSpec& model, const ParallelPlan& plan) {
  return model.tied_embeddings && ends_meet(plan) ? word_parameters(model, plan.tensor) : 0;
}

// Embedding copy for the lookup of multi-token prediction, where the rank has no embedding. With tied
// embeddings the head's matrix serves as its word part.
std::int64_t lookup_parameters(const TransformerSpec& model, const ParallelPlan& plan,
                               const StageContent& content) {
  if (content.mtp_layers == 0 || !second_embedding(model, plan)) return 0;
  const std::int64_t words = model.tied_embeddings ? word_parameters(model, plan.tensor) : 0;
  return embedding_parameters(model, plan.embedding_ranks()) - words;
}

using OfLayer = ParameterShare (*)(const TransformerSpec&, LayerKind, const WeightSplit&);
using OfMtp = ParameterShare (*)(const TransformerSpec&, const WeightSplit&);

ParameterShare share_of_layers(const TransformerSpec& model, const ParallelPlan& plan, int stage,
                               OfLayer of_layer, OfMtp of_mtp) {
  const StageContent& content = plan.stages[static_cast<std::size_t>(stage)];
  const WeightSplit split = split_of(plan);
  ParameterShare share;
  for (const LayerKind kind : kLayerKinds)
    if (const std::int64_t layers = content.layers[kind]) add(share, of_layer(model, kind, split), layers);
  if (content.mtp_layers > 0) add(share, of_mtp(model, split), content.mtp_layers);
  return share;
}

}  // namespace

bool ends_meet(const ParallelPlan& plan) {
  return meets_first(plan, plan.stage_count() - 1);
}

std::optional<int> second_embedding(const TransformerSpec& model, const ParallelPlan& plan) {
  int stage = plan.stage_count() - 1;
  if (!model.tied_embeddings) {
    while (stage >= 0 && plan.stages[static_cast<std::size_t>(stage)].mtp_layers == 0) --stage;
    if (stage < 0) return std::nullopt;
  }
  return meets_first(plan, stage) ? std::nullopt : std::optional(stage);
}

ParameterShare stage_share(const TransformerSpec& model, const ParallelPlan& plan, int stage) {
  const StageContent& content = plan.stages[static_cast<std::size_t>(stage)];
  ParameterShare share = share_of_layers(model, plan, stage, layer_parameters, mtp_parameters);
  if (content.mtp_layers > 0) share.dense += lookup_parameters(model, plan, content);
  if (content.embedding) share.dense += embedding_parameters(model, plan.embedding_ranks());
  if (content.head) share.dense += head_parameters(model, plan.tensor) - tied_parameters(model, plan);
  return share;
}

ParameterShare stage_products(const TransformerSpec& model, const ParallelPlan& plan, int stage) {
  return share_of_layers(model, plan, stage, product_weights, mtp_product_weights);
}

ParameterShare rank_products(const TransformerSpec& model, const ParallelPlan& plan, int rank) {
  ParameterShare share;
  for (const HeldStage& held : plan.places().held_by(rank))
    add(share, stage_products(model, plan, held.stage));
  return share;
}

ParameterShare rank_share(const TransformerSpec& model, const ParallelPlan& plan, int rank) {
  ParameterShare share;
  for (const HeldStage& held : plan.places().held_by(rank)) add(share, stage_share(model, plan, held.stage));
  return share;
}

bool is_root(const StageUnit& unit) {
  return unit.kind == UnitKind::kEmbedding || unit.kind == UnitKind::kHead;
}

bool root_stays_gathered(const Shard& shard) {
  return shard.rules.wraps_modules();
}

bool reduces_root_last(const Shard& shard) {
  return shard.gathered_weights && root_stays_gathered(shard) && !shard.rules.is_megatron_fsdp();
}

const ParameterShare& gathered_of(const StageUnit& unit, const Shard& shard) {
  return root_stays_gathered(shard) ? unit.reduced : unit.gathered;
}

std::vector<StageUnit> stage_units(const TransformerSpec& model, const ParallelPlan& plan, int stage) {
  const StageContent& content = plan.stages[static_cast<std::size_t>(stage)];
  const WeightSplit split = split_of(plan);
  std::int64_t first = 0;  // layer of the model
  for (int before = 0; before < stage; ++before)
    first += plan.stages[static_cast<std::size_t>(before)].layers.all();
  std::vector<StageUnit> units;
  const auto add_unit = [&](StageUnit unit, const ParameterShare& share,
                            const ParameterShare& products = {}) {
    unit.gathered = unit.reduced = share;
    unit.products = products;
    units.push_back(unit);
  };
  if (content.embedding)
    add_unit({.kind = UnitKind::kEmbedding}, {.dense = embedding_parameters(model, plan.embedding_ranks())});
  const std::int64_t layers = content.layers.all(), recomputed = content.recomputed.all();
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const LayerKind kind = model.kind_of(first + layer);
    add_unit({.layer = kind, .recomputed = layer < recomputed}, layer_parameters(model, kind, split),
             product_weights(model, kind, split));
  }
  for (std::int64_t layer = 0; layer < content.mtp_layers; ++layer) {
    ParameterShare share = mtp_parameters(model, split);
    if (layer == 0) share.dense += lookup_parameters(model, plan, content);
    add_unit({.kind = UnitKind::kMtp, .recomputed = content.recomputed_mtp}, share,
             mtp_product_weights(model, split));
  }
  if (content.head) {
    add_unit({.kind = UnitKind::kHead}, {.dense = head_parameters(model, plan.tensor)});
    units.back().reduced.dense -= tied_parameters(model, plan);
  }
  return units;
}

MatricesOfUnits::MatricesOfUnits(const TransformerSpec& model, const Shard& shard) {
  const LayerNumbers numbers = model.numbers();
  for (const LayerKind kind : kLayerKinds)
    if (numbers[kind] > 0)
      add_matrices(of_layer_[static_cast<std::size_t>(kind)], layer_operators(model, shard, kind).forward);
  if (model.mtp_layers == 0) return;
  prediction_ = of_layer_[static_cast<std::size_t>(model.mtp_kind())];
  add_matrices(prediction_, mtp_operators(model, shard).forward);
}

UnitMatrices MatricesOfUnits::of(const StageUnit& unit) const {
  if (is_root(unit)) return {.dense = {unit.gathered.dense}, .experts = {}};
  return unit.kind == UnitKind::kMtp ? prediction_ : of_layer_[static_cast<std::size_t>(unit.layer)];
}

ParameterShare sharded(const ParameterShare& whole, const ParallelPlan& plan) {
  return {.dense = ceil_div(whole.dense, plan.shard_group),
          .experts = ceil_div(whole.experts, plan.expert_shard_group())};
}

ByteShare sharded(const ByteShare& whole, const ParallelPlan& plan) {
  const ParameterShare bytes =
      sharded(ParameterShare{.dense = whole.dense.count(), .experts = whole.experts.count()}, plan);
  return bytes * Bytes(1);
}

ByteShare weight_bytes(const ParameterShare& share, const ParameterShare& products, const Shard& shard) {
  const ByteShare bytes = share * Bytes(state_bytes(shard).weight);
  if (!shard.fp8_parameters) return bytes;
  const double saved = static_cast<double>(element_bytes(shard.precision)) - fp8_weight(shard);
  const auto of = [&](std::int64_t weights) { return to_bytes(saved * static_cast<double>(weights)); };
  return bytes - ByteShare{.dense = of(products.dense), .experts = of(products.experts)};
}

}  // namespace stagecraft
