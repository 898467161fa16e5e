#include "models/projection_operators.hpp"

#include "base/check.hpp"
#include "models/elementwise.hpp"
#include "models/norm_operators.hpp"
#include "models/op_builder.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

void add_transpose(Ops& ops, std::string_view name, std::int64_t elements, const Shard& shard) {
  add_memory(ops, name, elements, kTransposeTraffic.forward, shard);
}

// Batched GEMMs need Q, K and V separate; fused flash kernels read them with strides.
void add_split(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (shard.attention == Attention::kFlash && shard.fused_kernels) return;
  add_transpose(ops, "qkv split", shard.tokens() * widths(model, shard.tensor).qkv(), shard);
}

void add_head_transposition(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (shard.attention == Attention::kFlash) return;
  add_transpose(ops, "head transposition", shard.tokens() * widths(model, shard.tensor).output, shard);
}

const Elementwise& rope_traffic(const Shard& shard) {
  return kRopeTraffic.of(fuses(shard, LateFusion::kRope));
}

// Grouped heads.

Linear qkv(const TransformerSpec& model, const Shard& shard) {
  return {.name = "qkv",
          .tokens = shard.tokens(),
          .out = widths(model, shard.tensor).qkv(),
          .in = model.hidden,
          .bias = model.qkv_bias,
          .input = gathered_or(from_block_input(model, shard), shard)};
}

// Over each of `heads`, or over all of them together.
Norm norm_of_heads(std::string_view name, std::int64_t heads, const TransformerSpec& model,
                   const Shard& shard) {
  const bool whole = model.qk_norm == QkNorm::kWidth;
  return {.name = name,
          .rows = shard.tokens() * (whole ? 1 : heads),
          .width = model.head_size * (whole ? heads : 1)};
}

Norm query_norm(const TransformerSpec& model, const Shard& shard) {
  return norm_of_heads("query norm", widths(model, shard.tensor).heads, model, shard);
}

Norm key_norm(const TransformerSpec& model, const Shard& shard) {
  return norm_of_heads("key norm", widths(model, shard.tensor).kv_heads, model, shard);
}

void add_rope(Ops& ops, MemoryPass pass, const TransformerSpec& model, const Shard& shard) {
  if (model.position != Position::kRope) return;
  const Widths w = widths(model, shard.tensor);
  add_memory(ops, "rope", shard.tokens() * (w.query + w.key_value), pass, shard);
}

// Products of the gathered input: all of QKV, or some of it.
void add_gathered_forward(Ops& ops, const Linear& products, const TransformerSpec& model,
                          const Shard& shard) {
  add_gather(ops,
             {.name = "qkv gather",
              .what = gather_of_block_input(model, shard),
              .width = model.hidden,
              .beside = beside_next_gemm(shard)},
             shard);
  add_forward(ops, products, shard);
}

void add_head_norms_and_rope(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (model.qk_norm != QkNorm::kNone) {
    add_norm_forward(ops, query_norm(model, shard), model, shard);
    add_norm_forward(ops, key_norm(model, shard), model, shard);
  }
  add_rope(ops, rope_traffic(shard).forward, model, shard);
}

void add_grouped_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_gathered_forward(ops, qkv(model, shard), model, shard);
  add_split(ops, model, shard);
  add_head_norms_and_rope(ops, model, shard);
}

void add_grouped_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_rope(ops, rope_traffic(shard).backward, model, shard);
  if (model.qk_norm != QkNorm::kNone) {
    add_norm_backward(ops, key_norm(model, shard), model, shard, Residual::kNone);
    add_norm_backward(ops, query_norm(model, shard), model, shard, Residual::kNone);
  }
  add_split(ops, model, shard);
  add_gather(ops,
             {.name = "qkv input gather",
              .what = GatherOf::kInputAgain,
              .width = model.hidden,
              .beside = beside_weight_gradient(shard)},
             shard);
  add_input_gradient(ops, qkv(model, shard), shard);
  add_reduce(ops, "qkv gradient reduce", model.hidden, shard, beside_weight_gradient(shard));
}

// Latent attention.

const LatentAttentionSpec& latent(const TransformerSpec& model) {
  SC_CHECK(model.latent_attention.has_value(), "the model has latent attention");
  return *model.latent_attention;
}

bool has_query_rank(const TransformerSpec& model) {
  return latent(model).query_rank > 0;
}

struct LatentLinears {
  Linear query_down, kv_down;  // on every rank
  Linear query_up, kv_up;      // split by heads
};

LatentLinears latent_linears(const TransformerSpec& model, const Shard& shard) {
  const LatentAttentionSpec& ranks = latent(model);
  const Widths w = widths(model, shard.tensor);
  const std::int64_t local = shard.local_tokens(), t = shard.tokens(), h = model.hidden;
  const std::int64_t kv_out = w.heads * (ranks.nope_head_size + ranks.value_head_size);
  const Fp8Source query = has_query_rank(model) ? from_norm(model, shard) : Fp8Source::kSixteenBit;
  return {
      .query_down = {.name = "query down", .tokens = local, .out = ranks.query_rank, .in = h},
      .kv_down = {.name = "kv down", .tokens = local, .out = ranks.kv_rank + ranks.rope_head_size, .in = h},
      .query_up = {.name = "query up",
                   .tokens = t,
                   .out = w.query,
                   .in = has_query_rank(model) ? ranks.query_rank : h,
                   .input = gathered_or(query, shard)},
      .kv_up = {.name = "kv up",
                .tokens = t,
                .out = kv_out,
                .in = ranks.kv_rank,
                .input = gathered_or(from_norm(model, shard), shard)}};
}

Norm query_latent_norm(const TransformerSpec& model, const Shard& shard) {
  return {.name = "query latent norm",
          .rows = shard.local_tokens(),
          .width = latent(model).query_rank,
          .feeds_products = true};
}

Norm kv_latent_norm(const TransformerSpec& model, const Shard& shard) {
  return {.name = "kv latent norm",
          .rows = shard.local_tokens(),
          .width = latent(model).kv_rank,
          .feeds_products = true};
}

// The query's part of every head, and one key for all heads.
std::int64_t rotated_elements(const TransformerSpec& model, const Shard& shard) {
  return shard.tokens() * (widths(model, shard.tensor).heads + 1) * latent(model).rope_head_size;
}

// The compressed keys and values travel with the rope key.
std::int64_t kv_latent_width(const TransformerSpec& model) {
  return latent(model).kv_rank + latent(model).rope_head_size;
}

void add_latent_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const LatentLinears linear = latent_linears(model, shard);
  if (has_query_rank(model)) {
    add_forward(ops, linear.query_down, shard);
    add_norm_forward(ops, query_latent_norm(model, shard), model, shard);
  }
  add_forward(ops, linear.kv_down, shard);
  add_norm_forward(ops, kv_latent_norm(model, shard), model, shard);
  add_latent_up_forward(ops, model, shard);
}

void add_latent_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const LatentLinears linear = latent_linears(model, shard);
  const std::int64_t keys = shard.tokens() * widths(model, shard.tensor).key_value;
  add_split(ops, model, shard);
  add_memory(ops, "key concatenation", keys, kConcatenationTraffic.of(shard).backward, shard);
  add_memory(ops, "rope", rotated_elements(model, shard), rope_traffic(shard).backward, shard);
  add_gather(ops,
             {.name = "kv input gather",
              .what = GatherOf::kInputAgain,
              .width = latent(model).kv_rank,
              .beside = beside_weight_gradient(shard)},
             shard);
  add_input_gradient(ops, linear.kv_up, shard);
  add_reduce(ops, "kv gradient reduce", kv_latent_width(model), shard, beside_weight_gradient(shard));
  add_gather(ops,
             {.name = "query input gather",
              .what = GatherOf::kInputAgain,
              .width = linear.query_up.in,
              .beside = beside_weight_gradient(shard)},
             shard);
  add_input_gradient(ops, linear.query_up, shard);
  add_reduce(ops, "query gradient reduce", linear.query_up.in, shard, beside_weight_gradient(shard));
  add_norm_backward(ops, kv_latent_norm(model, shard), model, shard, Residual::kNone);
  add_input_gradient(ops, linear.kv_down, shard);
  if (has_query_rank(model)) {
    add_norm_backward(ops, query_latent_norm(model, shard), model, shard, Residual::kNone);
    add_input_gradient(ops, linear.query_down, shard);
  }
  // The hidden vectors fed two projections.
  add_memory(ops, "latent gradient sum", shard.local_tokens() * model.hidden, kSumTraffic, shard);
}

void add_latent_weight_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const LatentLinears linear = latent_linears(model, shard);
  add_weight_gradient(ops, linear.kv_up, shard);
  add_weight_gradient(ops, linear.query_up, shard);
  add_weight_gradient(ops, linear.kv_down, shard);
  if (has_query_rank(model)) add_weight_gradient(ops, linear.query_down, shard);
}

Linear projection(const TransformerSpec& model, const Shard& shard) {
  return {.name = "projection",
          .tokens = shard.tokens(),
          .out = model.hidden,
          .in = widths(model, shard.tensor).output,
          .bias = model.biases,
          .gradient = gathered_or(Fp8Source::kSixteenBit, shard)};
}

}  // namespace

void add_query_key_value_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (model.latent_attention) return add_latent_forward(ops, model, shard);
  add_grouped_forward(ops, model, shard);
}

void add_key_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  SC_CHECK(!model.latent_attention, "products of grouped heads");
  const Widths w = widths(model, shard.tensor);
  Linear products = qkv(model, shard);
  products.out = w.key_value;
  add_gathered_forward(ops, products, model, shard);
  add_head_norms_and_rope(ops, model, shard);
}

void add_query_key_value_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (model.latent_attention) return add_latent_input_gradient(ops, model, shard);
  add_grouped_input_gradient(ops, model, shard);
}

void add_query_key_value_weight_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (model.latent_attention) return add_latent_weight_gradient(ops, model, shard);
  add_weight_gradient(ops, qkv(model, shard), shard);
}

void add_latent_up_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const LatentLinears linear = latent_linears(model, shard);
  const std::int64_t keys = shard.tokens() * widths(model, shard.tensor).key_value;
  add_gather(ops,
             {.name = "query gather",
              .what = has_query_rank(model) ? gather_of_norm(model, shard) : GatherOf::kInput,
              .width = linear.query_up.in,
              .beside = beside_next_gemm(shard)},
             shard);
  add_forward(ops, linear.query_up, shard);
  add_gather(ops,
             {.name = "kv gather",
              .what = gather_of_norm(model, shard),
              .width = kv_latent_width(model),
              .beside = beside_next_gemm(shard)},
             shard);
  add_forward(ops, linear.kv_up, shard);
  add_memory(ops, "rope", rotated_elements(model, shard), rope_traffic(shard).forward, shard);
  add_memory(ops, "key concatenation", keys, kConcatenationTraffic.of(shard).forward, shard);
  add_split(ops, model, shard);
}

void add_projection_product(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_head_transposition(ops, model, shard);
  add_forward(ops, projection(model, shard), shard);
}

void add_projection_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_projection_product(ops, model, shard);
  add_reduce(ops, "projection reduce", model.hidden, shard, beside_previous_gemm(shard));
}

void add_projection_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_gather(ops,
             {.name = "projection gradient gather",
              .what = GatherOf::kGradient,
              .width = model.hidden,
              .beside = beside_next_gemm(shard)},
             shard);
  add_input_gradient(ops, projection(model, shard), shard);
  add_head_transposition(ops, model, shard);
}

void add_projection_weight_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_weight_gradient(ops, projection(model, shard), shard);
}

}  // namespace stagecraft
