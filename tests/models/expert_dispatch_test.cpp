// What node-aware and fp8 dispatch send, cast and keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/expert_exchange.hpp"
#include "models/memory.hpp"
#include "models/op_builder.hpp"
#include "models/operators.hpp"
#include "tests/models/op_lists.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

using namespace op_lists;

constexpr std::int64_t kTokens = 4096, kHidden = 7168;

LayerOps deepseek(const Shard& shard) {
  return layer_operators(zoo::deepseek_v3(), shard, LayerKind::kExperts);
}

Shard over_ranks(ExpertDispatcher dispatcher, std::int64_t expert = 64) {
  return {.sequence = kTokens, .expert = expert, .expert_dispatcher = dispatcher};
}

// DeepSeek-V3 over 64 ranks of 8 nodes: 7.359 of them have an expert of a token, and 3.629 nodes. Beside a
// copy lie 8 bytes, and forward 8 choices of 8 bytes.
TEST(NodeAwareDispatch, SendsATokenOnceToEachNodeAndEachRank) {
  const LayerOps layer = deepseek(over_ranks(ExpertDispatcher::kNodeAware));
  const std::int64_t row = 2 * kHidden + 8 + 8 * 8, copies = std::llround(kTokens * 7.359370078740156);
  const Op& dispatch = find(layer.forward, "expert dispatch");
  EXPECT_EQ(dispatch.bytes, Bytes(copies * row));
  ASSERT_TRUE(dispatch.nodes.has_value());
  EXPECT_EQ(dispatch.nodes->each, Bytes(kTokens * row));
  EXPECT_NEAR(static_cast<double>(dispatch.nodes->over(8).count()), 3.6290109244257005 * kTokens * row, 1);
  const Op& combine = find(layer.forward, "expert combine");
  EXPECT_EQ(combine.bytes, Bytes(copies * (2 * kHidden + 8)));
  EXPECT_EQ(find(layer.input_gradient, "expert combine gradient").bytes, combine.bytes);
  EXPECT_EQ(find(layer.input_gradient, "expert dispatch gradient").bytes,
            Bytes(copies * (2 * kHidden + 8 + 8 * 4)));
}

// Tokens are not permuted before they are sent; behind, copies become rows of experts.
TEST(NodeAwareDispatch, CopiesTokensToTheirExpertsWhereTheyArrive) {
  const LayerOps layer = deepseek(over_ranks(ExpertDispatcher::kNodeAware));
  EXPECT_EQ(count(layer.forward, "permute") + count(layer.forward, "unpermute"), 0);
  const TokenRouting r = routing(zoo::deepseek_v3(), over_ranks(ExpertDispatcher::kNodeAware));
  EXPECT_EQ(r.rows(), 8 * kTokens);
  EXPECT_EQ(find(layer.forward, "expert sort").bytes, Bytes(2 * (r.arrived + r.rows()) * kHidden));
  EXPECT_LT(r.arrived, r.rows());
}

// Where a rank has one expert, each choice is a copy as in an all-to-all.
TEST(NodeAwareDispatch, SendsAsManyCopiesAsAnAllToAllToRanksOfOneExpert) {
  const TransformerSpec model = zoo::deepseek_v3();
  EXPECT_EQ(routing(model, over_ranks(ExpertDispatcher::kNodeAware, 256)).received,
            routing(model, over_ranks(ExpertDispatcher::kAllToAll, 256)).received);
  EXPECT_LT(routing(model, over_ranks(ExpertDispatcher::kNodeAware, 8)).received,
            routing(model, over_ranks(ExpertDispatcher::kAllToAll, 8)).received);
}

// Property: one expert rank exchanges nothing, by whichever dispatcher and in whatever precision.
TEST(NodeAwareDispatch, OfOneRankIsTheModelWithoutIt) {
  Shard shard = over_ranks(ExpertDispatcher::kAllToAll, 1);
  const LayerOps plain = deepseek(shard);
  shard.expert_dispatcher = ExpertDispatcher::kNodeAware;
  shard.fp8_dispatch = true;
  EXPECT_TRUE(same(deepseek(shard), plain));
}

// DeepSeek-V3, section 3.3.3: 7168 bytes and 56 scales of 4 bytes instead of 14336, to the experts only.
TEST(Fp8Dispatch, SendsHalfToTheExpertsAndNothingLessBack) {
  for (const ExpertDispatcher dispatcher : {ExpertDispatcher::kAllToAll, ExpertDispatcher::kNodeAware}) {
    Shard shard = over_ranks(dispatcher);
    const LayerOps before = deepseek(shard);
    shard.fp8_dispatch = true;
    const LayerOps after = deepseek(shard);
    const std::int64_t copies = routing(zoo::deepseek_v3(), shard).received, saved = 14336 - 7168 - 4 * 56;
    for (const auto& [name, backward] :
         {std::pair{"expert dispatch", false}, {"expert combine gradient", true}}) {
      const Ops& then = backward ? before.input_gradient : before.forward;
      const Ops& now = backward ? after.input_gradient : after.forward;
      EXPECT_EQ(find(then, name).bytes - find(now, name).bytes, Bytes(copies * saved)) << name;
    }
    EXPECT_EQ(find(after.forward, "expert combine").bytes, find(before.forward, "expert combine").bytes);
    EXPECT_EQ(find(after.input_gradient, "expert dispatch gradient").bytes,
              find(before.input_gradient, "expert dispatch gradient").bytes);
  }
}

// 16-bit products: every token is cast (2 + 1 bytes an element and its scales), every row of an expert cast
// back. Fp8 products: rows come as they are wanted, but for the copy of the weight gradient.
TEST(Fp8Dispatch, CastsWhatItSends) {
  Shard shard = over_ranks(ExpertDispatcher::kNodeAware);
  shard.fp8_dispatch = true;
  const std::int64_t row = 3 * kHidden + 4 * 56;
  for (const LayerOps& layer : {deepseek(shard)}) {
    EXPECT_EQ(find(layer.forward, "dispatch cast").bytes, Bytes(kTokens * row));
    EXPECT_EQ(find(layer.forward, "dispatch cast back").bytes, Bytes(8 * kTokens * row));
    EXPECT_EQ(find(layer.input_gradient, "dispatch cast").bytes, Bytes(kTokens * row));
  }
  shard.precision = Precision::kFp8;
  const LayerOps fp8 = deepseek(shard);
  EXPECT_EQ(count(fp8.forward, "dispatch cast back"), 0);
  const auto cast_before = [](const Ops& ops, const char* product) {
    const auto at = std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.name == product; });
    return (at - 1)->bytes;
  };
  EXPECT_EQ(cast_before(fp8.forward, "expert up"), Bytes(2 * 8 * kTokens * kHidden));
  EXPECT_EQ(cast_before(fp8.input_gradient, "expert down"), Bytes(2 * 8 * kTokens * kHidden));
  EXPECT_EQ(cast_before(fp8.forward, "expert down"), Bytes(4 * 8 * kTokens * 2048));
}

TEST(Fp8Dispatch, IsNothingToAnAllGather) {
  Shard shard = over_ranks(ExpertDispatcher::kAllGather);
  const LayerOps plain = deepseek(shard);
  shard.fp8_dispatch = true;
  EXPECT_TRUE(same(deepseek(shard), plain));
}

Bytes kept(const Shard& shard, std::string_view name) {
  for (const SavedTensor& tensor : layer_tensors(zoo::deepseek_v3(), shard, LayerKind::kExperts))
    if (tensor.name == name) return tensor.size;
  return Bytes(-1);
}

// Buffers hold the copies that arrive and go back; what the products read is kept row by row, in fp8 where
// they read that.
TEST(NodeAwareDispatch, NeedsBuffersForItsCopiesOnly) {
  Shard plain = over_ranks(ExpertDispatcher::kAllToAll), node = over_ranks(ExpertDispatcher::kNodeAware);
  const TransformerSpec model = zoo::deepseek_v3();
  const auto forward = [&](const Shard& shard) {
    return layer_transient(model, shard, LayerKind::kExperts).forward;
  };
  EXPECT_EQ(forward(plain), Bytes(8 * kTokens * 4 * kHidden));
  EXPECT_EQ(forward(node), Bytes(routing(model, node).arrived * 4 * kHidden));
  node.fp8_dispatch = true;
  EXPECT_EQ(forward(node), Bytes(routing(model, node).arrived * (3 * kHidden + 4 * 56)));
  EXPECT_EQ(kept(node, "received tokens"), Bytes(8 * kTokens * 2 * kHidden));
  node.precision = Precision::kFp8;
  EXPECT_EQ(kept(node, "received tokens"), Bytes(8 * kTokens * (kHidden + 4 * 56)));
}

// Head and router, alone among the products, run in 16 bit under fp8; nothing is cast for them.
TEST(Fp8, LeavesHeadAndRouterInSixteenBit) {
  Shard shard = over_ranks(ExpertDispatcher::kAllToAll);
  shard.precision = Precision::kFp8;
  const LayerOps layer = deepseek(shard), head = head_operators(zoo::deepseek_v3(), shard);
  for (const LayerOps* ops : {&layer, &head})
    for (const Ops* pass : {&ops->forward, &ops->input_gradient, &ops->weight_gradient})
      for (const Op& op : *pass) {
        if (op.kind != OpKind::kGemm && op.kind != OpKind::kGroupedGemm) continue;
        const bool sixteen = op.name == "head" || op.name == "router";
        EXPECT_EQ(op.precision.has_value(), sixteen) << op.name;
        EXPECT_EQ(op.precision.value_or(Precision::kBf16), Precision::kBf16) << op.name;
      }
  EXPECT_EQ(count(head.forward, "fp8 cast") + count(head.input_gradient, "fp8 cast"), 0);
  shard.precision = Precision::kBf16;
  EXPECT_FALSE(find(head_operators(zoo::deepseek_v3(), shard).forward, "head").precision.has_value());
}

}  // namespace
}  // namespace stagecraft
