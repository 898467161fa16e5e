#include "models/fp8_casts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/op_builder.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kElements = 128 * 1024;

Shard fp8_shard(Fp8Recipe recipe, double layouts = 2) {
  return {.sequence = 1024,
          .tensor = 8,
          .sequence_parallel = true,
          .precision = Precision::kFp8,
          .fp8_recipe = recipe,
          .fp8_layouts = layouts};
}

struct Traffic {
  double bytes = 0;  // an element
  int kernels = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

std::ostream& operator<<(std::ostream& out, const Traffic& traffic) {
  return out << traffic.bytes << " bytes in " << traffic.kernels << " kernels";
}

Traffic traffic(const Ops& ops) {
  Traffic sum;
  for (const Op& op : ops) {
    if (op.kind != OpKind::kMemory) continue;
    sum.bytes += static_cast<double>(op.bytes.count()) / kElements;
    sum.kernels += op.kernels;
  }
  return sum;
}

Traffic cast(Fp8Source source, const Shard& shard) {
  Ops ops;
  add_cast(ops, kElements, source, shard);
  return traffic(ops);
}

Traffic local_cast(Fp8Source source, const Shard& shard) {
  Ops ops;
  add_local_cast(ops, kElements, source, shard);
  return traffic(ops);
}

// Read 2, write 1 for each layout that products read.
TEST(Fp8Casts, ByDelayedScalesReadATensorOnce) {
  const Shard hopper = fp8_shard(Fp8Recipe::kDelayed), blackwell = fp8_shard(Fp8Recipe::kDelayed, 1);
  EXPECT_EQ(cast(Fp8Source::kSixteenBit, hopper), (Traffic{4, 1}));
  EXPECT_EQ(cast(Fp8Source::kSixteenBit, blackwell), (Traffic{3, 1}));
  for (const Fp8Source arrived : {Fp8Source::kNorm, Fp8Source::kGathered, Fp8Source::kSent}) {
    EXPECT_EQ(cast(arrived, hopper), (Traffic{2, 1}));
    EXPECT_EQ(cast(arrived, blackwell), (Traffic{}));
  }
  EXPECT_EQ(local_cast(Fp8Source::kSixteenBit, hopper), (Traffic{3, 1}));
  EXPECT_EQ(local_cast(Fp8Source::kNorm, hopper), (Traffic{}));
}

// The largest value first, which a norm knows, and a kernel for the scale.
TEST(Fp8Casts, ByCurrentScalesReadATensorTwice) {
  const Shard hopper = fp8_shard(Fp8Recipe::kCurrent), blackwell = fp8_shard(Fp8Recipe::kCurrent, 1);
  EXPECT_EQ(cast(Fp8Source::kSixteenBit, hopper), (Traffic{6, 3}));
  EXPECT_EQ(cast(Fp8Source::kSixteenBit, blackwell), (Traffic{5, 3}));
  EXPECT_EQ(cast(Fp8Source::kNorm, hopper), (Traffic{4, 2}));
  EXPECT_EQ(cast(Fp8Source::kGathered, hopper), (Traffic{2, 1}));
}

// Both layouts from 16 bit, on any device, with a byte of scales for 32 elements in each.
TEST(Fp8Casts, ByScalesOfBlocksWriteBothLayouts) {
  for (const Fp8Recipe recipe : {Fp8Recipe::kBlockwise, Fp8Recipe::kMxfp8}) {
    for (const double layouts : {1, 2}) {
      const Shard shard = fp8_shard(recipe, layouts);
      EXPECT_EQ(cast(Fp8Source::kSixteenBit, shard), (Traffic{4 + 2.0 / 32, 1}));
      EXPECT_EQ(cast(Fp8Source::kNorm, shard), (Traffic{4 + 2.0 / 32, 1}));
      EXPECT_EQ(local_cast(Fp8Source::kNorm, shard), (Traffic{4 + 2.0 / 32, 1}));
      EXPECT_EQ(cast(Fp8Source::kGathered, shard), (Traffic{}));
      EXPECT_EQ(cast(Fp8Source::kSent, shard), (Traffic{2, 1}));
    }
  }
}

// The largest value first, which no norm knows: a Hadamard transform comes before the columns. Then half a byte an
// element and layout, and a byte of scales for 16 elements.
TEST(Fp4Casts, ReadATensorTwiceAndWriteBothLayouts) {
  for (const double layouts : {1, 2}) {
    const Shard shard = fp8_shard(Fp8Recipe::kNvfp4, layouts);
    const Traffic whole{2 + 2 + 2 * (0.5 + 1.0 / 16), 2};
    EXPECT_EQ(cast(Fp8Source::kSixteenBit, shard), whole);
    EXPECT_EQ(cast(Fp8Source::kNorm, shard), whole);
    EXPECT_EQ(local_cast(Fp8Source::kSixteenBit, shard), whole);
    EXPECT_EQ(cast(Fp8Source::kGathered, shard), (Traffic{}));
  }
  const Ops forward = layer_operators(zoo::llama3_8b(), fp8_shard(Fp8Recipe::kNvfp4)).forward;
  EXPECT_EQ(std::ranges::count(forward, "fp4 cast", &Op::name), 4);
  EXPECT_EQ(std::ranges::count(forward, "fp8 cast", &Op::name), 0);
}

TEST(Fp8Casts, AreNoneInSixteenBit) {
  Shard shard = fp8_shard(Fp8Recipe::kCurrent);
  shard.precision = Precision::kBf16;
  EXPECT_EQ(cast(Fp8Source::kSixteenBit, shard), (Traffic{}));
}

// Tensor ranks agree on the largest value of what they gather; scales of earlier iterations are known, those
// of blocks belong to a rank.
TEST(Fp8Casts, ByCurrentScalesAgreeOverTensorRanks) {
  const auto scales = [](Fp8Recipe recipe, const char* name = "fp8 scale") {
    const Ops forward = layer_operators(zoo::llama3_8b(), fp8_shard(recipe)).forward;
    return std::ranges::count(forward, name, &Op::name);
  };
  EXPECT_EQ(scales(Fp8Recipe::kDelayed), 0);
  EXPECT_EQ(scales(Fp8Recipe::kCurrent), 2);  // inputs of QKV and up
  EXPECT_EQ(scales(Fp8Recipe::kMxfp8), 0);
  EXPECT_EQ(scales(Fp8Recipe::kNvfp4, "fp4 scale"), 2);
}

// Rows of a gradient for one pass, columns for the other.
TEST(Fp8Casts, OfBlocksTravelInBothLayoutsWhereBothAreNeededAtOnce) {
  const auto payload = [](Fp8Recipe recipe, const char* name) {
    const LayerOps layer = layer_operators(zoo::llama3_8b(), fp8_shard(recipe));
    Ops all = layer.forward;
    all.insert(all.end(), layer.input_gradient.begin(), layer.input_gradient.end());
    return static_cast<double>(std::ranges::find(all, name, &Op::name)->bytes.count()) / (1024 * 4096);
  };
  EXPECT_EQ(payload(Fp8Recipe::kDelayed, "ffn gradient gather"), 1);
  EXPECT_EQ(payload(Fp8Recipe::kMxfp8, "ffn gradient gather"), 2 * (1 + 1.0 / 32));
  EXPECT_EQ(payload(Fp8Recipe::kMxfp8, "ffn gather"), 1 + 1.0 / 32);
  EXPECT_EQ(payload(Fp8Recipe::kMxfp8, "ffn input gather"), 1 + 1.0 / 32);
  EXPECT_EQ(payload(Fp8Recipe::kNvfp4, "ffn gradient gather"), 2 * (0.5 + 1.0 / 16));
  EXPECT_EQ(payload(Fp8Recipe::kNvfp4, "ffn gather"), 0.5 + 1.0 / 16);
  EXPECT_EQ(payload(Fp8Recipe::kNvfp4, "ffn input gather"), 0.5 + 1.0 / 16);
}

// A norm that feeds QKV or up alone writes one byte less under delayed scaling; one before a router does not.
TEST(Fp8Casts, BehindNormsAreTheNorms) {
  const auto norm = [](const TransformerSpec& model, LayerKind kind, Fp8Recipe recipe) {
    const Ops forward = layer_operators(model, fp8_shard(recipe), kind).forward;
    return std::ranges::find(forward, "ffn norm", &Op::name)->bytes;
  };
  const TransformerSpec dense = zoo::llama3_8b(), mixture = zoo::mixtral_8x7b();
  EXPECT_EQ(norm(dense, LayerKind::kDense, Fp8Recipe::kCurrent) -
                norm(dense, LayerKind::kDense, Fp8Recipe::kDelayed),
            Bytes(1024 / 8 * 4096));
  EXPECT_EQ(norm(mixture, LayerKind::kExperts, Fp8Recipe::kCurrent),
            norm(mixture, LayerKind::kExperts, Fp8Recipe::kDelayed));
}

Traffic weight_cast(bool backward, const Shard& shard) {
  Ops ops;
  add_weight_cast(ops, {.count = kElements, .backward = backward, .split = true}, shard);
  return traffic(ops);
}

TEST(Fp8WeightCasts, AreOneSweepAStepUnlessGathered) {
  for (const Fp8Recipe recipe : {Fp8Recipe::kDelayed, Fp8Recipe::kCurrent, Fp8Recipe::kBlockwise,
                                 Fp8Recipe::kMxfp8, Fp8Recipe::kNvfp4}) {
    Shard shard = fp8_shard(recipe);
    EXPECT_EQ(weight_cast(false, shard), (Traffic{}));
    shard.gathered_weights = true;
    EXPECT_GE(weight_cast(false, shard).bytes, 4);
    EXPECT_EQ(weight_cast(true, shard), (Traffic{}));
  }
}

// Read 2, write two copies of 1 and their scales; the largest value is 2 before. Weights that arrive in fp8
// want the second copy alone, but mxfp8's arrive in 16 bit.
TEST(Fp8WeightCasts, OfAStepWriteAllCopies) {
  const auto bytes = [](Shard shard, bool kept) {
    shard.fp8_parameters = kept;
    return static_cast<double>(first_weight_cast(kElements, shard).bytes.count()) / kElements;
  };
  EXPECT_EQ(bytes(fp8_shard(Fp8Recipe::kDelayed), false), 4);
  EXPECT_EQ(bytes(fp8_shard(Fp8Recipe::kDelayed, 1), false), 3);
  EXPECT_EQ(bytes(fp8_shard(Fp8Recipe::kDelayed), true), 2);
  EXPECT_EQ(bytes(fp8_shard(Fp8Recipe::kDelayed, 1), true), 0);
  EXPECT_EQ(bytes(fp8_shard(Fp8Recipe::kCurrent), false), 6);
  EXPECT_EQ(bytes(fp8_shard(Fp8Recipe::kBlockwise), false), 4);
  EXPECT_EQ(bytes(fp8_shard(Fp8Recipe::kMxfp8, 1), false), 4 + 2.0 / 32);
  EXPECT_EQ(bytes(fp8_shard(Fp8Recipe::kMxfp8, 1), true), 4 + 2.0 / 32);
  EXPECT_EQ(bytes(fp8_shard(Fp8Recipe::kNvfp4, 1), false), 4 + 2 * 9.0 / 16);
  EXPECT_EQ(bytes(fp8_shard(Fp8Recipe::kNvfp4, 1), true), 2 * 9.0 / 16);  // columns from rows
}

}  // namespace
}  // namespace stagecraft
