#include "calibrate/bench/attention_shapes.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace stagecraft {
namespace {

TEST(AttentionSample, CountsTheFlopsOfLlama3) {  // 4 * 8192^2 * 32 * 128, the full square
  const Sample sample =
      attention_sample({.heads = 32, .kv_heads = 8, .sequence = 8192, .head_size = 128, .causal = false});
  EXPECT_EQ(sample.op, "flash_forward");
  EXPECT_EQ(sample.flops, 1099511627776.0);
}

TEST(AttentionSample, CountsHalfUnderAMaskAndTwoAndAHalfTimesBackward) {
  const AttentionPoint shape{
      .heads = 12, .kv_heads = 12, .sequence = 2048, .head_size = 128, .backward = true};
  EXPECT_EQ(attention_sample(shape).op, "flash_backward");
  EXPECT_EQ(attention_sample(shape).flops, 25769803776.0 / 2 * 2.5);  // GPT-3 175B, t = 8
}

TEST(AttentionSample, MovesQueriesKeysValuesAndResultOnce) {
  // T = 16, n_q = 4 * 8, n_kv = 2 * 8: 2 * 16 * (2 * 32 + 2 * 16) + 4 * 16 * 4; backward reads and writes
  // twice.
  AttentionPoint shape{.batch = 2, .heads = 4, .kv_heads = 2, .sequence = 8, .head_size = 8};
  EXPECT_EQ(attention_sample(shape).bytes, 3072 + 256);
  shape.backward = true;
  EXPECT_EQ(attention_sample(shape).bytes, 6144 + 256);
}

TEST(AttentionPoints, AreDistinctAndCompleteAndReadBack) {
  std::set<std::string> keys;
  for (const AttentionPoint& shape : attention_points()) {
    Sample sample = attention_sample(shape);
    SCOPED_TRACE(sample_key(sample));
    EXPECT_TRUE(keys.insert(sample_key(sample)).second);
    const Sample before = sample;
    EXPECT_EQ(complete_attention_point(sample), "");
    EXPECT_EQ(sample, before);
    EXPECT_EQ(attention_sample(attention_shape(sample)), before);
  }
}

TEST(AttentionPoints, CoverTheHeadSizesAndLengthsThatTheyPromise) {
  std::set<std::int64_t> sizes, lengths;
  for (const AttentionPoint& shape : attention_points()) {
    sizes.insert(shape.head_size);
    lengths.insert(shape.sequence);
  }
  EXPECT_EQ(sizes, (std::set<std::int64_t>{64, 128, 256}));
  EXPECT_EQ(lengths, (std::set<std::int64_t>{512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}));
}

TEST(AttentionPoint, TakesDefaultsForWhatIsNotSaid) {
  Sample sample;
  sample.op = "flash_forward";
  sample.shape = {{"heads", 8}, {"sequence", 512}, {"head_size", 64}};
  EXPECT_EQ(complete_attention_point(sample), "");
  EXPECT_EQ(sample.shape.at("kv_heads"), 8);
  EXPECT_EQ(sample.shape.at("batch"), 1);
  EXPECT_EQ(sample.tags.at("causal"), "true");
}

TEST(AttentionPoint, ThatCannotBeSaysWhy) {
  const auto why = [](std::map<std::string, std::int64_t> shape) {
    Sample sample;
    sample.op = "flash_backward";
    sample.shape = std::move(shape);
    return complete_attention_point(sample);
  };
  EXPECT_EQ(why({{"heads", 8}, {"sequence", 512}}), "flash_backward needs the extent head_size");
  EXPECT_EQ(why({{"heads", 8}, {"kv_heads", 3}, {"sequence", 512}, {"head_size", 64}}),
            "kv_heads does not divide heads");
  EXPECT_EQ(why({{"heads", 8}, {"sequence", 512}, {"head_size", 512}}),
            "head_size must be a multiple of 8, 256 at most");
  EXPECT_EQ(why({{"heads", 0}, {"sequence", 512}, {"head_size", 64}}), "heads = 0 is not positive");
}

}  // namespace
}  // namespace stagecraft
