#include "models/op_builder.hpp"
#include "models/operators.hpp"

namespace stagecraft {

namespace {

Op sweep(std::string_view name, std::int64_t parameters, std::int64_t bytes_per_parameter) {
  return {.name = name, .bytes = Bytes(parameters * bytes_per_parameter), .elements = parameters};
}

}  // namespace

// bf16 with fp32 gradients: 4 + 38/N bytes per parameter; fp16 with fp16 gradients: 14 + 38/N.
Ops optimizer_operators(std::int64_t parameters, std::int64_t sharded, const Shard& shard) {
  const bool half_gradients = shard.gradient != Precision::kFp32;
  Ops ops{sweep("zero gradients", parameters, element_bytes(shard.gradient))};
  if (shard.precision == Precision::kFp16) {
    ops.push_back(sweep("overflow check", parameters, 4));
    // Takes fp16 gradients to fp32 on the way, hence no copy of their own.
    ops.push_back(sweep("unscale", parameters, 8));
  } else if (half_gradients) {
    ops.push_back(sweep("gradient copy", sharded, 6));  // read 2, write 4: Adam works in fp32
  }
  ops.push_back(sweep("gradient norm", sharded, 4));
  ops.push_back(sweep("adam", sharded, 28));  // reads g, w, m, v; writes w, m, v; fp32
  if (shard.precision != Precision::kFp32) {
    ops.push_back(sweep("weight copy", sharded, 6));  // read the fp32 master, write 16 bit
  }
  return ops;
}

}  // namespace stagecraft
