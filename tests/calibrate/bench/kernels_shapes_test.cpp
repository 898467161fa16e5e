#include "calibrate/bench/kernels_shapes.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "models/elementwise.hpp"

namespace stagecraft {
namespace {

Sample point(const std::string& op, std::map<std::string, std::int64_t> shape,
             const std::string& variant = "fused") {
  Sample sample;
  sample.family = "kernel";
  sample.op = op;
  sample.shape = std::move(shape);
  sample.tags["variant"] = variant;
  return sample;
}

// Bytes of an element are those that models/ charges for the same operator.
TEST(KernelOps, MoveTheBytesOfTheInventory) {
  const auto expect = [](std::string_view name, int fused, int eager) {
    SCOPED_TRACE(name);
    const KernelOp* op = find_kernel_op(name);
    ASSERT_NE(op, nullptr);
    EXPECT_EQ(op->fused, fused);
    if (op->unfused != 0) {
      EXPECT_EQ(op->unfused, eager);
    }
  };
  const auto both = [&](const char* forward, const char* backward, const FusedOrEager& traffic) {
    expect(forward, traffic.fused.forward.bytes, traffic.eager.forward.bytes);
    expect(backward, traffic.fused.backward.bytes, traffic.eager.backward.bytes);
  };
  both("bias_gelu_forward", "bias_gelu_backward", kBiasGeluTraffic);
  both("swiglu_forward", "swiglu_backward", kSwigluTraffic);
  both("layernorm_forward", "layernorm_backward", kLayerNormTraffic);
  both("rmsnorm_forward", "rmsnorm_backward", kRmsNormTraffic);
  both("rope_forward", "rope_backward", kRopeTraffic);
  expect("bias_dropout_add_forward", kFusedDropoutAddTraffic.forward.bytes,
         kBiasTraffic.forward.bytes + kDropoutTraffic.forward.bytes + kResidualAddTraffic.forward.bytes);
  expect("dropout_backward", kDropoutTraffic.backward.bytes, 0);
  expect("softmax_forward", kSoftmaxTraffic.fused.forward.bytes, kSoftmaxTraffic.eager.forward.bytes);
  expect("softmax_backward", kSoftmaxTraffic.fused.backward.bytes,
         6 + 12 + 6 + 4);  // told in kernels_shapes.cpp
  EXPECT_EQ(find_kernel_op("cross_entropy_forward")->unfused, kLossTraffic.forward.bytes);
  EXPECT_EQ(find_kernel_op("cross_entropy_backward")->unfused, kLossTraffic.backward.bytes);
  expect("head_transposition", kTransposeTraffic.forward.bytes, 0);
  expect("embedding_forward", kLookupTraffic.bytes, 0);
  const int branch = kResidualGradientTraffic.fused.backward.bytes;
  expect("layernorm_residual_backward", kLayerNormTraffic.fused.backward.bytes + branch, 0);
  expect("rmsnorm_residual_backward", kRmsNormTraffic.fused.backward.bytes + branch, 0);
}

TEST(KernelBytes, OfALayerNormCountItsStatistics) {  // 4 * 512 * 1024 + 8 * 512
  Sample sample = point("layernorm_forward", {{"tokens", 512}, {"hidden", 1024}});
  EXPECT_EQ(complete_kernel_point(sample), "");
  EXPECT_EQ(sample.bytes, 2097152 + 4096);
}

TEST(KernelBytes, OfAPermutationCountTheCopies) {  // read once, written twice, 2 bytes: 6 * 16 * 8
  Sample sample = point("permute_forward", {{"tokens", 16}, {"hidden", 8}, {"topk", 2}});
  EXPECT_EQ(complete_kernel_point(sample), "");
  EXPECT_EQ(sample.bytes, 768);
}

TEST(KernelBytes, OfScoresGrowWithTheSquareOfTheSequence) {  // 4 * 12 * 2048^2
  Sample sample = point("softmax_forward", {{"heads", 12}, {"sequence", 2048}});
  EXPECT_EQ(complete_kernel_point(sample), "");
  EXPECT_EQ(sample.bytes, 201326592);
}

TEST(KernelPoints, AreDistinctAndCompleteAndAsTheySay) {
  std::set<std::string> keys;
  for (const Sample& sample : kernel_points()) {
    SCOPED_TRACE(sample_key(sample));
    EXPECT_TRUE(keys.insert(sample_key(sample)).second);
    Sample again = sample;
    EXPECT_EQ(complete_kernel_point(again), "");
    EXPECT_EQ(again, sample);
    EXPECT_GT(sample.bytes, 0);
    EXPECT_LT(sample.bytes, 64e9);
  }
}

TEST(KernelPoints, HaveEveryOperatorInEveryFormThatItHas) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Sample& sample : kernel_points()) seen.insert({sample.op, sample.tags.at("variant")});
  for (const KernelOp& op : kernel_ops()) {
    SCOPED_TRACE(op.name);
    EXPECT_EQ(seen.count({std::string(op.name), "fused"}), 1U);
    EXPECT_EQ(seen.count({std::string(op.name), "unfused"}), op.unfused != 0 ? 1U : 0U);
  }
}

TEST(KernelPoint, ThatNoKernelCoversSaysWhy) {
  const auto why = [](Sample sample) { return complete_kernel_point(sample); };
  EXPECT_EQ(why(point("gelu", {{"tokens", 8}, {"hidden", 8}})), "no such operator: gelu");
  EXPECT_EQ(why(point("swiglu_forward", {{"tokens", 8}})), "swiglu_forward needs the extent hidden");
  EXPECT_EQ(why(point("swiglu_forward", {{"tokens", 8}, {"hidden", 8}, {"topk", 2}})),
            "swiglu_forward has extents that it does not know");
  EXPECT_EQ(why(point("swiglu_forward", {{"tokens", 8}, {"hidden", 12}})),
            "rows must be a multiple of 8 elements");
  EXPECT_EQ(why(point("swiglu_forward", {{"tokens", 0}, {"hidden", 8}})), "tokens = 0 is not positive");
  EXPECT_EQ(why(point("transpose", {{"tokens", 8}, {"hidden", 64}})), "tokens must be a multiple of 64");
  EXPECT_EQ(why(point("rmsnorm_forward", {{"tokens", 8}, {"hidden", 32768}})),
            "no kernel keeps a row of 32768 elements (16384 at most)");
  EXPECT_EQ(why(point("softmax_forward", {{"heads", 1}, {"sequence", 16384}}, "unfused")),
            "the unfused softmax keeps 8192 elements at most");
  EXPECT_EQ(why(point("transpose", {{"tokens", 64}, {"hidden", 64}}, "unfused")),
            "transpose has no form unfused");
  Sample of_training = point("swiglu_forward", {{"tokens", 8}, {"hidden", 8}});
  of_training.tags["load"] = "training";
  EXPECT_EQ(why(of_training), "swiglu_forward has tags that it does not know");
}

}  // namespace
}  // namespace stagecraft
