#include "models/memory.hpp"

#include <algorithm>
#include <set>

#include "base/check.hpp"
#include "models/elementwise.hpp"
#include "models/expert_exchange.hpp"
#include "models/fp8_casts.hpp"
#include "models/layer_matrices.hpp"
#include "models/layer_sizes.hpp"
#include "models/op_builder.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

// Names of the function of the gate, which is kept where the multiplication is a kernel of its own.
struct GateNames {
  std::string_view dense, expert, shared;
};
constexpr GateNames gate_of(const TransformerSpec& model) {
  if (model.activation == Activation::kGeglu) return {"gelu(gate)", "expert gelu(gate)", "shared gelu(gate)"};
  return {"silu(gate)", "expert silu(gate)", "shared silu(gate)"};
}

// Bytes kept for a norm of the residual stream. A recomputed norm keeps its input only.
std::int64_t norm_input(const LayerSizes& sizes, const Shard& shard) {
  const bool again = shard.recomputes(RecomputeModule::kLayerNorm);
  return again ? sizes.stream() : sizes.normed_stream();
}

// Compressed queries and keys, before and after their norms. Every rank holds them for its own tokens.
void keep_latents(SavedTensors& tensors, const TransformerSpec& model, const Shard& shard) {
  const LatentAttentionSpec& latent = *model.latent_attention;
  const LayerSizes sizes(model, shard);
  const std::int64_t rows = sizes.element() * shard.local_tokens(),
                     ranks = latent.query_rank + latent.kv_rank;
  keep(tensors, "compressed Q, K, V", sizes.normed(rows * ranks) + rows * latent.rope_head_size);
  const std::int64_t up = shard.keeps_gathered() ? sizes.columns(ranks) : rows * ranks;
  keep(tensors, "up projection input", sizes.input(up));
}

// Selective recompute by operator saves the output of every second GEMM from the first on: q, v, gate and down. Of
// attention that leaves keys and projection, whose sum over tensor ranks is kept.
void keep_every_second_of_attention(SavedTensors& tensors, const TransformerSpec& model, const Shard& shard) {
  const LayerSizes sizes(model, shard);
  keep(tensors, "layer input", sizes.stream());
  keep(tensors, "query product", sizes.query());
  keep(tensors, "value product", sizes.value());
  keep(tensors, "core output", sizes.output());
  keep(tensors, "log-sum-exp", sizes.log_sum_exp());
  if (shard.tensor > 1) keep(tensors, "reduced projection", sizes.residual());
}

// The fifth is gate, or up without a gate. With a gate down is the seventh: nothing reads it, and a compiler keeps
// none of it. The reduction over the tensor ranks is saved as well.
void keep_every_second_of_block(SavedTensors& tensors, const TransformerSpec& model, const Shard& shard,
                                std::int64_t width) {
  const LayerSizes sizes(model, shard);
  keep(tensors, "first product", sizes.columns(width));
  if (is_gated(model.activation) && !shard.fused_kernels) keep(tensors, "down product", sizes.gathered());
  if (shard.tensor > 1) keep(tensors, "reduced feed-forward", sizes.residual());
}

// Grouped products are no products by their operator's name, so all of the routed experts is repeated; what
// PyTorch's all-to-all brought is kept, here and back at the sender.
void keep_every_second_of_experts(SavedTensors& tensors, const TransformerSpec& model, const Shard& shard) {
  const LayerSizes sizes(model, shard);
  const std::int64_t shared = expert_widths(model, shard.weight_split()).shared;
  if (shared > 0) keep_every_second_of_block(tensors, model, shard, shared);
  if (!keeps_exchanged(shard)) return;
  const std::int64_t row = sizes.element() * model.hidden;
  keep(tensors, "received tokens", row * received_pairs(model, shard));
  keep(tensors, "returned tokens", row * routing(model, shard).sent);
}

// Q, K and V as the core reads them: with the scales of MXFP8 the backward reads other rows of them.
std::int64_t core_inputs(const LayerSizes& sizes, const Shard& shard) {
  const std::int64_t bytes = sizes.query() + sizes.key() + sizes.value();
  if (!shard.attends_in_fp8()) return bytes;
  const Shard core = shard.of_fp8_core();
  return (core.scales_blocks() ? 2 : 1) * cast_bytes(bytes / sizes.element(), core);
}

void keep_core(SavedTensors& tensors, const LayerSizes& sizes, const Shard& shard) {
  keep(tensors, "core output", shard.core_writes_fp8() ? sizes.output() / sizes.element() : sizes.output());
  keep(tensors, "projection input", sizes.copy(sizes.output()));
  if (shard.repeats_core()) return;
  if (shard.attention == Attention::kFlash)
    keep(tensors, "log-sum-exp", sizes.log_sum_exp());
  else
    keep(tensors, "attention scores", sizes.saved_scores());
}

// Are the inputs of a block's products outputs of a norm that runs again?
bool repeats_norms(const TransformerSpec& model, const Shard& shard) {
  return model.has_norms_before() && shard.recomputes(RecomputeModule::kLayerNorm);
}

// Keeps the input of a block: of the norm before it, and of the GEMM that reads the norm's output or the residual stream
// itself, `input` bytes of it.
struct BlockInput {
  std::string_view norm, product;
  std::int64_t input = 0;
};
void keep_block_input(SavedTensors& tensors, const BlockInput& block, const TransformerSpec& model,
                      const Shard& shard) {
  if (model.has_norms_before()) keep(tensors, block.norm, norm_input(LayerSizes(model, shard), shard));
  if (!repeats_norms(model, shard)) keep(tensors, block.product, block.input);
}

// Keeps the input of the norm behind a block. No product reads the norm's output, so it is not repeated.
void keep_block_output(SavedTensors& tensors, std::string_view name, const TransformerSpec& model,
                       const Shard& shard) {
  const LayerSizes sizes(model, shard);
  if (model.has_norms_behind()) keep(tensors, name, sizes.normed(sizes.residual()));
}

// Keeps the tensors between the QKV GEMM and the projection.
void keep_within_attention(SavedTensors& tensors, const TransformerSpec& model, const Shard& shard) {
  const LayerSizes sizes(model, shard);
  if (model.latent_attention) keep_latents(tensors, model, shard);
  if (!model.latent_attention || !shard.recomputes(RecomputeModule::kLatentUp))
    keep(tensors, "Q, K, V", core_inputs(sizes, shard));
  if (model.qk_norm != QkNorm::kNone)
    keep(tensors, "Q and K before their norms", sizes.normed(sizes.query() + sizes.key()));
  keep_core(tensors, sizes, shard);
}

void keep_attention(SavedTensors& tensors, const TransformerSpec& model, const Shard& shard) {
  if (shard.recomputes(RecomputeModule::kEverySecondProduct))
    return keep_every_second_of_attention(tensors, model, shard);
  const LayerSizes sizes(model, shard);
  keep_block_input(
      tensors, {.norm = "norm 1 input", .product = "QKV input", .input = sizes.input(sizes.column_input())},
      model, shard);
  if (!shard.recomputes(RecomputeModule::kSelfAttention)) {
    keep_within_attention(tensors, model, shard);
    const LayerMatrices matrices = layer_matrices(model, LayerKind::kDense, shard.weight_split());
    keep(tensors, "16-bit weights of attention", sizes.cast(matrices.attention()));
  }
  keep_block_output(tensors, "attention output", model, shard);
  keep(tensors, "attention dropout mask", sizes.mask());
}

void keep_feed_forward(SavedTensors& tensors, const TransformerSpec& model, const Shard& shard) {
  if (shard.recomputes(RecomputeModule::kEverySecondProduct))
    return keep_every_second_of_block(tensors, model, shard, widths(model, shard.tensor).ffn);
  const LayerSizes sizes(model, shard);
  keep_block_input(
      tensors, {.norm = "norm 2 input", .product = "up input", .input = sizes.input(sizes.column_input())},
      model, shard);
  if (!shard.recomputes(RecomputeModule::kMlp)) {
    keep(tensors, "up output", sizes.up());
    if (clamps_apart(model, shard)) keep(tensors, "clamped gate", sizes.up());
    if (sizes.eager_gate()) keep(tensors, gate_of(model).dense, sizes.ffn());
    keep(tensors, "down input", sizes.input(sizes.ffn()));
    const LayerMatrices matrices = layer_matrices(model, LayerKind::kDense, shard.weight_split());
    keep(tensors, "16-bit weights of feed-forward", sizes.cast(matrices.ffn()));
  }
  keep_block_output(tensors, "feed-forward output", model, shard);
  keep(tensors, "feed-forward dropout mask", sizes.mask());
}

// Bytes kept of a token at its expert. A token that products read in fp8, as it was sent, is kept in fp8.
std::int64_t expert_row(const TransformerSpec& model, const Shard& shard) {
  const std::int64_t row = expert_input_row_bytes(model, shard);
  return shard.reads_sent() ? row : LayerSizes(model, shard).input(row);
}

void keep_routed_experts(SavedTensors& tensors, const TransformerSpec& model, const Shard& shard) {
  const LayerSizes sizes(model, shard);
  const ExpertWidths widths = expert_widths(model, shard.weight_split());
  const std::int64_t pairs = received_pairs(model, shard);
  constexpr std::int64_t kRouterBytes = 8;  // logits and probabilities in fp32
  constexpr std::int64_t kMapBytes = 16;    // rows and their inverse, 64-bit indices
  keep(tensors, "router logits", kRouterBytes * shard.local_tokens() * model.experts->count);
  keep(tensors, "routing maps", kMapBytes * shard.local_tokens() * model.experts->top_k);
  const LayerMatrices matrices = layer_matrices(model, LayerKind::kExperts, shard.weight_split());
  keep(tensors, "16-bit weights of experts",
       sizes.cast(model.experts->count / shard.expert * matrices.expert()));
  keep(tensors, "received tokens", expert_row(model, shard) * pairs);
  keep(tensors, "expert up output", sizes.element() * pairs * widths.up);
  if (shard.recomputes(RecomputeModule::kMoeActivation)) return;
  const std::int64_t activation = sizes.element() * pairs * widths.ffn;
  if (!shard.fuses_experts()) {
    if (clamps_apart(model, shard)) keep(tensors, "expert clamped gate", sizes.element() * pairs * widths.up);
    if (sizes.eager_gate()) keep(tensors, gate_of(model).expert, activation);
    if (sizes.eager_activation()) keep(tensors, "expert activation before its weight", activation);
  }
  keep(tensors, "expert down input", sizes.input(activation));
}

void keep_experts(SavedTensors& tensors, const TransformerSpec& model, const Shard& shard) {
  if (shard.recomputes(RecomputeModule::kEverySecondProduct))
    return keep_every_second_of_experts(tensors, model, shard);
  const LayerSizes sizes(model, shard);
  keep_block_input(tensors, {.norm = "norm 2 input", .product = "router input", .input = sizes.residual()},
                   model, shard);
  if (!shard.recomputes(RecomputeModule::kMoe)) {
    keep_routed_experts(tensors, model, shard);
    if (!shard.recomputes(RecomputeModule::kSharedExperts)) {
      const ExpertWidths widths = expert_widths(model, shard.weight_split());
      const std::int64_t input =
          shard.keeps_gathered() ? sizes.input(sizes.gathered()) : sizes.copy(sizes.residual());
      if (widths.shared > 0) keep(tensors, "shared up input", input);
      keep(tensors, "shared up output", sizes.columns(widths.shared_up));
      if (sizes.eager_gate()) keep(tensors, gate_of(model).shared, sizes.columns(widths.shared));
      keep(tensors, "shared down input", sizes.input(sizes.columns(widths.shared)));
      const LayerMatrices matrices = layer_matrices(model, LayerKind::kExperts, shard.weight_split());
      keep(tensors, "16-bit weights of shared experts", sizes.cast(matrices.shared()));
    }
  }
  keep_block_output(tensors, "feed-forward output", model, shard);
  keep(tensors, "feed-forward dropout mask", sizes.mask());
}

// Key and value blocks of a context ring in transit: two at a time (Liu et al., arXiv 2310.01889). In the
// backward their gradients travel along. An all-gather holds all blocks at once.
struct RingBytes {
  std::int64_t forward = 0, backward = 0;
};
RingBytes ring_bytes(const LayerSizes& sizes, const Shard& shard) {
  if (shard.context == 1) return {};
  const std::int64_t block = sizes.key() + sizes.value();
  if (shard.context_exchange == ContextExchange::kRing) return {2 * block, 4 * block};
  if (shard.context_exchange == ContextExchange::kAllGather)
    return {shard.context * block, 2 * shard.context * block};
  const std::int64_t heads = sizes.query() + block;  // all-to-all: the same tensors once more
  return {heads, 2 * heads};
}

// One buffer for the tokens that arrive at a rank's experts and one for the outputs that go back. With the
// all-gather dispatcher the expert outputs are spread over rows for all gathered tokens before the
// reduce-scatter.
//   source  Megatron-LM @d98e8a64 core/transformer/moe/token_dispatcher.py, MoEAllGatherTokenDispatcher
std::int64_t exchange_buffers(const TransformerSpec& model, const Shard& shard) {
  const std::int64_t back = element_bytes(shard.precision) * model.hidden;
  if (shard.expert_dispatcher == ExpertDispatcher::kAllGather && shard.expert * shard.expert_tensor > 1)
    return back * (gathered_tokens(shard) + received_pairs(model, shard));
  const std::int64_t copies =
      shard.sends_by_node() ? routing(model, shard).arrived : received_pairs(model, shard);
  return copies * (dispatched_row_bytes(model, shard) + back);
}

void keep_block(SavedTensors& tensors, const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  has_experts(kind) ? keep_experts(tensors, model, shard) : keep_feed_forward(tensors, model, shard);
}

// Are the shards of weights, which are gathered, in fp32?
bool shards_fp32(const Shard& shard) {
  return shard.gathered_weights && shard.rules.fp32_shards;
}

}  // namespace

StateBytes state_bytes(const Shard& shard) {
  const std::int64_t g = element_bytes(shard.gradient), moments = 2 * operand_bytes(shard.moment);
  if (shard.precision == Precision::kFp32 || shard.autocast)
    return {.weight = 4, .gradient = 4, .optimizer = moments};
  if (!shard.master_weights)
    return {.weight = 2, .gradient = g, .optimizer = moments, .stepped = 2, .kept_gradient = g};
  const bool remainders = keeps_remainders(shard);
  const std::int64_t kept = shards_fp32(shard) ? 4 : g;
  const bool copied = kept == 2 && shard.moment == Precision::kFp32 && !remainders;
  return {.weight = 2,
          .gradient = g,
          .optimizer = (remainders ? 2 : 4) + moments,
          .kept_gradient = kept,
          .gradient_copy = copied ? 4 : 0};
}

bool masters_alone(const Shard& shard) {
  return shards_fp32(shard) && state_bytes(shard).has_masters();
}

bool keeps_remainders(const Shard& shard) {
  const bool bf16_weights = (shard.precision == Precision::kBf16 && !shard.autocast) ||
                            (shard.precision == Precision::kFp8 && !shard.fp8_parameters);
  return shard.master_weights && shard.master_remainders && bf16_weights && !shards_fp32(shard);
}

Bytes total(const SavedTensors& tensors) {
  Bytes sum{};
  for (const SavedTensor& tensor : tensors) sum += tensor.size;
  return sum;
}

SavedTensors layer_tensors(const TransformerSpec& model, const Shard& whole, LayerKind kind) {
  SC_CHECK(!has_experts(kind) || model.experts, "a layer with experts is of a model with experts");
  const Shard shard = shard_of_layer(whole, kind);
  SC_CHECK(!model.has_norms_behind() || !shard.recomputes(RecomputeModule::kEverySecondProduct),
           "a norm behind the block would read the last GEMM's output");
  SavedTensors tensors;
  keep_attention(tensors, model, shard);
  keep_block(tensors, model, shard, kind);
  return tensors;
}

std::string_view input_among_tensors(const TransformerSpec& model, const Shard& shard) {
  if (model.has_norms_before()) return "norm 1 input";
  return shard.keeps_fp8() || shard.keeps_gathered() || shard.autocast ? "" : "QKV input";
}

Bytes held_for_weight_gradients(const TransformerSpec& model, const Shard& whole, LayerKind kind) {
  const Shard shard = shard_of_layer(whole, kind);
  const LayerSizes sizes(model, shard);
  // Input of QKV, output gradient of projection, and the same of the block of up and down; output gradient of
  // QKV, projection's input. Software that keeps gathered inputs holds gathered gradients as well.
  const std::int64_t block = has_experts(kind) ? sizes.residual() : sizes.column_input();
  std::int64_t held =
      2 * (sizes.column_input() + block) + sizes.query() + sizes.key() + sizes.value() + sizes.output();
  if (!has_experts(kind)) return Bytes(sizes.input(held + sizes.up() + sizes.ffn()));
  const ExpertWidths w = expert_widths(model, shard.weight_split());
  const std::int64_t pairs = received_pairs(model, shard);
  held += pairs * sizes.element() * (w.up + w.ffn) + sizes.columns(w.shared_up + w.shared);
  return Bytes(sizes.input(held) + 2 * pairs * expert_row(model, shard));  // tokens, gradients
}

Bytes boundary_activation(const TransformerSpec& model, const Shard& shard) {
  return Bytes(LayerSizes(model, shard).stream());
}

LayerTransient layer_transient(const TransformerSpec& model, const Shard& whole, LayerKind kind) {
  const Shard shard = shard_of_layer(whole, kind);
  const LayerSizes sizes(model, shard);
  const bool gathers = shard.sequence_parallel && shard.tensor > 1;
  const RingBytes ring = ring_bytes(sizes, shard);
  std::int64_t forward = ring.forward;
  std::int64_t core = sizes.query() + sizes.key() + sizes.value() + sizes.output() + ring.backward;
  if (shard.attention == Attention::kUnfused) {
    // Forward: the scores before the softmax, and the buffer that the GEMM adds them to (Megatron-LM's
    // baddbmm). Backward: the gradients of dropout's output and input; softmax's takes the place of the latter
    // (megatron/fused_kernels/scaled_masked_softmax_cuda.cu). A ring runs block by block.
    const bool by_blocks = shard.context_exchange == ContextExchange::kRing;
    const std::int64_t scores = sizes.element() * sizes.scores() / (by_blocks ? shard.context : 1);
    forward = std::max(forward, 2 * scores);
    core = std::max(core, 2 * scores);
  }
  std::int64_t block = sizes.up();
  if (has_experts(kind)) {
    const std::int64_t row = sizes.element() * received_pairs(model, shard);
    const std::int64_t exchanges = exchange_buffers(model, shard);
    forward = std::max(forward, exchanges);
    block = exchanges + row * expert_widths(model, shard.weight_split()).up;
  }
  const std::int64_t gathered = gathers ? sizes.gathered() : 0;
  const Bytes both(sizes.stream() + gathered);
  Shard nothing_again = shard;
  nothing_again.recompute = Recompute::kNone;
  SavedTensors of_block;  // gone when attention's core runs
  keep_block(of_block, model, nothing_again, kind);
  return {.forward = Bytes(forward + gathered),
          .backward = both + std::max(Bytes(core) - total(of_block), Bytes(block)),
          .input_gradients = both + Bytes(std::max(core, block)),
          .recomputed =
              total(layer_tensors(model, nothing_again, kind)) - total(layer_tensors(model, shard, kind))};
}

Bytes weight_gradient_transient(const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  if (shard.gradient_accumulation_fusion) return Bytes(0);
  const LayerMatrices matrices = layer_matrices(model, kind, shard.weight_split());
  const std::int64_t experts = has_experts(kind) ? model.experts->count / shard.expert : 0;
  std::int64_t largest = 0;
  for (const WeightShape& weight : matrices.linear()) largest = std::max(largest, weight.size());
  for (const WeightShape& weight : matrices.linear_of_expert())  // one GEMM of all of them
    largest = std::max(largest, experts * weight.size());
  const std::int64_t cast = shard.autocast ? kFp32Bytes : 0;
  return Bytes((element_bytes(shard.precision) + cast) * largest);
}

Bytes gradient_placeholders(const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  if (!shard.software.gradient_placeholders || !shard.gradient_accumulation_fusion) return Bytes(0);
  const LayerMatrices matrices = layer_matrices(model, kind, shard.weight_split());
  std::set<WeightShape> shapes;  // all experts share one shape
  for (const WeightShape& weight : matrices.linear()) shapes.insert(weight);
  for (const WeightShape& weight : matrices.linear_of_expert()) shapes.insert(weight);
  std::int64_t parameters = 0;
  for (const WeightShape& weight : shapes) parameters += weight.size();
  return Bytes(element_bytes(shard.precision) * parameters);
}

}  // namespace stagecraft
