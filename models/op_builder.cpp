#include "models/op_builder.hpp"

#include "base/check.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kScaleBytes = 4;  // a largest value in fp32

Op gemm_op(OpKind kind, std::string_view name, const GemmShape& shape, std::int64_t bytes) {
  return {.kind = kind, .name = name, .gemm = shape, .flops = gemm_flops(shape), .bytes = Bytes(bytes)};
}

std::int64_t operands_and_result(const GemmShape& shape, const Shard& shard) {
  const std::int64_t read = shape.m * shape.k + shape.k * shape.n;
  return shape.batch *
         (operand_bytes(shard.precision) * read + element_bytes(shard.precision) * shape.m * shape.n);
}

// Read 16 bit, write 8 bit; dynamic scaling reads 16 bit before, for the largest value.
MemoryPass cast_pass(const Shard& shard) {
  return shard.dynamic_scaling ? MemoryPass{.bytes = 5, .kernels = 2} : MemoryPass{.bytes = 3, .kernels = 1};
}

// A cast whose kernel also writes a transposed copy for the other pass. A tensor that arrives in fp8 needs only
// the transposed copy (read 1, write 1).
//   source  NVIDIA/TransformerEngine @00dffe23 transformer_engine/pytorch/csrc/quantizer.cpp; its
//           docs/examples/gemm_profiling/gemm_profiling.rst @8f2e6357 times 4 bytes an element on H200, 6 with
//           current scaling
void add_cast(Ops& ops, std::int64_t elements, bool arrives, const Shard& shard) {
  if (shard.precision != Precision::kFp8) return;
  MemoryPass pass{.bytes = 2, .kernels = 1};
  if (!arrives) {
    pass = cast_pass(shard);
    pass.bytes += 1;
  }
  ops.push_back(memory_op("fp8 cast", elements, pass, shard));
}

// One weight, or those of several experts: `count` equal GEMMs in one kernel.
struct Group {
  OpKind op = OpKind::kGemm;
  std::int64_t count = 1;
};

Group group_of(const GroupedLinear& linear) {
  return {.op = OpKind::kGroupedGemm, .count = linear.experts};
}

Linear member_of(const GroupedLinear& linear) {
  return {.name = linear.name,
          .tokens = linear.tokens,
          .out = linear.out,
          .in = linear.in,
          .bias = linear.bias,
          .fp8_input = linear.fp8_input,
          .fp8_gradient = linear.fp8_gradient};
}

// Under dynamic scaling the weights are cast in every pass that reads them, with a transposed copy where the
// GEMM needs another layout. Tensor ranks agree on the largest value of a shared weight. Delayed scaling
// casts and transposes at once, and only where weights are gathered more than once a step. Weights stored in
// fp8 are transposed in the pass that needs it, or once a step where they stay unsharded.
void add_weight_cast(Ops& ops, Group group, const Linear& linear, bool transposed, const Shard& shard) {
  if (shard.precision != Precision::kFp8) return;
  const auto cast = [&](MemoryPass pass) {
    ops.push_back(memory_op("fp8 weight cast", group.count * linear.in * linear.out, pass, shard));
  };
  if (shard.fp8_parameters) {
    if (transposed && (shard.gathered_weights || shard.dynamic_scaling)) cast({.bytes = 2, .kernels = 1});
    return;
  }
  if (!shard.dynamic_scaling) {
    if (shard.gathered_weights && !transposed) cast({.bytes = 4, .kernels = 1});
    return;
  }
  cast({.bytes = transposed ? 7 : 5, .kernels = transposed ? 3 : 2});
  if (shard.tensor > 1 && group.op == OpKind::kGemm)
    ops.push_back(
        collective_op("fp8 scale", CollectiveKind::kAllReduce, Bytes(kScaleBytes), Beside::kNothing));
}

void forward(Ops& ops, Group group, const Linear& linear, const Shard& shard) {
  const GemmShape shape{
      .m = linear.tokens, .n = linear.out, .k = linear.in, .batch = group.count, .layout = GemmLayout::kTN};
  add_cast(ops, group.count * linear.tokens * linear.in, linear.fp8_input, shard);
  add_weight_cast(ops, group, linear, false, shard);
  ops.push_back(gemm_op(group.op, linear.name, shape, operands_and_result(shape, shard)));
}

void input_gradient(Ops& ops, Group group, const Linear& linear, const Shard& shard) {
  const GemmShape shape{
      .m = linear.tokens, .n = linear.in, .k = linear.out, .batch = group.count, .layout = GemmLayout::kNN};
  add_cast(ops, group.count * linear.tokens * linear.out, linear.fp8_gradient, shard);
  add_weight_cast(ops, group, linear, true, shard);
  ops.push_back(gemm_op(group.op, linear.name, shape, operands_and_result(shape, shard)));
}

void weight_gradient(Ops& ops, Group group, const Linear& linear, const Shard& shard) {
  const GemmShape shape{
      .m = linear.out, .n = linear.in, .k = linear.tokens, .batch = group.count, .layout = GemmLayout::kNT};
  const std::int64_t weights = group.count * linear.in * linear.out;
  const std::int64_t inputs = group.count * linear.tokens * (linear.in + linear.out);
  const std::int64_t read = operand_bytes(shard.precision) * inputs;
  const std::int64_t accumulate = 2 * element_bytes(shard.gradient) * weights;  // read and write
  if (shard.gradient_accumulation_fusion) {
    ops.push_back(gemm_op(group.op, linear.name, shape, read + accumulate));
  } else {
    const std::int64_t fresh = element_bytes(shard.precision) * weights;
    ops.push_back(gemm_op(group.op, linear.name, shape, read + fresh));
    ops.push_back({.name = "gradient accumulation", .bytes = Bytes(fresh + accumulate)});
  }
  // A column sum of dY; fused stacks have it in a GEMM's epilogue.
  if (linear.bias && !shard.fused_kernels) {
    ops.push_back(memory_op("bias gradient", group.count * linear.tokens * linear.out, {.bytes = 2}, shard));
  }
}

// A pass of one weight, in the precision that it runs in.
template <class Pass>
void add_pass(Ops& ops, const Linear& linear, const Shard& shard, const Pass& pass) {
  const Shard own = linear.sixteen_bit ? sixteen_bit(shard) : shard;
  const std::size_t first = ops.size();
  pass(ops, Group{.op = OpKind::kGemm}, linear, own);
  if (own.precision == shard.precision) return;
  for (std::size_t i = first; i < ops.size(); ++i) ops[i].precision = own.precision;
}

bool user_buffers(const Shard& shard) {
  return shard.overlap_tensor && shard.sequence_parallel;
}

}  // namespace

Flops gemm_flops(const GemmShape& shape) {
  return Flops(2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
               static_cast<double>(shape.k) * static_cast<double>(shape.batch));
}

std::int64_t element_bytes(Precision precision) {
  return precision == Precision::kFp32 ? 4 : 2;
}

Shard sixteen_bit(Shard shard) {
  if (shard.precision == Precision::kFp8) shard.precision = Precision::kBf16;
  return shard;
}

std::int64_t operand_bytes(Precision precision) {
  return precision == Precision::kFp8 ? 1 : element_bytes(precision);
}

void add_forward(Ops& ops, const Linear& linear, const Shard& shard) {
  add_pass(ops, linear, shard, forward);
}

void add_input_gradient(Ops& ops, const Linear& linear, const Shard& shard) {
  add_pass(ops, linear, shard, input_gradient);
}

void add_weight_gradient(Ops& ops, const Linear& linear, const Shard& shard) {
  add_pass(ops, linear, shard, weight_gradient);
}

void add_forward(Ops& ops, const GroupedLinear& linear, const Shard& shard) {
  forward(ops, group_of(linear), member_of(linear), shard);
}

void add_input_gradient(Ops& ops, const GroupedLinear& linear, const Shard& shard) {
  input_gradient(ops, group_of(linear), member_of(linear), shard);
}

void add_weight_gradient(Ops& ops, const GroupedLinear& linear, const Shard& shard) {
  weight_gradient(ops, group_of(linear), member_of(linear), shard);
}

Op batched_gemm(std::string_view name, const GemmShape& shape, const Shard& shard) {
  return gemm_op(OpKind::kBatchedGemm, name, shape, operands_and_result(shape, shard));
}

Op memory_op(std::string_view name, std::int64_t elements, MemoryPass pass, const Shard& shard) {
  SC_CHECK(pass.kernels > 0, "a pass that does nothing is no operator");
  return {.name = name,
          .bytes = Bytes(elements * pass.bytes * element_bytes(shard.precision) / 2),
          .elements = elements,
          .kernels = pass.kernels};
}

void add_memory(Ops& ops, std::string_view name, std::int64_t elements, MemoryPass pass, const Shard& shard) {
  if (pass.kernels > 0) ops.push_back(memory_op(name, elements, pass, shard));
}

Op permutation_op(std::string_view name, std::int64_t rows, std::int64_t width, const Shard& shard) {
  return {.kind = OpKind::kPermutation,
          .name = name,
          .bytes = Bytes(element_bytes(shard.precision) * rows * width),
          .elements = rows * width};
}

Op collective_op(std::string_view name, CollectiveKind kind, Bytes payload, Beside beside, CommGroup group) {
  return {.kind = OpKind::kCollective,
          .name = name,
          .bytes = payload,
          .collective = kind,
          .group = group,
          .beside = beside};
}

bool gathers_fp8(const Shard& shard) {
  return shard.precision == Precision::kFp8 && shard.tensor > 1 && shard.sequence_parallel;
}

void add_gather(Ops& ops, std::string_view name, std::int64_t width, const Shard& shard, Beside beside) {
  if (shard.tensor == 1 || !shard.sequence_parallel) return;
  // Inputs that are gathered again for the weight gradient: Transformer Engine has kept them in fp8.
  const bool kept = beside == Beside::kWeightGradient && !shard.dynamic_scaling;
  if (gathers_fp8(shard) && !kept)
    ops.push_back(memory_op("fp8 cast", shard.local_tokens() * width, cast_pass(shard), shard));
  const Bytes payload(operand_bytes(shard.precision) * shard.tokens() * width);
  ops.push_back(collective_op(name, CollectiveKind::kAllGather, payload, beside));
}

void add_reduce(Ops& ops, std::string_view name, std::int64_t width, const Shard& shard, Beside beside) {
  if (shard.tensor == 1) return;
  const Bytes payload(element_bytes(shard.precision) * shard.tokens() * width);
  const auto kind = shard.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  ops.push_back(collective_op(name, kind, payload, beside));
}

Beside beside_next_gemm(const Shard& shard) {
  return user_buffers(shard) ? Beside::kNextGemm : Beside::kNothing;
}

Beside beside_previous_gemm(const Shard& shard) {
  return user_buffers(shard) ? Beside::kPreviousGemm : Beside::kNothing;
}

}  // namespace stagecraft
