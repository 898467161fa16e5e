// Operators of multi-token prediction before its layer: the hidden vector and the embedding of the next token
// are normalised, concatenated and projected from 2h to h. The projection is column-parallel with its output
// gathered. Sequence parallelism gathers its input and keeps the rank's tokens of the output. The embedding
// of the shifted tokens is looked up anew for each prediction, and never recomputed.
//
//   source  DeepSeek-AI (arXiv 2412.19437), section 2.2, eq. 21; Megatron-LM
//           core/transformer/multi_token_prediction.py @13f8f526 and @d98e8a64.
#include "base/ceil_div.hpp"
#include "models/elementwise.hpp"
#include "models/norm_operators.hpp"
#include "models/op_builder.hpp"
#include "models/operators.hpp"

namespace stagecraft {

namespace {

Linear mtp_projection(const TransformerSpec& model, const Shard& shard) {
  return {.name = "mtp projection",
          .tokens = shard.tokens(),
          .out = ceil_div(model.hidden, shard.tensor),
          .in = 2 * model.hidden,
          .input = gathered_or(Fp8Source::kSixteenBit, shard)};
}

void add_concatenation(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_memory(ops, "mtp concatenation", shard.local_tokens() * 2 * model.hidden, kTransposeTraffic.forward,
             shard);
}

void add_output_gather(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (shard.tensor == 1) return;
  const Bytes payload(element_bytes(shard.precision) * shard.tokens() * model.hidden);
  ops.push_back(collective_op("mtp output gather", CollectiveKind::kAllGather, payload, Beside::kNothing));
}

void append(Ops& ops, const Ops& more) {
  ops.insert(ops.end(), more.begin(), more.end());
}

}  // namespace

LayerOps mtp_operators(const TransformerSpec& model, const Shard& shard) {
  const Linear linear = mtp_projection(model, shard);
  const Norm hidden = residual_norm("mtp hidden norm", model, shard);
  const Norm embedding = residual_norm("mtp embedding norm", model, shard);
  const LayerOps lookup = embedding_operators(model, shard);
  LayerOps ops;
  add_norm_forward(ops.forward, embedding, model, shard);
  add_norm_forward(ops.forward, hidden, model, shard);
  add_concatenation(ops.forward, model, shard);
  add_gather(ops.forward,
             {.name = "mtp gather", .width = 2 * model.hidden, .beside = beside_next_gemm(shard)}, shard);
  add_forward(ops.forward, linear, shard);
  add_output_gather(ops.forward, model, shard);
  if (shard.recompute == Recompute::kFull) ops.recompute = ops.forward;
  ops.forward.insert(ops.forward.begin(), lookup.forward.begin(), lookup.forward.end());

  // The adjoint of keeping the rank's tokens; without sequence parallelism each rank takes its columns.
  add_gather(ops.input_gradient,
             {.name = "mtp gradient gather", .what = GatherOf::kGradient, .width = model.hidden},
             sixteen_bit(shard));
  add_gather(ops.input_gradient,
             {.name = "mtp input gather",
              .what = GatherOf::kInputAgain,
              .width = 2 * model.hidden,
              .beside = beside_weight_gradient(shard)},
             shard);
  add_input_gradient(ops.input_gradient, linear, shard);
  add_reduce(ops.input_gradient, "mtp gradient reduce", 2 * model.hidden, shard,
             beside_weight_gradient(shard));
  add_concatenation(ops.input_gradient, model, shard);
  add_norm_backward(ops.input_gradient, hidden, model, shard, Residual::kNone);
  add_norm_backward(ops.input_gradient, embedding, model, shard, Residual::kNone);
  append(ops.input_gradient, lookup.input_gradient);

  add_weight_gradient(ops.weight_gradient, linear, shard);
  append(ops.weight_gradient, lookup.weight_gradient);
  return ops;
}

}  // namespace stagecraft
