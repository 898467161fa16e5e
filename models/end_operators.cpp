#include "models/elementwise.hpp"
#include "models/norm_operators.hpp"
#include "models/op_builder.hpp"
#include "models/operators.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

// Of `tokens`: all of the rank's, or a chunk of them.
Linear head(const TransformerSpec& model, const Shard& shard, std::int64_t tokens) {
  return {.name = "head",
          .tokens = tokens,
          .out = vocabulary_share(model, shard.tensor),
          .in = model.hidden,
          .sixteen_bit = true};
}

const Elementwise& loss_traffic(const Shard& shard) {
  return shard.loss() == LossKind::kCompiled ? kCompiledLossTraffic : kLossTraffic;
}

// fp32 logits need no conversion on the way: 6 bytes less in each pass.
Op loss(std::string_view name, MemoryPass pass, const TransformerSpec& model, const Shard& shard,
        std::int64_t tokens) {
  const std::int64_t per_logit = pass.bytes - (shard.precision == Precision::kFp32 ? 6 : 0);
  const std::int64_t logits = tokens * vocabulary_share(model, shard.loss_ranks());
  return {.kind = shard.fuses_loss() ? OpKind::kLoss : OpKind::kMemory,
          .name = name,
          .bytes = Bytes(per_logit * logits),
          .elements = logits,
          .kernels = pass.kernels};
}

// Maximum, target logit and sum of exponentials: one fp32 per token each. A fused loss sends the last two
// together.
//   source  Megatron-LM core/tensor_parallel/cross_entropy.py; core/fusions/fused_cross_entropy.py
void add_loss_reductions(Ops& ops, const Shard& shard, std::int64_t tokens) {
  if (shard.loss_ranks() == 1) return;
  const auto add = [&](std::string_view name, std::int64_t numbers) {
    ops.push_back(
        collective_op(name, CollectiveKind::kAllReduce, Bytes(4 * numbers * tokens), Beside::kNothing));
  };
  add("loss maximum", 1);
  if (shard.loss() == LossKind::kFused) return add("loss target and sum", 2);
  add("loss target", 1);
  add("loss sum", 1);
}

// All ranks' logits of each token, which arrive rank by rank and are put side by side.
void add_logits_gather(Ops& ops, const TransformerSpec& model, const Shard& shard, std::int64_t tokens) {
  if (!shard.gathers_logits()) return;
  const std::int64_t logits = tokens * model.vocab;
  const Bytes bytes(element_bytes(shard.precision) * logits);
  ops.push_back(collective_op("logits gather", CollectiveKind::kAllGather, bytes, Beside::kNothing));
  add_memory(ops, "logits side by side", logits, kLookupTraffic, shard);
}

Ops embedding_weight_gradient(const TransformerSpec& model, const Shard& shard) {
  const std::int64_t accumulate = 2 * element_bytes(shard.gradient);  // read and write
  const std::int64_t elements = shard.tokens() * model.hidden;
  const std::int64_t read = element_bytes(shard.precision) * elements;
  Ops ops{{.name = "embedding", .bytes = Bytes(read + accumulate * elements), .elements = elements}};
  if (model.position ==
      Position::kLearned) {  // a sum over the samples into the s/c rows of the rank's tokens
    const std::int64_t rows = shard.tokens() / shard.micro_batch;
    ops.push_back(
        {.name = "positions", .bytes = Bytes(read + accumulate * rows * model.hidden), .elements = elements});
  }
  return ops;
}

}  // namespace

LayerOps embedding_operators(const TransformerSpec& model, const Shard& whole) {
  const Shard shard = whole.of_stream();
  const std::int64_t elements = shard.tokens() * model.hidden;
  const std::int64_t local = shard.local_tokens() * model.hidden;
  LayerOps ends;
  add_memory(ends.forward, "embedding", elements, kLookupTraffic, shard);
  if (shard.embedding_ranks() > 1)
    add_reduce(ends.forward, "embedding reduce", model.hidden, shard, Beside::kNothing);
  if (model.position == Position::kLearned) {
    add_memory(ends.forward, "positions", elements, kPositionTraffic, shard);
  }
  if (model.dropout) {
    add_memory(ends.forward, "embedding dropout", local, kDropoutTraffic.forward, shard);
    add_memory(ends.input_gradient, "embedding dropout", local, kDropoutTraffic.backward, shard);
  }
  // The adjoint of the forward's reduce-scatter; that of an all-reduce is the identity.
  add_gather(ends.input_gradient,
             {.name = "embedding gradient gather", .what = GatherOf::kGradient, .width = model.hidden},
             sixteen_bit(shard));
  ends.weight_gradient = embedding_weight_gradient(model, shard);
  return ends;
}

LayerOps head_operators(const TransformerSpec& model, const Shard& shard) {
  const Norm norm = residual_norm("final norm", model, shard);
  const Shard of_head = shard_of_head(shard);
  LayerOps ends;
  add_norm_forward(ends.forward, norm, model, shard);
  add_gather(ends.forward, {.name = "head gather", .width = model.hidden}, of_head);
  const std::vector<std::int64_t> chunks = loss_chunks(shard);
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    const std::int64_t tokens = chunks[chunk];
    Linear product = head(model, shard, tokens);
    product.weights_cast = chunk > 0;
    add_forward(ends.forward, product, shard);
    add_logits_gather(ends.forward, model, shard, tokens);
    ends.forward.push_back(loss("loss", loss_traffic(shard).forward, model, shard, tokens));
    add_loss_reductions(ends.forward, shard, tokens);
  }

  for (const std::int64_t tokens : chunks)
    ends.input_gradient.push_back(loss("loss gradient", loss_traffic(shard).backward, model, shard, tokens));
  add_gather(ends.input_gradient,
             {.name = "head input gather",
              .what = GatherOf::kInputAgain,
              .width = model.hidden,
              .beside = beside_weight_gradient(shard)},
             of_head);
  for (const std::int64_t tokens : chunks)
    add_input_gradient(ends.input_gradient, head(model, shard, tokens), shard);
  add_reduce(ends.input_gradient, "head gradient reduce", model.hidden, shard, beside_weight_gradient(shard));
  add_norm_backward(ends.input_gradient, norm, model, shard, Residual::kNone);

  for (const std::int64_t tokens : chunks)
    add_weight_gradient(ends.weight_gradient, head(model, shard, tokens), shard);
  return ends;
}

}  // namespace stagecraft
