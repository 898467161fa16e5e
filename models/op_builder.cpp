#include "models/op_builder.hpp"

#include "base/check.hpp"

namespace stagecraft {

namespace {

Flops gemm_flops(const GemmShape& shape) {
  return Flops(2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
               static_cast<double>(shape.k) * static_cast<double>(shape.batch));
}

Op gemm_op(std::string_view name, const GemmShape& shape, std::int64_t bytes) {
  return {
      .kind = OpKind::kGemm, .name = name, .gemm = shape, .flops = gemm_flops(shape), .bytes = Bytes(bytes)};
}

std::int64_t operands_and_result(const GemmShape& shape, const Shard& shard) {
  const std::int64_t read = shape.m * shape.k + shape.k * shape.n;
  return shape.batch *
         (operand_bytes(shard.precision) * read + element_bytes(shard.precision) * shape.m * shape.n);
}

// Delayed scaling: read 16 bit, write 8 bit, and a transposed copy (read 1, write 1) for the other pass.
void add_cast(Ops& ops, std::int64_t elements, const Shard& shard) {
  if (shard.precision == Precision::kFp8) {
    ops.push_back(memory_op("fp8 cast", elements, {.bytes = 5, .kernels = 2}, shard));
  }
}

}  // namespace

std::int64_t element_bytes(Precision precision) {
  return precision == Precision::kFp32 ? 4 : 2;
}

std::int64_t operand_bytes(Precision precision) {
  return precision == Precision::kFp8 ? 1 : element_bytes(precision);
}

void add_forward(Ops& ops, const Linear& linear, const Shard& shard) {
  const GemmShape shape{.m = linear.tokens, .n = linear.out, .k = linear.in, .layout = GemmLayout::kTN};
  add_cast(ops, linear.tokens * linear.in, shard);
  ops.push_back(gemm_op(linear.name, shape, operands_and_result(shape, shard)));
}

void add_input_gradient(Ops& ops, const Linear& linear, const Shard& shard) {
  const GemmShape shape{.m = linear.tokens, .n = linear.in, .k = linear.out, .layout = GemmLayout::kNN};
  add_cast(ops, linear.tokens * linear.out, shard);
  ops.push_back(gemm_op(linear.name, shape, operands_and_result(shape, shard)));
}

void add_weight_gradient(Ops& ops, const Linear& linear, const Shard& shard) {
  const GemmShape shape{.m = linear.out, .n = linear.in, .k = linear.tokens, .layout = GemmLayout::kNT};
  const std::int64_t weights = linear.in * linear.out;
  const std::int64_t read = operand_bytes(shard.precision) * linear.tokens * (linear.in + linear.out);
  const std::int64_t accumulate = 2 * element_bytes(shard.gradient) * weights;  // read and write
  if (shard.gradient_accumulation_fusion) {
    ops.push_back(gemm_op(linear.name, shape, read + accumulate));
  } else {
    const std::int64_t fresh = element_bytes(shard.precision) * weights;
    ops.push_back(gemm_op(linear.name, shape, read + fresh));
    ops.push_back({.name = "gradient accumulation", .bytes = Bytes(fresh + accumulate)});
  }
  // A column sum of dY; fused stacks have it in a GEMM's epilogue.
  if (linear.bias && !shard.fused_kernels) {
    ops.push_back(memory_op("bias gradient", linear.tokens * linear.out, {.bytes = 2}, shard));
  }
}

Op batched_gemm(std::string_view name, const GemmShape& shape, const Shard& shard) {
  Op op = gemm_op(name, shape, operands_and_result(shape, shard));
  op.kind = OpKind::kBatchedGemm;
  return op;
}

Op memory_op(std::string_view name, std::int64_t elements, Pass pass, const Shard& shard) {
  SC_CHECK(pass.kernels > 0, "a pass that does nothing is no operator");
  return {.name = name,
          .bytes = Bytes(elements * pass.bytes * element_bytes(shard.precision) / 2),
          .kernels = pass.kernels};
}

void add_memory(Ops& ops, std::string_view name, std::int64_t elements, Pass pass, const Shard& shard) {
  if (pass.kernels > 0) ops.push_back(memory_op(name, elements, pass, shard));
}

Op collective_op(std::string_view name, CollectiveKind kind, Bytes payload, Beside beside) {
  return {.kind = OpKind::kCollective, .name = name, .bytes = payload, .collective = kind, .beside = beside};
}

void add_gather(Ops& ops, std::string_view name, std::int64_t width, const Shard& shard, Beside beside) {
  if (shard.tensor == 1 || !shard.sequence_parallel) return;
  const Bytes payload(element_bytes(shard.precision) * shard.tokens() * width);
  ops.push_back(collective_op(name, CollectiveKind::kAllGather, payload, beside));
}

void add_reduce(Ops& ops, std::string_view name, std::int64_t width, const Shard& shard, Beside beside) {
  if (shard.tensor == 1) return;
  const Bytes payload(element_bytes(shard.precision) * shard.tokens() * width);
  const auto kind = shard.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  ops.push_back(collective_op(name, kind, payload, beside));
}

}  // namespace stagecraft
