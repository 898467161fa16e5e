// Megatron-FSDP's queue of reductions over layers of Llama-3 8B.
#include "sim/lower/gradient_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "models/memory.hpp"
#include "tests/models/zoo.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kLayer = 218'112'000;
constexpr std::int64_t kHead = 128256LL * 4096 + 4096;

std::vector<StageUnit> layers(int count, bool recomputed) {
  return std::vector<StageUnit>(static_cast<std::size_t>(count),
                                {.recomputed = recomputed, .gathered = {.dense = kLayer}});
}

StageUnit head() {
  return {.kind = UnitKind::kHead, .gathered = {.dense = kHead}};
}

Shard recomputing(std::int64_t communication_unit) {
  Shard shard{.sequence = 4096, .recompute = Recompute::kFull};
  shard.rules.communication_unit = communication_unit;
  return shard;
}

TEST(QueueCapacity, IsWhatTheSoftwareAsksForOrTwoLayers) {
  EXPECT_EQ(queue_capacity(layers(8, true), recomputing(0), 3), 0);
  EXPECT_EQ(queue_capacity(layers(8, true), recomputing(1'000'000'000), 3), 1'000'000'000);
  EXPECT_EQ(queue_capacity(layers(8, true), recomputing(1), 3), 2 * kLayer);
  EXPECT_EQ(queue_capacity(layers(8, true), recomputing(1), 2), 1);
  EXPECT_EQ(queue_capacity(std::vector{head()}, recomputing(1), 3), 1);
}

// Two may wait when a third joins them, and a fourth is made beside; three checkpoints are gone by then.
TEST(QueuedGradients, AreThoseOfFourLayersWhereTwoMayWait) {
  const TransformerSpec model = zoo::llama3_8b();
  const Shard shard = recomputing(1);
  const Bytes checkpoint(2 * 4096 * 4096);
  EXPECT_EQ(queued_gradients(model, shard, layers(8, true), 2 * kLayer).backward,
            Bytes(4 * 4 * kLayer) - 3 * checkpoint);
  EXPECT_EQ(queued_gradients(model, shard, layers(2, true), 2 * kLayer).backward,
            Bytes(4 * 2 * kLayer) - checkpoint);
  EXPECT_EQ(queued_gradients(model, shard, {}, 2 * kLayer).backward, Bytes(0));
}

// The head's tensors, 2.9 GiB here, are let go of before the queue grows behind it; a layer's working set, made
// again, takes some of their place.
TEST(QueuedGradients, GrowAsTheHeadLetsGo) {
  const TransformerSpec model = zoo::llama3_8b();
  const Shard shard = recomputing(1);
  std::vector<StageUnit> units = layers(8, true);
  units.push_back(head());
  const Bytes alone = queued_gradients(model, shard, layers(8, true), 2 * kLayer).backward;
  const Bytes behind = queued_gradients(model, shard, units, 2 * kLayer).backward;
  const Bytes gone = head_activation(model, shard) + head_transient(model, shard).backward;
  EXPECT_LT(behind, alone);
  EXPECT_GE(behind, alone - gone);
  EXPECT_GE(behind, Bytes(4 * kHead));
}

// The dense gradient of the embedding is all that is there beside the queue when it joins it: what is gone made
// room for one of them, not for both.
TEST(QueuedGradients, AddUpToTheLastUnitWhereThatIsThePeak) {
  Shard shard = recomputing(1);
  shard.sequence = 128;
  std::vector<StageUnit> units{{.kind = UnitKind::kEmbedding, .gathered = {.dense = kHead}}};
  units.push_back(layers(1, true).front());
  units.push_back(layers(1, true).front());
  EXPECT_EQ(queued_gradients(zoo::llama3_8b(), shard, units, 2 * kLayer).backward,
            Bytes(4 * (kHead + 2 * kLayer)));
}

// W of three layers frees what they held, not what they kept.
TEST(QueuedGradients, OfASplitBackwardGrowAsItsSecondHalfFrees) {
  const TransformerSpec model = zoo::llama3_8b();
  const Shard shard = recomputing(1);
  EXPECT_EQ(queued_gradients(model, shard, layers(8, true), 2 * kLayer).weight_gradient,
            Bytes(4 * 4 * kLayer) - 3 * held_for_weight_gradients(model, shard));
}

// What is on the host is not freed on the GPU.
TEST(QueuedGradients, FindNoRoomInWhatIsOffloaded) {
  const Shard shard = recomputing(1);
  EXPECT_EQ(queued_gradients(zoo::llama3_8b(), shard, layers(8, true), 2 * kLayer, 1).backward,
            Bytes(4 * 4 * kLayer));
}

// Layers that keep all of their tensors let go of more than the queue takes.
TEST(QueuedGradients, AreTheLastUnitsWhereLayersKeepMore) {
  Shard shard = recomputing(1);
  shard.sequence = 32768;
  shard.recompute = Recompute::kNone;
  std::vector<StageUnit> units = layers(8, false);
  units.push_back(head());
  EXPECT_EQ(queued_gradients(zoo::llama3_8b(), shard, units, 2 * kLayer).backward, Bytes(4 * kHead));
}

}  // namespace
}  // namespace stagecraft
