#include "models/fp8_casts.hpp"

#include <algorithm>
#include <string_view>

#include "models/op_builder.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kLargestValueBytes = 4;  // fp32
// Elements per byte of scales: E8M0 for 32 of them, or fp32 for 128.
constexpr std::int64_t kElementsPerScaleByte = 32;
constexpr std::int64_t kFp4ElementsPerByte = 2;
constexpr std::int64_t kFp4ElementsPerScaleByte = 16;  // E4M3
constexpr double kFp4Bytes = 1.0 / kFp4ElementsPerByte + 1.0 / kFp4ElementsPerScaleByte;
constexpr double kBothLayouts = 2;

constexpr MemoryPass kLargestValue{.bytes = 2, .kernels = 1};
constexpr MemoryPass kTransposedCopy{.bytes = 2, .kernels = 1};  // read 1, write 1

struct CastNames {
  std::string_view cast, of_weights, scale;
};
constexpr CastNames kFp8Names{.cast = "fp8 cast", .of_weights = "fp8 weight cast", .scale = "fp8 scale"};
constexpr CastNames kFp4Names{.cast = "fp4 cast", .of_weights = "fp4 weight cast", .scale = "fp4 scale"};

const CastNames& names(const Shard& shard) {
  return shard.casts_to_fp4() ? kFp4Names : kFp8Names;
}

std::int64_t scale_bytes(std::int64_t elements, const Shard& shard) {
  if (shard.casts_to_fp4()) return elements / kFp4ElementsPerScaleByte;
  return shard.precision == Precision::kFp8 && shard.scales_blocks() ? elements / kElementsPerScaleByte : 0;
}

bool transposes(const Shard& shard) {
  return !shard.scales_blocks() && shard.fp8_layouts > 1;
}

// Layouts that a cast for both passes writes.
int layouts(const Shard& shard) {
  return shard.scales_blocks() || transposes(shard) ? 2 : 1;
}

// Is there one scale a tensor that follows from its own largest value?
bool scales_by_largest(const Shard& shard) {
  return shard.fp8_recipe == Fp8Recipe::kCurrent || shard.fp8_recipe == Fp8Recipe::kNvfp4;
}

// The largest value of a tensor, and under current scaling the scale from it by a kernel of its own.
MemoryPass scaling(Fp8Source source, const Shard& shard) {
  if (shard.fp8_recipe == Fp8Recipe::kTorchao || shard.fp8_recipe == Fp8Recipe::kNvfp4) return kLargestValue;
  if (shard.fp8_recipe != Fp8Recipe::kCurrent) return {.bytes = 0, .kernels = 0};
  const bool known = source == Fp8Source::kNorm;
  return {.bytes = known ? 0 : kLargestValue.bytes, .kernels = known ? 1 : 2};
}

void add(Ops& ops, std::string_view name, std::int64_t elements, MemoryPass pass, const Shard& shard,
         std::int64_t written = 0) {
  if (pass.kernels == 0) return;
  ops.push_back(memory_op(name, elements, pass, shard));
  ops.back().bytes += Bytes(written);
}

// A cast from 16 bit that writes `written` layouts.
void add_from_sixteen_bit(Ops& ops, std::string_view name, std::int64_t elements, int written,
                          Fp8Source source, const Shard& shard) {
  const MemoryPass scale = scaling(source, shard);
  add(ops, name, elements, {.bytes = scale.bytes + 2, .kernels = scale.kernels + 1}, shard,
      written * cast_bytes(elements, shard));
}

void add_largest_of_ranks(Ops& ops, const Shard& shard) {
  ops.push_back(collective_op(names(shard).scale, CollectiveKind::kAllReduce, Bytes(kLargestValueBytes),
                              Beside::kNothing));
  ops.back().with_another = true;
}

}  // namespace

bool norm_writes_fp8(const Shard& shard) {
  return shard.precision == Precision::kFp8 && shard.fp8_recipe == Fp8Recipe::kDelayed;
}

std::int64_t operand_bytes(std::int64_t elements, const Shard& shard) {
  return shard.casts_to_fp4() ? elements / kFp4ElementsPerByte : operand_bytes(shard.precision) * elements;
}

std::int64_t cast_bytes(std::int64_t elements, const Shard& shard) {
  return operand_bytes(elements, shard) + scale_bytes(elements, shard);
}

double fp8_weight(const Shard& shard) {
  return shard.casts_to_fp4() ? kFp4Bytes : 1;
}

double fp8_weight_copies(const Shard& shard) {
  if (shard.casts_to_fp4()) return kBothLayouts * kFp4Bytes;
  if (shard.fp8_recipe == Fp8Recipe::kMxfp8)
    return kBothLayouts * (1 + 1 / static_cast<double>(kElementsPerScaleByte));
  // Blocks of 128 x 128 have one scale in either layout.
  return shard.fp8_recipe == Fp8Recipe::kBlockwise ? kBothLayouts : shard.fp8_layouts;
}

void add_cast(Ops& ops, std::int64_t elements, Fp8Source source, const Shard& shard) {
  if (shard.precision != Precision::kFp8 || source == Fp8Source::kProduct) return;
  const bool comes_in_fp8 =
      source == Fp8Source::kGathered || (source == Fp8Source::kNorm && norm_writes_fp8(shard));
  if (comes_in_fp8) {
    if (transposes(shard)) add(ops, names(shard).cast, elements, kTransposedCopy, shard);
  } else if (source == Fp8Source::kSent) {
    if (layouts(shard) > 1) add(ops, names(shard).cast, elements, kTransposedCopy, shard);
  } else {
    add_from_sixteen_bit(ops, names(shard).cast, elements, layouts(shard), source, shard);
  }
}

void add_local_cast(Ops& ops, std::int64_t elements, Fp8Source source, const Shard& shard) {
  if (source != Fp8Source::kNorm || !norm_writes_fp8(shard))
    add_from_sixteen_bit(ops, names(shard).cast, elements, shard.scales_blocks() ? 2 : 1, source, shard);
  if (scales_by_largest(shard)) add_largest_of_ranks(ops, shard);
}

// Weights kept in fp8 are transposed in the pass that needs it, or once a step where they stay unsharded;
// those kept in 16 bit are cast in each pass by torchao, by others in each forward where they are gathered
// for it, and otherwise once a step.
void add_weight_cast(Ops& ops, const CastWeights& weights, const Shard& shard) {
  if (shard.precision != Precision::kFp8) return;
  const std::string_view name = names(shard).of_weights;
  const bool each_pass = shard.fp8_recipe == Fp8Recipe::kTorchao;
  if (shard.fp8_parameters) {
    if (weights.backward && transposes(shard) && (shard.gathered_weights || each_pass))
      add(ops, name, weights.count, kTransposedCopy, shard);
  } else if (each_pass) {
    add_from_sixteen_bit(ops, name, weights.count, 1, Fp8Source::kSixteenBit, shard);
    if (weights.split && shard.tensor > 1) add_largest_of_ranks(ops, shard);
  } else if (shard.gathered_weights && !weights.backward) {
    add_from_sixteen_bit(ops, name, weights.count, layouts(shard), Fp8Source::kSixteenBit, shard);
  }
}

Op first_weight_cast(std::int64_t weights, const Shard& shard) {
  const double copies = fp8_weight_copies(shard);
  // Weights kept with the scales of mxfp8 arrive in 16 bit, as what was stepped is gathered.
  const bool arrive = shard.fp8_parameters && shard.fp8_recipe != Fp8Recipe::kMxfp8;
  const double written = arrive ? std::max(copies - fp8_weight(shard), 0.0) : copies;
  const double read =
      arrive ? std::min(written, fp8_weight(shard)) : static_cast<double>(element_bytes(shard.precision));
  const double largest = arrive ? 0 : static_cast<double>(scaling(Fp8Source::kSixteenBit, shard).bytes);
  return {.name = names(shard).of_weights,
          .bytes = to_bytes(static_cast<double>(weights) * (largest + read + written)),
          .elements = weights};
}

}  // namespace stagecraft
