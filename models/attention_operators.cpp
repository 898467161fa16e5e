#include "models/attention_operators.hpp"

#include "models/elementwise.hpp"
#include "models/op_builder.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

struct Core {
  std::int64_t s = 0, q = 0, batch = 0;  // batch = b a/t problems
  [[nodiscard]] std::int64_t scores() const { return batch * s * s; }
  [[nodiscard]] GemmShape square(GemmLayout layout) const {
    return {.m = s, .n = s, .k = q, .batch = batch, .layout = layout};
  }
  [[nodiscard]] GemmShape thin(GemmLayout layout) const {
    return {.m = s, .n = q, .k = s, .batch = batch, .layout = layout};
  }
};

Core core(const TransformerSpec& model, const Shard& shard) {
  const Widths w = widths(model, shard.tensor);
  return {.s = shard.sequence, .q = model.head_size, .batch = shard.micro_batch * w.heads};
}

// `passes` times reading or writing Q, K, V and O, and the log-sum-exp in fp32.
Op flash(const TransformerSpec& model, const Shard& shard, std::int64_t passes, double flops_per_score) {
  const Widths w = widths(model, shard.tensor);
  const std::int64_t tensors = element_bytes(shard.precision) * (w.query + w.key_value) * passes;
  const Core c = core(model, shard);
  return {.name = "flash attention",
          .flops = Flops(flops_per_score * static_cast<double>(c.scores()) * static_cast<double>(c.q)),
          .bytes = Bytes(shard.tokens() * (tensors + 4 * w.heads))};
}

void add_unfused_forward(Ops& ops, const Core& c, const TransformerSpec& model, const Shard& shard) {
  ops.push_back(batched_gemm("scores", c.square(GemmLayout::kTN), shard));
  add_memory(ops, "softmax", c.scores(), kSoftmaxTraffic.of(shard).forward, shard);
  if (model.dropout) add_memory(ops, "attention dropout", c.scores(), kDropoutTraffic.forward, shard);
  ops.push_back(batched_gemm("values", c.thin(GemmLayout::kNN), shard));
}

void add_unfused_backward(Ops& ops, const Core& c, const TransformerSpec& model, const Shard& shard) {
  ops.push_back(batched_gemm("values gradient", c.thin(GemmLayout::kNT), shard));    // dV
  ops.push_back(batched_gemm("scores gradient", c.square(GemmLayout::kTN), shard));  // dP
  if (model.dropout) add_memory(ops, "attention dropout", c.scores(), kDropoutTraffic.backward, shard);
  add_memory(ops, "softmax", c.scores(), kSoftmaxTraffic.of(shard).backward, shard);
  ops.push_back(batched_gemm("queries gradient", c.thin(GemmLayout::kNN), shard));  // dQ
  ops.push_back(batched_gemm("keys gradient", c.thin(GemmLayout::kNT), shard));     // dK
}

}  // namespace

void add_core_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (shard.attention == Attention::kUnfused)
    return add_unfused_forward(ops, core(model, shard), model, shard);
  // Reads Q, K, V and writes O.
  Op op = flash(model, shard, 2, 4.0);
  op.kind = OpKind::kFlashForward;
  ops.push_back(op);
}

void add_core_backward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (shard.attention == Attention::kUnfused)
    return add_unfused_backward(ops, core(model, shard), model, shard);
  // Reads Q, K, V, O, dO, writes dQ, dK, dV. Five products in place of two: QK^T is computed again.
  Op op = flash(model, shard, 4, 10.0);
  op.kind = OpKind::kFlashBackward;
  ops.push_back(op);
}

}  // namespace stagecraft
