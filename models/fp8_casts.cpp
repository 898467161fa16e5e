#include "models/fp8_casts.hpp"

#include <algorithm>
#include <string_view>

#include "models/op_builder.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kLargestValueBytes = 4;  // fp32
// Elements per byte of scales: E8M0 for 32 of them, or fp32 for 128.
constexpr std::int64_t kElementsPerScaleByte = 32;
constexpr double kBothLayouts = 2;

constexpr MemoryPass kLargestValue{.bytes = 2, .kernels = 1};
constexpr MemoryPass kTransposedCopy{.bytes = 2, .kernels = 1};  // read 1, write 1

bool transposes(const Shard& shard) {
  return !shard.scales_blocks() && shard.fp8_layouts > 1;
}

// Layouts that a cast for both passes writes.
int layouts(const Shard& shard) {
  return shard.scales_blocks() || transposes(shard) ? 2 : 1;
}

// The largest value of a tensor, and under Transformer Engine the scale from it by a kernel of its own.
MemoryPass scaling(Fp8Source source, const Shard& shard) {
  if (shard.fp8_recipe == Fp8Recipe::kTorchao) return kLargestValue;
  if (shard.fp8_recipe != Fp8Recipe::kCurrent) return {.bytes = 0, .kernels = 0};
  const bool known = source == Fp8Source::kNorm;
  return {.bytes = known ? 0 : kLargestValue.bytes, .kernels = known ? 1 : 2};
}

void add(Ops& ops, std::string_view name, std::int64_t elements, MemoryPass pass, const Shard& shard,
         std::int64_t scales = 0) {
  if (pass.kernels == 0) return;
  ops.push_back(memory_op(name, elements, pass, shard));
  ops.back().bytes += Bytes(scales);
}

// A cast from 16 bit that writes `written` layouts.
void add_from_sixteen_bit(Ops& ops, std::string_view name, std::int64_t elements, int written,
                          Fp8Source source, const Shard& shard) {
  const MemoryPass scale = scaling(source, shard);
  add(ops, name, elements, {.bytes = scale.bytes + 2 + written, .kernels = scale.kernels + 1}, shard,
      written * fp8_scale_bytes(elements, shard));
}

void add_largest_of_ranks(Ops& ops) {
  ops.push_back(
      collective_op("fp8 scale", CollectiveKind::kAllReduce, Bytes(kLargestValueBytes), Beside::kNothing));
  ops.back().with_another = true;
}

}  // namespace

bool norm_writes_fp8(const Shard& shard) {
  return shard.precision == Precision::kFp8 && shard.fp8_recipe == Fp8Recipe::kDelayed;
}

std::int64_t fp8_scale_bytes(std::int64_t elements, const Shard& shard) {
  return shard.scales_blocks() ? elements / kElementsPerScaleByte : 0;
}

double fp8_weight_copies(const Shard& shard) {
  if (shard.fp8_recipe == Fp8Recipe::kMxfp8)
    return kBothLayouts * (1 + 1 / static_cast<double>(kElementsPerScaleByte));
  // Blocks of 128 x 128 have one scale in either layout.
  return shard.fp8_recipe == Fp8Recipe::kBlockwise ? kBothLayouts : shard.fp8_layouts;
}

void add_cast(Ops& ops, std::int64_t elements, Fp8Source source, const Shard& shard) {
  if (shard.precision != Precision::kFp8) return;
  constexpr std::string_view kName = "fp8 cast";
  const bool comes_in_fp8 =
      source == Fp8Source::kGathered || (source == Fp8Source::kNorm && norm_writes_fp8(shard));
  if (comes_in_fp8) {
    if (transposes(shard)) add(ops, kName, elements, kTransposedCopy, shard);
  } else if (source == Fp8Source::kSent) {
    if (layouts(shard) > 1) add(ops, kName, elements, kTransposedCopy, shard);
  } else {
    add_from_sixteen_bit(ops, kName, elements, layouts(shard), source, shard);
  }
}

void add_local_cast(Ops& ops, std::int64_t elements, Fp8Source source, const Shard& shard) {
  if (source != Fp8Source::kNorm || !norm_writes_fp8(shard))
    add_from_sixteen_bit(ops, "fp8 cast", elements, shard.scales_blocks() ? 2 : 1, source, shard);
  if (shard.fp8_recipe == Fp8Recipe::kCurrent) add_largest_of_ranks(ops);
}

// Weights kept in fp8 are transposed in the pass that needs it, or once a step where they stay unsharded;
// those kept in 16 bit are cast in each pass by torchao, by others in each forward where they are gathered
// for it, and otherwise once a step.
void add_weight_cast(Ops& ops, const CastWeights& weights, const Shard& shard) {
  if (shard.precision != Precision::kFp8) return;
  constexpr std::string_view kName = "fp8 weight cast";
  const bool each_pass = shard.fp8_recipe == Fp8Recipe::kTorchao;
  if (shard.fp8_parameters) {
    if (weights.backward && transposes(shard) && (shard.gathered_weights || each_pass))
      add(ops, kName, weights.count, kTransposedCopy, shard);
  } else if (each_pass) {
    add_from_sixteen_bit(ops, kName, weights.count, 1, Fp8Source::kSixteenBit, shard);
    if (weights.split && shard.tensor > 1) add_largest_of_ranks(ops);
  } else if (shard.gathered_weights && !weights.backward) {
    add_from_sixteen_bit(ops, kName, weights.count, layouts(shard), Fp8Source::kSixteenBit, shard);
  }
}

Op first_weight_cast(std::int64_t weights, const Shard& shard) {
  const double copies = fp8_weight_copies(shard);
  // Weights kept with the scales of mxfp8 arrive in 16 bit, as what was stepped is gathered.
  const bool arrive = shard.fp8_parameters && shard.fp8_recipe != Fp8Recipe::kMxfp8;
  const double written = arrive ? std::max(copies - 1, 0.0) : copies;
  const double read = arrive ? std::min(written, 1.0) : static_cast<double>(element_bytes(shard.precision));
  const double largest = arrive ? 0 : static_cast<double>(scaling(Fp8Source::kSixteenBit, shard).bytes);
  return {.name = "fp8 weight cast",
          .bytes = to_bytes(static_cast<double>(weights) * (largest + read + written)),
          .elements = weights};
}

}  // namespace stagecraft
