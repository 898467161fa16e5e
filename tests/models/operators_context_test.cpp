// The attention core over context ranks: blocks, messages and what does not change.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.hpp"
#include "models/operators.hpp"
#include "tests/models/op_lists.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace op_lists;

// Llama-3 8B, one sample of 8192 tokens: 32 heads and 8 of keys and values, 128 wide.
Shard over(std::int64_t ranks, ContextExchange exchange, Attention attention = Attention::kFlash) {
  return {.sequence = 8192, .context = ranks, .attention = attention, .context_exchange = exchange};
}

constexpr ContextExchange kExchanges[] = {ContextExchange::kRing, ContextExchange::kAllGather,
                                          ContextExchange::kAllToAll};

TEST(ContextParallelism, OfOneRankIsNone) {
  Shard alone = over(1, ContextExchange::kRing);
  for (const Attention attention : {Attention::kFlash, Attention::kUnfused}) {
    alone.attention = attention;
    const LayerOps expected = layer_operators(zoo::llama3_8b(), alone);
    for (const ContextExchange exchange : kExchanges) {
      const LayerOps layer = layer_operators(zoo::llama3_8b(), over(1, exchange, attention));
      EXPECT_TRUE(same(layer, expected));
      EXPECT_EQ(payload(layer.forward) + payload(layer.input_gradient), Bytes(0));
    }
  }
}

// The rank's own 2048 queries and keys, then three ranks' keys: 1024 of them in the mean, none masked.
TEST(Ring, HasACausalBlockAndDenseOnesOfHalfTheScores) {
  const Ops ops = layer_operators(zoo::llama3_8b(), over(4, ContextExchange::kRing)).forward;
  const Ops blocks = of_kind(ops, OpKind::kFlashForward);
  const AttentionShape own{
      .batch = 32, .queries = 2048, .keys = 2048, .query_size = 128, .value_size = 128, .causal = true};
  AttentionShape other = own;
  other.keys = 1024;
  other.causal = false;
  ASSERT_EQ(blocks.size(), 4U);
  EXPECT_EQ(blocks[0].attention, own);
  EXPECT_EQ(blocks[0].flops, Flops(4.0 * 32 * 2048 * 2048 * 128));
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(blocks[i].attention, other);
    EXPECT_EQ(blocks[i].flops, Flops(4.0 * 32 * 2048 * 1024 * 128));
  }
}

// Each block but the last is followed by the message that it hides; each but the first by a merge.
TEST(Ring, SendsBehindEachBlockButTheLast) {
  const LayerOps layer = layer_operators(zoo::llama3_8b(), {.sequence = 6144, .context = 3});
  const Names core{"flash attention", "keys message",    "flash attention", "keys message",
                   "context merge",   "flash attention", "context merge"};
  const Names all = names(layer.forward);
  EXPECT_NE(std::search(all.begin(), all.end(), core.begin(), core.end()), all.end());
}

// K and V of 2048 tokens, 8 heads of 128 each, at 16 bit; dK and dV with them on the way back.
TEST(Ring, CarriesKeysAndValuesAndTheirGradients) {
  const LayerOps layer = layer_operators(zoo::llama3_8b(), over(4, ContextExchange::kRing));
  const Op& message = find(layer.forward, "keys message");
  EXPECT_EQ(message.bytes, Bytes(4 * 2048 * 1024));
  EXPECT_EQ(message.collective, CollectiveKind::kSendReceive);
  EXPECT_EQ(message.group, CommGroup::kContext);
  EXPECT_EQ(find(layer.input_gradient, "keys gradient message").bytes, Bytes(8 * 2048 * 1024));
  EXPECT_EQ(payload(layer.forward), Bytes(3 * 4 * 2048 * 1024));
  EXPECT_EQ(payload(layer.input_gradient), Bytes(3 * 8 * 2048 * 1024));
}

// 8 bytes per element of O and 12 per token and head; 12 per element of Q backward.
TEST(Ring, MergesResultsByTheirLogSumExp) {
  const LayerOps layer = layer_operators(zoo::llama3_8b(), over(4, ContextExchange::kRing));
  EXPECT_EQ(find(layer.forward, "context merge").bytes, Bytes(8 * 2048 * 4096 + 12 * 2048 * 32));
  EXPECT_EQ(find(layer.input_gradient, "context merge").bytes, Bytes(12 * 2048 * 4096));
}

TEST(Ring, SendsBesideABlockIfOverlapped) {
  Shard shard = over(4, ContextExchange::kRing);
  EXPECT_EQ(find(layer_operators(zoo::llama3_8b(), shard).forward, "keys message").beside,
            Beside::kAttentionBlock);
  shard.overlap_context = false;
  EXPECT_EQ(find(layer_operators(zoo::llama3_8b(), shard).forward, "keys message").beside, Beside::kNothing);
}

// Result of 4 T c n_kv bytes; the gradients are scattered from as many.
TEST(ContextGather, GathersKeysAndValuesInEachDirectionAndScattersTheirGradients) {
  const LayerOps layer = layer_operators(zoo::llama3_8b(), over(4, ContextExchange::kAllGather));
  const Bytes whole(4 * 8192 * 1024);
  EXPECT_EQ(find(layer.forward, "keys gather").bytes, whole);
  EXPECT_EQ(find(layer.input_gradient, "keys gather").bytes, whole);
  EXPECT_EQ(find(layer.input_gradient, "keys gradient scatter").bytes, whole);
  EXPECT_EQ(find(layer.input_gradient, "keys gradient scatter").collective, CollectiveKind::kReduceScatter);
  EXPECT_EQ(payload(layer.forward) + payload(layer.input_gradient), 3 * whole);
  const AttentionShape& shape = find(layer.forward, "flash attention").attention;
  EXPECT_EQ(shape.queries, 2048);
  EXPECT_EQ(shape.keys, 8192);
}

// Q and O have 32 heads, K and V have 8: 2 T (2 n_q + 2 n_kv) in each direction.
TEST(HeadExchange, TurnsTokensIntoHeadsAndBack) {
  const LayerOps layer = layer_operators(zoo::llama3_8b(), over(4, ContextExchange::kAllToAll));
  for (const Ops* ops : {&layer.forward, &layer.input_gradient}) {
    const Ops exchanges = of_kind(*ops, OpKind::kCollective);
    EXPECT_EQ(exchanges.size(), 4U);
    EXPECT_EQ(payload(*ops), Bytes(2 * 2048 * (2 * 4096 + 2 * 1024)));
    for (const Op& op : exchanges) EXPECT_EQ(op.collective, CollectiveKind::kAllToAll);
  }
  const AttentionShape& shape = find(layer.forward, "flash attention").attention;
  EXPECT_EQ(shape.batch, 8);
  EXPECT_EQ(shape.queries, 8192);
  EXPECT_EQ(shape.keys, 8192);
}

// 8 heads of keys over 16 ranks: the resolver of plans refuses it, and no shape is made up here.
TEST(HeadExchange, HasAHeadOfKeysForEachRank) {
  EXPECT_THROW((void)layer_operators(zoo::llama3_8b(), over(16, ContextExchange::kAllToAll)), InternalError);
}

// FLOPs that are of use: half of the scores of a causal core count; a dense block has no others.
double useful(const Ops& ops) {
  double sum = 0;
  for (const Op& op : ops) {
    const bool flash = op.kind == OpKind::kFlashForward || op.kind == OpKind::kFlashBackward;
    sum += op.flops.count() * (flash && op.attention.causal ? 0.5 : 1.0);
  }
  return sum;
}

// Property: c ranks together do the work of one, in every pass and by every exchange.
TEST(ContextParallelism, SplitsTheWorkEvenly) {
  for (const Attention attention : {Attention::kFlash, Attention::kUnfused}) {
    const LayerOps one = layer_operators(zoo::llama3_8b(), over(1, ContextExchange::kRing, attention));
    for (const ContextExchange exchange : kExchanges) {
      for (const std::int64_t ranks : {2, 4, 8}) {
        SCOPED_TRACE(testing::Message()
                     << kContextExchangeNames[static_cast<std::size_t>(exchange)] << " over " << ranks);
        const LayerOps layer = layer_operators(zoo::llama3_8b(), over(ranks, exchange, attention));
        const auto c = static_cast<double>(ranks);
        EXPECT_EQ(c * useful(layer.forward), useful(one.forward));
        EXPECT_EQ(c * useful(layer.input_gradient), useful(one.input_gradient));
        EXPECT_EQ(c * useful(layer.weight_gradient), useful(one.weight_gradient));
      }
    }
  }
}

// An unfused core that is repeated gets its keys once more.
TEST(ContextParallelism, RepeatsItsExchangesWithTheCore) {
  Shard shard = over(4, ContextExchange::kRing, Attention::kUnfused);
  shard.recompute = Recompute::kSelective;
  const LayerOps layer = layer_operators(zoo::llama3_8b(), shard);
  EXPECT_EQ(payload(layer.recompute), payload(layer.forward));
}

}  // namespace
}  // namespace stagecraft
