#include "sim/diff/tie_operators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft {
namespace {

using enum OperatorRole;
using testing::IsEmpty;
using testing::SizeIs;
using Names = std::set<std::string>;

class TieOperators : public testing::Test {
 protected:
  static void add(RankOps& ops, OperatorRole role, std::int64_t elements, const std::string& name,
                  double seconds = 1, bool backward = false) {
    ops.others
        [{.kind = WorkKind::kMemory, .role = role, .backward = backward, .elements = elements, .name = name}]
            .add(1, seconds);
  }
  [[nodiscard]] OperatorTies ties() const { return tie_operators(model, trace); }

  RankOps model, trace;
};

// Norms of 64 and of 16 elements, of which the trace has the first.
class TieNorms : public TieOperators {
 protected:
  TieNorms() {
    add(model, kNorm, 64, "ffn norm", 3);
    add(model, kNorm, 16, "query norm", 5);
    add(trace, kNorm, 64, "aten::native_layer_norm", 4);
  }
};

TEST_F(TieNorms, OfOneSizeAndPassAreOneRow) {
  add(model, kNorm, 64, "attention norm", 2);
  add(model, kNorm, 64, "ffn norm", 7, true);
  add(trace, kNorm, 16, "aten::native_layer_norm", 6);
  const OperatorTies ties = this->ties();
  ASSERT_THAT(ties.tied, SizeIs(2));
  EXPECT_EQ(ties.tied[0].elements, 16);
  EXPECT_EQ(ties.tied[0].measured.seconds, 6);
  EXPECT_EQ(ties.tied[1].ours, (Names{"attention norm", "ffn norm"}));
  EXPECT_EQ(ties.tied[1].predicted.seconds, 5);
  EXPECT_EQ(ties.tied[1].tie, Tie::kShape);
  ASSERT_THAT(ties.only_predicted, SizeIs(1));
  EXPECT_TRUE(ties.only_predicted[0].first.backward);
}

// One norm without a shape could be any of them.
TEST_F(TieNorms, WithOneTiedByNameAreOneRow) {
  add(trace, kNorm, 0, "MyNorm");
  const OperatorTies ties = this->ties();
  ASSERT_THAT(ties.tied, SizeIs(1));
  EXPECT_EQ(ties.tied[0].tie, Tie::kName);
  EXPECT_EQ(ties.tied[0].ours, (Names{"ffn norm", "query norm"}));
  EXPECT_EQ(ties.tied[0].theirs, (Names{"MyNorm", "aten::native_layer_norm"}));
}

// 64 elements are the norm's, 256 the gate's; nothing of the model has 100.
TEST_F(TieOperators, PlainOnesAreTiedByShapeOrNotAtAll) {
  add(model, kNorm, 64, "ffn norm");
  add(model, kActivation, 256, "activation");
  add(model, kAdd, 64, "residual add");
  add(trace, kMultiply, 64, "aten::mul");
  add(trace, kMultiply, 256, "aten::mul");
  add(trace, kAdd, 64, "aten::add");
  add(trace, kMultiply, 100, "aten::mul");
  add(trace, kMove, 0, "aten::copy_");
  const OperatorTies ties = this->ties();
  ASSERT_THAT(ties.tied, SizeIs(3));
  for (const TiedOperators& row : ties.tied) {
    EXPECT_EQ(row.tie, Tie::kShape);
    EXPECT_EQ(row.predicted.seconds, row.measured.seconds);
  }
  ASSERT_THAT(ties.only_measured, SizeIs(2));
  EXPECT_THAT(ties.only_predicted, IsEmpty());
}

TEST_F(TieOperators, ALookupOfOtherRowsIsNoEmbedding) {
  add(model, kEmbedding, 64, "embedding");
  add(trace, kEmbedding, 48, "aten::index_select");
  EXPECT_THAT(ties().tied, IsEmpty());
  add(trace, kEmbedding, 64, "aten::index_select");
  const OperatorTies ties = this->ties();
  ASSERT_THAT(ties.tied, SizeIs(1));
  EXPECT_EQ(ties.tied[0].measured.count, 1);
}

}  // namespace
}  // namespace stagecraft
