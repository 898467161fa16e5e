#include "models/memory.hpp"
#include "models/op_builder.hpp"
#include "models/operators.hpp"

namespace stagecraft {

namespace {

Op sweep(std::string_view name, std::int64_t parameters, std::int64_t bytes_per_parameter) {
  return {.name = name, .bytes = Bytes(parameters * bytes_per_parameter), .elements = parameters};
}

// Decay w; m from m and g; scale v; v from v and g; root of v; that over the bias; plus epsilon; w from w, m and the root.
// They read and write w four times, g twice, m three, v five and the root six times.
//   source  torch/optim/adamw.py, _multi_tensor_adamw
constexpr int kForeachKernels = 8;

}  // namespace

// bf16 with fp32 gradients: 4 + 38/N bytes per parameter; fp16 with fp16 gradients: 14 + 38/N; bf16 with bf16
// gradients and moments: 2 + 26/N, with remainders for masters 2 + 20/N, and without masters 2 + 16/N.
Ops optimizer_operators(std::int64_t parameters, std::int64_t sharded, const Shard& shard) {
  const StateBytes state = state_bytes(shard);
  const bool copied = state.gradient_copy > 0;
  const std::int64_t read = copied ? state.gradient_copy : state.kept_gradient;
  Ops ops;
  if (!shard.rules.fresh_gradients)
    ops.push_back(sweep("zero gradients", parameters, element_bytes(shard.gradient)));
  if (shard.precision == Precision::kFp16) {
    ops.push_back(sweep("overflow check", parameters, 4));
    // Takes fp16 gradients to fp32 on the way, hence no copy of their own.
    ops.push_back(sweep("unscale", parameters, 8));
  } else if (copied) {
    ops.push_back(sweep("gradient copy", sharded, 6));  // read 2, write 4: Adam works in fp32
  }
  ops.push_back(sweep("gradient norm", sharded, read));
  // Reads g, w, m, v; writes w, m, v. Two halves of w include the 16-bit weight.
  const std::int64_t moment = operand_bytes(shard.moment);
  if (shard.foreach_step) {
    ops.push_back(sweep("adam", sharded, 2 * read + 4 * state.stepped + 14 * moment));
    ops.back().kernels = kForeachKernels;
  } else {
    ops.push_back(sweep("adam", sharded, read + 2 * state.stepped + 4 * moment));
  }
  if (state.has_masters() && !keeps_remainders(shard)) {
    ops.push_back(sweep("weight copy", sharded, 6));  // read the fp32 master, write 16 bit
  }
  return ops;
}

}  // namespace stagecraft
