#include "models/attention_operators.hpp"

#include "base/check.hpp"
#include "models/elementwise.hpp"
#include "models/op_builder.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

// Queries of `shape.batch` heads against the keys of `kv_batch`.
struct Core {
  AttentionShape shape;
  std::int64_t kv_batch = 0;
  [[nodiscard]] std::int64_t queries() const { return shape.batch * shape.queries * shape.query_size; }
  [[nodiscard]] std::int64_t keys() const { return kv_batch * shape.keys * shape.query_size; }
  [[nodiscard]] std::int64_t values() const { return kv_batch * shape.keys * shape.value_size; }
  [[nodiscard]] std::int64_t output() const { return shape.batch * shape.queries * shape.value_size; }
  [[nodiscard]] std::int64_t scores() const { return shape.batch * shape.queries * shape.keys; }
};

// Of the window of a layer whose kernel has so many keys.
std::int64_t window_of(const TransformerSpec& model, LayerKind kind, std::int64_t keys) {
  if (!in_window(kind)) return 0;
  const std::int64_t tokens = model.sliding_window->tokens;
  return tokens < keys ? tokens : 0;
}

// The attention core of a rank without context parallelism, over its own tokens.
Core own_core(const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  SC_CHECK(shard.sequence % shard.context == 0, "every context rank holds as many tokens");
  const Widths w = widths(model, shard.tensor);
  const std::int64_t tokens = shard.sequence / shard.context;
  return {
      .shape = {.batch = shard.micro_batch * w.heads,
                .queries = tokens,
                .keys = tokens,
                .query_size = model.head_size,
                .value_size = value_head_size(model),
                .window = window_of(model, kind, tokens),
                .operands = operands_of(shard.attends_in_fp8() ? shard.fp8_attention : Fp8Attention::kNone)},
      .kv_batch = shard.micro_batch * w.kv_heads};
}

// Reading Q, K and V and writing O, or reading them all and the gradient of O and writing those of Q, K and V. The
// log-sum-exp is in fp32.
std::int64_t flash_bytes(const Core& core, const Shard& shard, bool backward) {
  const std::int64_t inputs = core.queries() + core.keys() + core.values();
  const std::int64_t e = element_bytes(shard.precision), operand = shard.attends_in_fp8() ? 1 : e;
  const std::int64_t read = operand * (backward ? inputs + core.output() : inputs);
  const std::int64_t others = e * (backward ? core.output() + inputs : core.output());
  return read + others + 4 * core.shape.batch * core.shape.queries;
}

// Products of Q and K have d_qk columns, those of P and V d_v.
double flops(const Core& core, double key_products, double value_products) {
  // The scores of 10^9 tokens, which are never stored, would overflow int64.
  const double scores =
      static_cast<double>(core.shape.batch * core.shape.queries) * static_cast<double>(core.shape.keys);
  return 2.0 * scores *
         (key_products * static_cast<double>(core.shape.query_size) +
          value_products * static_cast<double>(core.shape.value_size));
}

void add_flash_forward(Ops& ops, const Core& core, const Shard& shard) {
  ops.push_back({.kind = OpKind::kFlashForward,
                 .name = "flash attention",
                 .attention = core.shape,
                 .flops = Flops(flops(core, 1, 1)),
                 .bytes = Bytes(flash_bytes(core, shard, false))});
}

// Reads Q, K, V, O, dO, writes dQ, dK, dV. Five GEMMs instead of two, because QK^T is recomputed. With heads
// of two sizes the fifth is counted as the mean, 2.5 times the forward.
void add_flash_backward(Ops& ops, const Core& core, const Shard& shard) {
  ops.push_back({.kind = OpKind::kFlashBackward,
                 .name = "flash attention",
                 .attention = core.shape,
                 .flops = Flops(flops(core, 2.5, 2.5)),
                 .bytes = Bytes(flash_bytes(core, shard, true))});
}

Op product(std::string_view name, const GemmShape& shape, const Core& core, const Shard& shard) {
  GemmShape batched = shape;
  batched.batch = core.shape.batch;
  return batched_gemm(name, batched, shard);
}

void add_unfused_forward(Ops& ops, const Core& core, const TransformerSpec& model, const Shard& shard) {
  const AttentionShape& a = core.shape;
  const GemmShape scores{.m = a.queries, .n = a.keys, .k = a.query_size, .layout = GemmLayout::kTN};
  const GemmShape values{.m = a.queries, .n = a.value_size, .k = a.keys, .layout = GemmLayout::kNN};
  ops.push_back(product("scores", scores, core, shard));
  add_memory(ops, "softmax", core.scores(), kSoftmaxTraffic.of(shard).forward, shard);
  if (model.dropout) add_memory(ops, "attention dropout", core.scores(), kDropoutTraffic.forward, shard);
  ops.push_back(product("values", values, core, shard));
}

void add_unfused_backward(Ops& ops, const Core& core, const TransformerSpec& model, const Shard& shard) {
  const AttentionShape& a = core.shape;
  const GemmShape dv{.m = a.keys, .n = a.value_size, .k = a.queries, .layout = GemmLayout::kNT};
  const GemmShape dp{.m = a.queries, .n = a.keys, .k = a.value_size, .layout = GemmLayout::kTN};
  const GemmShape dq{.m = a.queries, .n = a.query_size, .k = a.keys, .layout = GemmLayout::kNN};
  const GemmShape dk{.m = a.keys, .n = a.query_size, .k = a.queries, .layout = GemmLayout::kNT};
  ops.push_back(product("values gradient", dv, core, shard));
  ops.push_back(product("scores gradient", dp, core, shard));
  if (model.dropout) add_memory(ops, "attention dropout", core.scores(), kDropoutTraffic.backward, shard);
  add_memory(ops, "softmax", core.scores(), kSoftmaxTraffic.of(shard).backward, shard);
  ops.push_back(product("queries gradient", dq, core, shard));
  ops.push_back(product("keys gradient", dk, core, shard));
}

void add_block_forward(Ops& ops, const Core& core, const TransformerSpec& model, const Shard& shard) {
  if (shard.attention == Attention::kUnfused) return add_unfused_forward(ops, core, model, shard);
  add_flash_forward(ops, core, shard);
}

void add_block_backward(Ops& ops, const Core& core, const TransformerSpec& model, const Shard& shard) {
  if (shard.attention == Attention::kUnfused) return add_unfused_backward(ops, core, model, shard);
  add_flash_backward(ops, core, shard);
}

// K and V of the rank's tokens.
std::int64_t key_value_bytes(const TransformerSpec& model, const Shard& shard) {
  const Widths w = widths(model, shard.tensor);
  return element_bytes(shard.precision) * shard.tokens() * (w.key_value + w.value);
}

void add_context(Ops& ops, std::string_view name, CollectiveKind kind, std::int64_t payload, Beside beside) {
  ops.push_back(collective_op(name, kind, Bytes(payload), beside, CommGroup::kContext));
}

// A block against another rank's keys.
Core ring_block(Core core, const Shard& shard) {
  if (shard.attention == Attention::kUnfused) return core;
  SC_CHECK(core.shape.keys % 2 == 0, "a rank holds two chunks of a sample");
  core.shape.keys /= 2;
  core.shape.causal = false;
  return core;
}

// Differences between the two directions of the ring.
struct RingPass {
  void (*add_block)(Ops&, const Core&, const TransformerSpec&, const Shard&);
  std::string_view message;
  std::int64_t tensors;  // tensors of the size of K and V per message
  Op merge;              // merge of one block's result into the sum so far
};

// A window is not the ring's: the resolver of plans says so.
void add_ring(Ops& ops, const RingPass& pass, const TransformerSpec& model, const Shard& shard) {
  const Beside beside = shard.overlap_context ? Beside::kAttentionBlock : Beside::kNothing;
  const std::int64_t message = pass.tensors * key_value_bytes(model, shard);
  const Core own = own_core(model, shard, LayerKind::kDense);
  for (std::int64_t step = 0; step < shard.context; ++step) {
    pass.add_block(ops, step == 0 ? own : ring_block(own, shard), model, shard);
    if (step + 1 < shard.context) {
      add_context(ops, pass.message, CollectiveKind::kSendReceive, message, beside);
    }
    if (step > 0) ops.push_back(pass.merge);
  }
}

void add_ring_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Widths w = widths(model, shard.tensor);
  Op merge = memory_op("context merge", shard.tokens() * w.output, kContextMergeTraffic.forward, shard);
  merge.bytes += Bytes(12 * shard.tokens() * w.heads);  // log-sum-exp in fp32: read two, write one
  add_ring(ops, {.add_block = add_block_forward, .message = "keys message", .tensors = 1, .merge = merge},
           model, shard);
}

void add_ring_backward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Widths w = widths(model, shard.tensor);
  const Op merge = memory_op("context merge", shard.tokens() * w.query, kContextMergeTraffic.backward, shard);
  add_ring(
      ops,
      {.add_block = add_block_backward, .message = "keys gradient message", .tensors = 2, .merge = merge},
      model, shard);
}

// Core of the rank's queries against all keys.
Core gathered_core(const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  Core core = own_core(model, shard, kind);
  core.shape.keys = shard.sequence;
  core.shape.window = window_of(model, kind, shard.sequence);
  return core;
}

void add_keys_gather(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t payload = shard.context * key_value_bytes(model, shard);
  add_context(ops, "keys gather", CollectiveKind::kAllGather, payload, Beside::kNothing);
}

// Core of whole samples, with the heads split again.
Core exchanged_core(const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  Core core = own_core(model, shard, kind);
  for (std::int64_t* problems : {&core.shape.batch, &core.kv_batch}) {
    SC_CHECK(*problems % (shard.micro_batch * shard.context) == 0,
             "every context rank has the same number of heads");
    *problems /= shard.context;
  }
  core.shape.queries = core.shape.keys = shard.sequence;
  core.shape.window = window_of(model, kind, shard.sequence);
  return core;
}

// Buffers of Q, K, V and O: the same bytes on either side of an exchange.
struct ExchangedBytes {
  std::int64_t queries, keys, values, output;
};

ExchangedBytes exchanged_bytes(const TransformerSpec& model, const Shard& shard) {
  const Core core = exchanged_core(model, shard, LayerKind::kDense);
  const std::int64_t e = element_bytes(shard.precision);
  return {.queries = e * core.queries(),
          .keys = e * core.keys(),
          .values = e * core.values(),
          .output = e * core.output()};
}

void add_exchange(Ops& ops, std::string_view name, std::int64_t payload) {
  add_context(ops, name, CollectiveKind::kAllToAll, payload, Beside::kNothing);
}

void add_cores_forward(Ops& ops, const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  if (shard.context == 1) return add_block_forward(ops, own_core(model, shard, kind), model, shard);
  switch (shard.context_exchange) {
    case ContextExchange::kRing:
      return add_ring_forward(ops, model, shard);
    case ContextExchange::kAllGather:
      add_keys_gather(ops, model, shard);
      return add_block_forward(ops, gathered_core(model, shard, kind), model, shard);
    case ContextExchange::kAllToAll: {
      const ExchangedBytes bytes = exchanged_bytes(model, shard);
      add_exchange(ops, "queries exchange", bytes.queries);
      add_exchange(ops, "keys exchange", bytes.keys);
      add_exchange(ops, "values exchange", bytes.values);
      add_block_forward(ops, exchanged_core(model, shard, kind), model, shard);
      return add_exchange(ops, "output exchange", bytes.output);
    }
  }
}

void add_cores_backward(Ops& ops, const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  if (shard.context == 1) return add_block_backward(ops, own_core(model, shard, kind), model, shard);
  switch (shard.context_exchange) {
    case ContextExchange::kRing:
      return add_ring_backward(ops, model, shard);
    case ContextExchange::kAllGather:
      add_keys_gather(ops, model, shard);
      add_block_backward(ops, gathered_core(model, shard, kind), model, shard);
      return add_context(ops, "keys gradient scatter", CollectiveKind::kReduceScatter,
                         shard.context * key_value_bytes(model, shard), Beside::kNothing);
    case ContextExchange::kAllToAll: {
      const ExchangedBytes bytes = exchanged_bytes(model, shard);
      add_exchange(ops, "output exchange", bytes.output);
      add_block_backward(ops, exchanged_core(model, shard, kind), model, shard);
      add_exchange(ops, "queries exchange", bytes.queries);
      add_exchange(ops, "keys exchange", bytes.keys);
      return add_exchange(ops, "values exchange", bytes.values);
    }
  }
}

// Casts of what a core in fp8 reads, by the rules of its recipe, but that no kernel needs transposed copies.
void add_core_cast(Ops& ops, std::int64_t elements, const Shard& shard) {
  if (shard.attends_in_fp8()) add_cast(ops, elements, Fp8Source::kSixteenBit, shard.of_fp8_core());
}

// Under delayed scaling results leave the kernel in fp8, and projections read 16 bit.
void add_core_cast_back(Ops& ops, std::int64_t elements, const Shard& shard) {
  if (shard.core_writes_fp8()) add_memory(ops, "fp8 cast back", elements, {.bytes = 3}, shard);
}

std::int64_t core_inputs(const TransformerSpec& model, const Shard& shard) {
  const Widths w = widths(model, shard.tensor);
  return shard.tokens() * (w.query + w.key_value + w.value);
}

std::int64_t core_outputs(const TransformerSpec& model, const Shard& shard) {
  return shard.tokens() * widths(model, shard.tensor).output;
}

}  // namespace

double windowed_share(double window, double keys) {
  const double share = window / keys;
  return share - share * share / 2;
}

void add_core_forward(Ops& ops, const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  add_core_cast(ops, core_inputs(model, shard), shard);
  add_cores_forward(ops, model, shard, kind);
  add_core_cast_back(ops, core_outputs(model, shard), shard);
}

void add_core_backward(Ops& ops, const TransformerSpec& model, const Shard& shard, LayerKind kind) {
  add_core_cast(ops, core_outputs(model, shard), shard);
  add_cores_backward(ops, model, shard, kind);
  add_core_cast_back(ops, core_inputs(model, shard), shard);
}

}  // namespace stagecraft
