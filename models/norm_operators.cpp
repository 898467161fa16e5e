#include "models/norm_operators.hpp"

#include "models/elementwise.hpp"

namespace stagecraft {

namespace {

const FusedOrEager& norm_traffic(const TransformerSpec& model) {
  return model.normalization == Normalization::kLayerNorm ? kLayerNormTraffic : kRmsNormTraffic;
}

}  // namespace

void add_norm_forward(Ops& ops, std::string_view name, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t tokens = shard.local_tokens();
  Op op = memory_op(name, tokens * model.hidden, norm_traffic(model).of(shard).forward, shard);
  // Statistics in fp32: mean and deviation, or the root mean square alone.
  op.bytes += Bytes(tokens * (model.normalization == Normalization::kLayerNorm ? 8 : 4));
  ops.push_back(op);
}

void add_norm_backward(Ops& ops, std::string_view name, const TransformerSpec& model, const Shard& shard,
                       Residual residual) {
  const std::int64_t elements = shard.local_tokens() * model.hidden;
  Pass pass = norm_traffic(model).of(shard).backward;
  const Pass sum = kResidualGradientTraffic.of(shard).backward;
  if (residual == Residual::kSummed && shard.fused_kernels) pass.bytes += sum.bytes;
  Op op = memory_op(name, elements, pass, shard);
  op.bytes += Bytes(4 * model.hidden);  // weight-gradient partials
  ops.push_back(op);
  if (residual == Residual::kSummed && !shard.fused_kernels) {
    add_memory(ops, "residual gradient", elements, sum, shard);
  }
}

}  // namespace stagecraft
