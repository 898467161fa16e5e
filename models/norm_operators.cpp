#include "models/norm_operators.hpp"

#include "models/elementwise.hpp"
#include "models/fp8_casts.hpp"

namespace stagecraft {

namespace {

const Elementwise& norm_traffic(const Norm& norm, const TransformerSpec& model, const Shard& shard) {
  const bool layer_norm = model.normalization == Normalization::kLayerNorm, fused = fuses_norm(model, shard);
  if (shard.autocast && norm.of_stream)
    return (layer_norm ? kStreamLayerNormTraffic : kStreamRmsNormTraffic).of(fused);
  return (layer_norm ? kLayerNormTraffic : kRmsNormTraffic).of(fused);
}

const FusedOrEager& residual_gradient_traffic(const Shard& shard) {
  return shard.autocast ? kStreamGradientTraffic : kResidualGradientTraffic;
}

// The sum of both gradients of the residual stream in a kernel of its own.
void add_residual_gradient(Ops& ops, std::int64_t elements, const Shard& shard) {
  add_memory(ops, "residual gradient", elements, residual_gradient_traffic(shard).eager.backward, shard);
}

// The residual stream, or its gradient, cast for a block that has no norm before it.
void add_stream_cast(Ops& ops, std::int64_t elements, const Shard& shard) {
  if (shard.autocast) add_memory(ops, "autocast", elements, kAutocastTraffic, shard);
}

}  // namespace

bool fuses_norm(const TransformerSpec& model, const Shard& shard) {
  return model.normalization == Normalization::kLayerNorm ? shard.fused_kernels
                                                          : fuses(shard, LateFusion::kRmsNorm);
}

Fp8Source from_norm(const TransformerSpec& model, const Shard& shard) {
  return fuses_norm(model, shard) ? Fp8Source::kNorm : Fp8Source::kSixteenBit;
}

GatherOf gather_of_norm(const TransformerSpec& model, const Shard& shard) {
  return fuses_norm(model, shard) ? GatherOf::kNormedInput : GatherOf::kInput;
}

Fp8Source from_block_input(const TransformerSpec& model, const Shard& shard) {
  return model.has_norms_before() ? from_norm(model, shard) : Fp8Source::kSixteenBit;
}

GatherOf gather_of_block_input(const TransformerSpec& model, const Shard& shard) {
  return model.has_norms_before() ? gather_of_norm(model, shard) : GatherOf::kInput;
}

Norm residual_norm(std::string_view name, const TransformerSpec& model, const Shard& shard) {
  return {.name = name, .rows = shard.local_tokens(), .width = model.hidden, .of_stream = true};
}

void add_norm_forward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard) {
  MemoryPass pass = norm_traffic(norm, model, shard).forward;
  if (norm.feeds_products && fuses_norm(model, shard) && norm_writes_fp8(shard)) pass.bytes -= 1;
  Op op = memory_op(norm.name, norm.rows * norm.width, pass, shard);
  // Statistics in fp32: mean and deviation, or the root mean square alone.
  op.bytes += Bytes(norm.rows * (model.normalization == Normalization::kLayerNorm ? 8 : 4));
  ops.push_back(op);
}

void add_norm_backward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard,
                       Residual residual) {
  const std::int64_t elements = norm.rows * norm.width;
  MemoryPass pass = norm_traffic(norm, model, shard).backward;
  const bool fused = fuses_norm(model, shard);
  if (residual == Residual::kSummed && fused)
    pass.bytes += residual_gradient_traffic(shard).fused.backward.bytes;
  Op op = memory_op(norm.name, elements, pass, shard);
  op.bytes += Bytes(4 * norm.width);  // weight-gradient partials
  ops.push_back(op);
  if (residual == Residual::kSummed && !fused) add_residual_gradient(ops, elements, shard);
}

void add_norm_before_forward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard) {
  if (model.has_norms_before()) return add_norm_forward(ops, norm, model, shard);
  add_stream_cast(ops, norm.rows * norm.width, shard);
}

void add_norm_before_backward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard) {
  if (model.has_norms_before()) return add_norm_backward(ops, norm, model, shard, Residual::kSummed);
  add_stream_cast(ops, norm.rows * norm.width, shard);
  add_residual_gradient(ops, norm.rows * norm.width, shard);
}

void add_norm_behind_forward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard) {
  if (model.has_norms_behind()) add_norm_forward(ops, norm, model, shard);
}

void add_norm_behind_backward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard) {
  if (model.has_norms_behind()) add_norm_backward(ops, norm, model, shard, Residual::kNone);
}

void add_residual_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t elements = shard.local_tokens() * model.hidden;
  const std::string_view name = model.dropout ? "dropout add" : "residual add";
  MemoryPass pass =
      (model.dropout && shard.fused_kernels ? kFusedDropoutAddTraffic : kResidualAddTraffic).forward;
  if (shard.autocast) pass.bytes += kStreamAddBytes;
  if (shard.fused_kernels) return add_memory(ops, name, elements, pass, shard);
  const auto join = [&pass](const Elementwise& part) {
    pass.bytes += part.forward.bytes;
    pass.kernels += part.forward.kernels;
  };
  if (model.biases) join(kBiasTraffic);
  if (model.dropout) join(kDropoutTraffic);
  add_memory(ops, name, elements, pass, shard);
}

void add_residual_backward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t elements = shard.local_tokens() * model.hidden;
  if (model.dropout) add_memory(ops, "dropout add", elements, kDropoutTraffic.backward, shard);
}

}  // namespace stagecraft
