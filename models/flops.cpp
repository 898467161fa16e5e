#include <algorithm>

#include "models/attention_operators.hpp"
#include "models/layer_matrices.hpp"
#include "models/operators.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

// Forward FLOPs of one sample over all GPUs, by the parts that recompute may repeat.
struct ForwardFlops {
  double other = 0;        // projections of multi-token prediction
  double attention = 0;    // QKV or down projections, output projections
  double latent_up = 0;    // MLA's up projections
  double core = 0;         // Q K^T and P V over the full square
  double mlp = 0;          // dense feed-forward blocks
  double shared = 0;       // shared experts
  double routed = 0;       // router, gate of the shared experts, and the K experts of each token
  double projections = 0;  // output projections, of `attention`
  double down = 0;         // the last products of `mlp`
  double unread = 0;       // those of them that nothing within their layer reads
  double heads = 0;        // heads of the model, and of each layer of multi-token prediction
  // k and output projections, the up of a gated dense or shared block, and of experts router and up.
  double every_second = 0;

  [[nodiscard]] double layers() const { return other + attention + latent_up + core + mlp + shared + routed; }
  [[nodiscard]] double all() const { return layers() + heads; }
};

// Q K^T multiplies d_qk columns of a head, P V d_v.
std::int64_t core_columns(const TransformerSpec& model) {
  return model.heads * (model.head_size + value_head_size(model));
}

// Experts computed per token: tokens dropped by a capacity below the even share are not computed, and padding
// does not count.
double visited(const ExpertsSpec& experts) {
  const double kept = experts.capacity_factor > 0 ? std::min(experts.capacity_factor, 1.0) : 1.0;
  return kept * static_cast<double>(experts.top_k);
}

// Tokens whose keys a token meets, on average over a sample: all of it, by the convention that causal attention
// counts its masked half, and of a window twice as many as there are.
double mean_keys(const TransformerSpec& model, LayerKind kind, double sequence) {
  if (!in_window(kind)) return sequence;
  const double window = std::min(static_cast<double>(model.sliding_window->tokens), sequence);
  return 2 * windowed_share(window, sequence) * sequence;
}

void add_layers(const TransformerSpec& model, LayerKind kind, std::int64_t number, std::int64_t tokens,
                ForwardFlops& sum) {
  if (number == 0) return;
  const auto layers = static_cast<double>(number), sequence = static_cast<double>(tokens);
  const LayerMatrices matrices = layer_matrices(model, kind, {});
  const auto linear = [&](std::int64_t weights) {
    return 2.0 * layers * sequence * static_cast<double>(weights);
  };
  sum.attention += linear(matrices.qkv.size() + matrices.latent_down() + matrices.projection.size());
  sum.latent_up += linear(matrices.latent_up());
  sum.core +=
      2.0 * layers * sequence * mean_keys(model, kind, sequence) * static_cast<double>(core_columns(model));
  sum.projections += linear(matrices.projection.size());
  sum.mlp += linear(matrices.ffn());
  sum.down += linear(matrices.down.size());
  // A norm behind the block reads its last product.
  if (!model.has_norms_behind()) sum.unread += linear(matrices.down.size());
  const bool gated = is_gated(model.activation);
  sum.every_second +=
      linear(model.hidden * model.kv_heads * model.head_size + matrices.projection.size() +
             (gated ? matrices.down.size() + matrices.shared_down.size() : 0) + matrices.router.size());
  sum.shared += linear(matrices.shared());
  if (has_experts(kind)) {
    sum.routed += linear(matrices.router.size() + matrices.shared_gate.size()) +
                  visited(*model.experts) * linear(matrices.expert());
    sum.every_second += visited(*model.experts) * linear(matrices.expert_up.size());
  }
}

// FLOPs of the layers, without the heads.
ForwardFlops flops_of_layers(const TransformerSpec& model, const LayerCounts& counts, std::int64_t sequence) {
  const auto s = static_cast<double>(sequence), h = static_cast<double>(model.hidden);
  const auto predictions = static_cast<double>(counts.predictions);
  ForwardFlops sum;
  for (const LayerKind kind : kLayerKinds)
    if (const std::int64_t layers = counts.layers[kind]) add_layers(model, kind, layers, sequence, sum);
  if (counts.predictions > 0) add_layers(model, model.mtp_kind(), counts.predictions, sequence, sum);
  sum.other += 2.0 * predictions * s * 2.0 * h * h;  // their projections [h, 2h]
  return sum;
}

ForwardFlops forward_flops(const TransformerSpec& model, std::int64_t sequence) {
  ForwardFlops sum = flops_of_layers(model, layers_in(model), sequence);
  sum.heads = 2.0 * (1.0 + static_cast<double>(model.mtp_layers)) * static_cast<double>(sequence) *
              static_cast<double>(model.hidden * model.vocab);
  return sum;
}

// FLOPs that selective recompute repeats. Norms and activations have no FLOPs; `moe` is the whole block,
// shared experts included (Megatron-LM, core/transformer/moe/moe_layer.py).
double repeated(const ForwardFlops& forward, const RecomputedShare& recompute) {
  using enum RecomputeModule;
  const RecomputeModules modules = recompute.modules;
  double again = 0;
  // The unfused core alone counts by the convention of the paper's figures (s/6h more), three times one
  // repetition.
  if (modules.has(kSelfAttention))
    again += forward.attention + forward.latent_up + forward.core -
             (recompute.stops_early ? forward.projections : 0);
  else if (modules.has(kCoreAttention))
    again += (recompute.flash_core ? 1.0 : 3.0) * forward.core;
  if (modules.has(kMlp)) again += forward.mlp - (recompute.stops_early ? forward.down : 0);
  if (modules.has(kMoe)) again += forward.routed;
  if (modules.has(kMoe) || modules.has(kSharedExperts)) again += forward.shared;
  if (modules.has(kLatentUp) && !modules.has(kSelfAttention)) again += forward.latent_up;
  if (modules.has(kEverySecondProduct)) again += forward.every_second;
  return again;
}

}  // namespace

LayerCounts layers_in(const TransformerSpec& model) {
  return {.layers = model.numbers(), .predictions = model.mtp_layers};
}

Flops model_flops(const TransformerSpec& model, std::int64_t samples, std::int64_t sequence) {
  return Flops(3.0 * static_cast<double>(samples) * forward_flops(model, sequence).all());
}

Flops hardware_flops(const TransformerSpec& model, std::int64_t samples, std::int64_t sequence,
                     const RecomputedShare& recompute) {
  const ForwardFlops forward = forward_flops(model, sequence);
  double again = 0;
  switch (recompute.granularity) {
    case Recompute::kNone:
      break;
    case Recompute::kSelective:
      again = repeated(forward, recompute);
      break;
    case Recompute::kFull: {
      const ForwardFlops of_layers =
          flops_of_layers(model, recompute.layers.value_or(layers_in(model)), sequence);
      again = of_layers.layers() - (recompute.stops_early ? of_layers.unread : 0);
      break;
    }
  }
  return Flops(static_cast<double>(samples) * (3.0 * forward.all() + again));
}

}  // namespace stagecraft
