// The kernels of the suite on the emulated device, by the checks that it makes on a GPU: every operator,
// fused and unfused, at sizes that reach each of its branches, with threads in both orders.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "calibrate/bench/harness.hpp"
#include "calibrate/bench/kernels_shapes.hpp"
#include "tests/calibrate/bench/emulation/device.hpp"

namespace stagecraft {
namespace {

using Extents = std::map<std::string, std::int64_t>;

class EmulatedKernels : public testing::Test {
 protected:
  static void SetUpTestSuite() { harness_ = new Harness({.check_only = true}); }
  static void TearDownTestSuite() { delete harness_; }

  // What the memory of a point held when it was given back, for one order of threads. The largest error
  // against float64 is within its bound, or this throws.
  static std::uint64_t digest_of(const WorkItem& item, emulation::Order order) {
    emulation::machine().order = order;
    emulation::machine().digest = 0;
    const Measured measured = item.run(*harness_);
    EXPECT_GE(measured.max_error, 0);
    EXPECT_EQ(measured.repeats, 0);
    return emulation::machine().digest;
  }

  static void expect_right(const std::string& op, const Extents& shape, const std::string& variant) {
    Sample sample;
    sample.family = "kernel";
    sample.op = op;
    sample.shape = shape;
    sample.tags["variant"] = variant;
    SCOPED_TRACE(sample_key(sample));
    const auto item = kernel_item_for(sample, harness_->device());
    ASSERT_TRUE(item.has_value());
    std::uint64_t forward = 0, backward = 1;
    ASSERT_NO_THROW(forward = digest_of(*item, emulation::Order::kForward));
    ASSERT_NO_THROW(backward = digest_of(*item, emulation::Order::kBackward));
    EXPECT_EQ(forward, backward) << "the result depends on the order of threads";
  }

  static void expect_right(KernelShape shape, const std::vector<Extents>& sizes) {
    for (const KernelOp& op : kernel_ops())
      for (const Extents& size : sizes) {
        if (op.shape != shape || op.name.starts_with("embedding") || op.name == "transpose") continue;
        for (const char* variant : {"fused", "unfused"})
          if (variant[0] == 'f' || op.unfused != 0) expect_right(std::string(op.name), size, variant);
      }
  }

  static Harness* harness_;
};
Harness* EmulatedKernels::harness_ = nullptr;

TEST_F(EmulatedKernels, OfRowsAreRight) {
  expect_right(KernelShape::kRows, {{{"tokens", 8}, {"hidden", 8}},
                                    {{"tokens", 72}, {"hidden", 264}},
                                    {{"tokens", 8}, {"hidden", 1024}},
                                    {{"tokens", 24}, {"hidden", 1032}}});
}

// One and four warps hold a row above; here eight, sixteen, and sixteen with nothing to spare.
TEST_F(EmulatedKernels, OfWideRowsAreRight) {
  expect_right("rmsnorm_residual_backward", {{"tokens", 8}, {"hidden", 4104}}, "fused");
  expect_right("layernorm_forward", {{"tokens", 8}, {"hidden", 8200}}, "fused");
  expect_right("layernorm_backward", {{"tokens", 8}, {"hidden", 8200}}, "fused");
  expect_right("layernorm_forward", {{"tokens", 8}, {"hidden", 16384}}, "fused");
}

TEST_F(EmulatedKernels, OfScoresAreRight) {
  expect_right(KernelShape::kScores, {{{"heads", 3}, {"sequence", 8}}, {{"heads", 2}, {"sequence", 72}}});
}

TEST_F(EmulatedKernels, OfHeadsAreRight) {
  expect_right(KernelShape::kHeads, {{{"tokens", 16}, {"heads", 1}, {"head_size", 16}},
                                     {{"tokens", 32}, {"heads", 3}, {"head_size", 48}},
                                     {{"tokens", 16}, {"heads", 5}, {"head_size", 128}}});
}

TEST_F(EmulatedKernels, OfTheVocabularyAreRight) {
  expect_right(KernelShape::kVocabulary, {{{"tokens", 8}, {"vocabulary", 8}},
                                          {{"tokens", 16}, {"vocabulary", 4104}},
                                          {{"tokens", 8}, {"vocabulary", 16032}}});
}

TEST_F(EmulatedKernels, OfFlatTensorsAreRight) {
  expect_right(KernelShape::kFlat, {{{"elements", 65536 + 8}}});
}

TEST_F(EmulatedKernels, OfExpertsAreRight) {
  expect_right(KernelShape::kRouted, {{{"tokens", 8}, {"hidden", 8}, {"topk", 1}},
                                      {{"tokens", 24}, {"hidden", 264}, {"topk", 3}},
                                      {{"tokens", 8}, {"hidden", 1032}, {"topk", 8}}});
}

TEST_F(EmulatedKernels, OfTheEmbeddingAreRight) {
  for (const char* op : {"embedding_forward", "embedding_backward"})
    for (const std::int64_t tokens : {8, 264}) expect_right(op, {{"tokens", tokens}, {"hidden", 8}}, "fused");
}

TEST_F(EmulatedKernels, OfTransposesAreRight) {
  expect_right("transpose", {{"tokens", 64}, {"hidden", 64}}, "fused");
  expect_right("transpose", {{"tokens", 192}, {"hidden", 128}}, "fused");
}

}  // namespace
}  // namespace stagecraft
