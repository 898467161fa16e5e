#include "models/op_builder.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "base/check.hpp"

namespace stagecraft {

namespace {

Op gemm_op(OpKind kind, std::string_view name, const GemmShape& shape, std::int64_t bytes,
           const Shard& shard) {
  return {.kind = kind,
          .name = name,
          .gemm = shape,
          .flops = gemm_flops(shape),
          .bytes = Bytes(bytes),
          .joined = kind == OpKind::kGroupedGemm && shard.fuses_experts(),
          .fp8_recipe = shard.fp8_recipe};
}

std::int64_t operands_and_result(const GemmShape& shape, const Shard& shard) {
  const std::int64_t read = shape.m * shape.k + shape.k * shape.n;
  return shape.batch * (operand_bytes(read, shard) + element_bytes(shard.precision) * shape.m * shape.n);
}

// One weight, or those of several experts: `count` equal GEMMs in one kernel.
struct Group {
  OpKind op = OpKind::kGemm;
  std::int64_t count = 1;
};

Group group_of(const GroupedLinear& linear) {
  return {.op = OpKind::kGroupedGemm, .count = linear.experts};
}

CastWeights cast_of(Group group, const Linear& linear, bool backward) {
  return {.count = group.count * linear.in * linear.out,
          .backward = backward,
          .split = group.op == OpKind::kGemm};
}

void forward(Ops& ops, Group group, const Linear& linear, const Shard& shard) {
  const GemmShape shape{
      .m = linear.tokens, .n = linear.out, .k = linear.in, .batch = group.count, .layout = GemmLayout::kTN};
  add_cast(ops, group.count * linear.tokens * linear.in, linear.input, shard);
  add_weight_cast(ops, cast_of(group, linear, false), shard);
  if (shard.autocast && !linear.weights_cast)
    add_memory(ops, "weight cast", group.count * linear.out * linear.in, kAutocastTraffic, shard);
  ops.push_back(gemm_op(group.op, linear.name, shape, operands_and_result(shape, shard), shard));
}

void input_gradient(Ops& ops, Group group, const Linear& linear, const Shard& shard) {
  const GemmShape shape{
      .m = linear.tokens, .n = linear.in, .k = linear.out, .batch = group.count, .layout = GemmLayout::kNN};
  add_cast(ops, group.count * linear.tokens * linear.out, linear.gradient, shard);
  add_weight_cast(ops, cast_of(group, linear, true), shard);
  ops.push_back(gemm_op(group.op, linear.name, shape, operands_and_result(shape, shard), shard));
}

void weight_gradient(Ops& ops, Group group, const Linear& linear, const Shard& shard) {
  const GemmShape shape{
      .m = linear.out, .n = linear.in, .k = linear.tokens, .batch = group.count, .layout = GemmLayout::kNT};
  const std::int64_t weights = group.count * linear.in * linear.out;
  const std::int64_t inputs = group.count * linear.tokens * (linear.in + linear.out);
  const std::int64_t read = operand_bytes(inputs, shard);
  const std::int64_t accumulate = 2 * element_bytes(shard.gradient) * weights;  // read and write
  if (shard.gradient_accumulation_fusion) {
    ops.push_back(gemm_op(group.op, linear.name, shape, read + accumulate, shard));
  } else {
    const std::int64_t fresh = element_bytes(shard.precision) * weights;
    ops.push_back(gemm_op(group.op, linear.name, shape, read + fresh, shard));
    if (shard.autocast) add_memory(ops, "gradient cast", weights, kAutocastTraffic, shard);
    const std::int64_t added = shard.autocast ? element_bytes(shard.gradient) * weights : fresh;
    ops.push_back({.name = "gradient accumulation", .bytes = Bytes(added + accumulate)});
  }
  // A column sum of dY; fused stacks have it in a GEMM's epilogue.
  if (linear.bias && !shard.fused_kernels) {
    ops.push_back(memory_op("bias gradient", group.count * linear.tokens * linear.out, {.bytes = 2}, shard));
  }
}

// A pass in the precision that it runs in.
template <class Pass>
void add_pass(Ops& ops, Group group, const Linear& linear, const Shard& shard, const Pass& pass) {
  const Shard own = linear.sixteen_bit ? sixteen_bit(shard) : shard;
  const std::size_t first = ops.size();
  pass(ops, group, linear, own);
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

Shard shard_of_layer(const Shard& shard, LayerKind kind) {
  return in_sixteen_bit(kind) ? sixteen_bit(shard) : shard;
}

Shard shard_of_head(const Shard& shard) {
  Shard head = sixteen_bit(shard);
  head.overlap_tensor = false;
  return head;
}

std::vector<std::int64_t> loss_chunks(const Shard& shard) {
  const std::int64_t most = ceil_div(shard.tokens(), shard.software.loss_chunks);
  std::vector<std::int64_t> chunks;
  for (std::int64_t left = shard.tokens(); left > 0; left -= chunks.back())
    chunks.push_back(std::min(left, most));
  return chunks;
}

std::int64_t operand_bytes(Precision precision) {
  return precision == Precision::kFp8 ? 1 : element_bytes(precision);
}

void add_forward(Ops& ops, const Linear& linear, const Shard& shard) {
  add_pass(ops, {}, linear, shard, forward);
}

void add_input_gradient(Ops& ops, const Linear& linear, const Shard& shard) {
  add_pass(ops, {}, linear, shard, input_gradient);
}

void add_weight_gradient(Ops& ops, const Linear& linear, const Shard& shard) {
  add_pass(ops, {}, linear, shard, weight_gradient);
}

void add_forward(Ops& ops, const GroupedLinear& linear, const Shard& shard) {
  add_pass(ops, group_of(linear), linear.each, shard, forward);
}

void add_input_gradient(Ops& ops, const GroupedLinear& linear, const Shard& shard) {
  add_pass(ops, group_of(linear), linear.each, shard, input_gradient);
}

void add_weight_gradient(Ops& ops, const GroupedLinear& linear, const Shard& shard) {
  add_pass(ops, group_of(linear), linear.each, shard, weight_gradient);
}

Op batched_gemm(std::string_view name, const GemmShape& shape, const Shard& shard) {
  const Shard own = sixteen_bit(shard);
  Op op = gemm_op(OpKind::kBatchedGemm, name, shape, operands_and_result(shape, own), own);
  if (own.precision != shard.precision) op.precision = own.precision;
  return op;
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

Fp8Source gathered_or(Fp8Source local, const Shard& shard) {
  return shard.tensor > 1 && shard.sequence_parallel ? Fp8Source::kGathered : local;
}

void add_gather(Ops& ops, const Gather& gather, const Shard& shard) {
  if (shard.tensor == 1 || !shard.sequence_parallel) return;
  if (gather.what == GatherOf::kInputAgain && shard.keeps_gathered()) return;
  const bool fp8 = shard.precision == Precision::kFp8;
  // Transformer Engine has kept in fp8 what it gathers again.
  const bool kept = gather.what == GatherOf::kInputAgain && shard.keeps_fp8();
  if (fp8 && !kept) {
    const Fp8Source source =
        gather.what == GatherOf::kNormedInput ? Fp8Source::kNorm : Fp8Source::kSixteenBit;
    add_local_cast(ops, shard.local_tokens() * gather.width, source, shard);
  }
  const std::int64_t elements = shard.tokens() * gather.width;
  std::int64_t payload = cast_bytes(elements, shard);
  // Rows and columns of blocks are other numbers. Of a gradient both are needed at once; of an input the rows
  // now, the columns when it is gathered again.
  if (fp8 && shard.scales_blocks() && gather.what == GatherOf::kGradient) payload *= 2;
  ops.push_back(collective_op(gather.name, CollectiveKind::kAllGather, Bytes(payload), gather.beside));
  if (shard.copies_samples()) add_memory(ops, "gathered copy", elements, {.bytes = fp8 ? 2 : 4}, shard);
}

void add_reduce(Ops& ops, std::string_view name, std::int64_t width, const Shard& shard, Beside beside) {
  if (shard.tensor == 1) return;
  if (shard.copies_samples()) add_memory(ops, "scattered copy", shard.tokens() * width, {.bytes = 4}, shard);
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

Beside beside_weight_gradient(const Shard& shard) {
  return shard.waits_for_tensor() ? Beside::kNothing : Beside::kWeightGradient;
}

}  // namespace stagecraft
