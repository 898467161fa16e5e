// The ledger of whole scenarios, to the byte.
#include <gtest/gtest.h>

#include "models/memory.hpp"
#include "models/operators.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

// GPT of 4 layers with h = 1024, 16 heads, 1,024 positions and GPT-2's own 50,257 words, which two ranks do
// not share evenly.
Scenario small(const std::string& parallelism, int gpus) {
  return scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 50257, max_sequence_length: 1024}\n"
      "cluster: {node: dgx-a100-80gb, gpus: " +
      std::to_string(gpus) +
      "}\n"
      "parallelism: {" +
      parallelism +
      "}\n"
      "training: {global_batch_size: 8}\n");
}

std::int64_t weights_of_rank(const Scenario& scenario, std::size_t rank) {
  return memory_of(scenario).stages.at(rank).weights.count();
}

// System: tensor 2, no pipeline. The fuller rank holds 25,129 words.
// Expectations, in parameters:
//   words 25,129 h, held once although input and output both use them; positions 1,024 h; final norm 2 h
//   a layer: half of 12 h^2; biases 3h/2 and 4h/2 of the split outputs, 2 h of the others; norms 4 h
TEST(Weights, OfATiedMatrixCountOnceAlsoWhereTheVocabularyDoesNotDivide) {
  const std::int64_t h = 1024;
  const std::int64_t layer = 6 * h * h + 3 * h / 2 + 2 * h + 2 * h + 4 * h;
  EXPECT_EQ(weights_of_rank(small("tensor: 2", 2), 0), 2 * (25129 * h + 1024 * h + 2 * h + 4 * layer));
}

TEST(Weights, OfATiedMatrixAreOnBothEndsOfAPipeline) {
  const std::int64_t h = 1024;
  const std::int64_t layer = 12 * h * h + 13 * h;
  const Scenario scenario = small("pipeline: 2", 2);
  EXPECT_EQ(weights_of_rank(scenario, 0), 2 * (50257 * h + 1024 * h + 2 * layer));
  EXPECT_EQ(weights_of_rank(scenario, 1), 2 * (50257 * h + 2 * h + 2 * layer));
}

// 1F1B keeps p - rank micro-batches (SC'21, section 2.2), GPipe all of them.
TEST(Activations, AreThoseOfTheMicroBatchesInFlight) {
  Scenario scenario = small("pipeline: 4", 4);
  const Shard shard{.sequence = 1024};
  const auto& model = std::get<TransformerSpec>(scenario.model);
  const std::int64_t layer = layer_activation(model, shard).kept.count();
  const std::int64_t first = layer + embedding_activation(model, shard).count();
  const std::int64_t last = layer + head_activation(model, shard).count();
  const auto activations = [&] {
    std::vector<std::int64_t> bytes;
    for (const StageMemory& stage : memory_of(scenario).stages) bytes.push_back(stage.activations.count());
    return bytes;
  };
  EXPECT_EQ(activations(), (std::vector<std::int64_t>{4 * first, 3 * layer, 2 * layer, last}));
  scenario.schedule.name = "gpipe";
  EXPECT_EQ(activations(), (std::vector<std::int64_t>{8 * first, 8 * layer, 8 * layer, 8 * last}));
}

// 80 % is where the verdict becomes `tight`, 100 % where it becomes `out-of-memory`.
TEST(Verdict, ComesFromTheHeaviestStage) {
  MemoryLedger ledger{.capacity = Bytes(100), .stages = {}};
  const auto verdict = [&](std::int64_t heavy) {
    StageMemory light, stage;
    light.weights = Bytes(1);
    stage.stage = 1;
    stage.optimizer = Bytes(heavy);
    ledger.stages = {light, stage};
    EXPECT_EQ(ledger.heaviest().stage, 1);
    return ledger.verdict();
  };
  EXPECT_EQ(verdict(80), Verdict::kFits);
  EXPECT_EQ(verdict(81), Verdict::kTight);
  EXPECT_EQ(verdict(100), Verdict::kTight);
  EXPECT_EQ(verdict(101), Verdict::kOutOfMemory);
}

}  // namespace
}  // namespace stagecraft
