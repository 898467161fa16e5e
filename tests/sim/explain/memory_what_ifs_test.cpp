#include "sim/explain/memory_what_ifs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft {
namespace {

// A job, and what is said of its changes.
struct Asked {
  Reload reload;
  Scenario scenario;
  Report now;
  std::vector<WhatIf> what_ifs;
};

Scenario read(const Reload& reload, const std::vector<std::string>& set) {
  Diagnostics diagnostics;
  std::optional<Scenario> scenario = reload(set, diagnostics);
  diagnostics.throw_if_errors();
  return *std::move(scenario);
}

Asked ask(const std::string& file, const std::vector<std::string>& set) {
  Diagnostics diagnostics;
  std::optional<ScenarioTree> tree =
      load_tree(STAGECRAFT_SOURCE_DIR "/scenarios/" + file, repository_files(), diagnostics);
  diagnostics.throw_if_errors();
  apply_overrides(*tree, set, repository_files(), diagnostics);
  diagnostics.throw_if_errors();
  Asked asked{
      .reload = reload_of(*std::move(tree), repository_files()), .scenario = {}, .now = {}, .what_ifs = {}};
  asked.scenario = read(asked.reload, {});
  asked.now = simulate(asked.scenario);
  asked.what_ifs = memory_what_ifs(asked.scenario, asked.now, asked.reload);
  return asked;
}

// A job of `model` and these sections on nodes of 8 H100.
Asked ask_on_h100(const std::string& model, int nodes, const std::string& parallelism,
                  const std::string& training) {
  return ask("llama3-8b-fsdp-64xH100.yaml",
             {"model=" + model, "cluster={node: dgx-h100, nodes: " + std::to_string(nodes) + "}",
              "parallelism=" + parallelism, "training=" + training, "options=null"});
}

const WhatIf* answer_to(const Asked& asked, const std::vector<std::string>& change) {
  const auto found = std::ranges::find(asked.what_ifs, change, &WhatIf::change);
  return found == asked.what_ifs.end() ? nullptr : &*found;
}

// Property: what is promised of a change is what it gives when it is set.
void expect_to_come_true(const Asked& asked) {
  EXPECT_FALSE(asked.what_ifs.empty());
  for (const WhatIf& what_if : asked.what_ifs) {
    const Report report = simulate(read(asked.reload, what_if.change));
    EXPECT_EQ(what_if.peak, report.memory.heaviest().peak()) << join(what_if.change, " ");
    EXPECT_EQ(what_if.iteration_time, report.iteration_time) << join(what_if.change, " ");
  }
}

// System: FSDP2 under a pipeline, which keeps gathered weights. Expectations: to gather them again makes room,
// as much as in a scenario that says so; without a pipeline they are gathered again as it is.
TEST(MemoryWhatIfs, GatherAgainWhatFsdp2KeepsUnderAPipeline) {
  const std::vector<std::string> again = {"options.reshard_after_forward=true"};
  const auto with = [](const std::string& pipeline) {
    return std::vector<std::string>{"parallelism.pipeline=" + pipeline, "parallelism.data=null",
                                    "parallelism.zero_group=null", "options.software=fsdp2"};
  };
  const Asked asked = ask("llama3-8b-fsdp-64xH100.yaml", with("2"));
  const WhatIf* offer = answer_to(asked, again);
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->peak, simulate(read(asked.reload, again)).memory.heaviest().peak());
  std::vector<std::string> said = with("2");
  said.push_back(again.front());
  EXPECT_FALSE(answer_to(ask("llama3-8b-fsdp-64xH100.yaml", said), again));
  EXPECT_FALSE(answer_to(ask("llama3-8b-fsdp-64xH100.yaml", with("1")), again));
}

// System: Qwen3 over two replicas, whose experts lie on 4 of 8 ranks. Expectations: with experts on all 8 none
// has a replica, and nothing is sharded any more; the software of sharded jobs, which was assumed, stays.
TEST(MemoryWhatIfs, KeepTheSoftwareWhereADegreeTakesTheLastReplica) {
  const Asked asked = ask_on_h100("qwen3-30b-a3b", 2,
                                  "{tensor: 8, pipeline: 2, data: 1, expert: 4, expert_tensor: 1, "
                                  "sequence_parallel: true, zero_stage: 2}",
                                  "{global_batch_size: 2, sequence_length: 1024, recompute: full}");
  EXPECT_EQ(asked.scenario.options.software, "fsdp2");
  EXPECT_NE(read(asked.reload, {"parallelism.expert=8"}).options.software, "fsdp2");
  EXPECT_TRUE(answer_to(asked, {"parallelism.expert=8", "options.software=fsdp2"}));
  EXPECT_FALSE(answer_to(asked, {"parallelism.expert=8"}));
  expect_to_come_true(asked);
}

// System: Llama 3 8B under ZeRO 2 on 2 stages without a name of software, which does not fit. Expectations: the
// profile's other software is tried, but none that has no pipeline; none where the job fits, or where one is named.
TEST(MemoryWhatIfs, TryOtherSoftwareWhereItIsAssumed) {
  const auto softwares = [](const Asked& asked) {
    std::vector<std::string> names;
    for (const WhatIf& what_if : asked.what_ifs)
      if (what_if.change.front().starts_with("options.software=")) names.push_back(what_if.change.front());
    return names;
  };
  const auto of_micro_batches = [](int size) {
    return ask_on_h100(
        "llama-3-8b", 1, "{pipeline: 2, zero_stage: 2}",
        "{global_batch_size: 64, sequence_length: 8192, micro_batch_size: " + std::to_string(size) + "}");
  };
  const Asked asked = of_micro_batches(8);
  EXPECT_EQ(asked.scenario.options.software, "fsdp2");
  EXPECT_EQ(asked.now.memory.verdict(), Verdict::kOutOfMemory);
  EXPECT_THAT(softwares(asked), testing::Contains("options.software=megatron-core"));
  EXPECT_THAT(softwares(asked), testing::Not(testing::Contains("options.software=fsdp-2023")));
  expect_to_come_true(asked);
  const Asked fitting = of_micro_batches(1);
  EXPECT_NE(fitting.now.memory.verdict(), Verdict::kOutOfMemory);
  EXPECT_THAT(softwares(fitting), testing::IsEmpty());
  EXPECT_THAT(softwares(ask("llama3-8b-fsdp-64xH100.yaml", {"training.micro_batch_size=2"})),
              testing::IsEmpty());
}

// System: Llama 3 8B of 131,072 tokens, which do not fit over 8 tensor ranks. Expectations: two context ranks make
// room, with the GPUs kept.
TEST(MemoryWhatIfs, SplitLongSequencesOverContextRanks) {
  const std::string training = "{global_batch_size: 8, sequence_length: 131072}";
  const std::string tensor = "tensor: 8, sequence_parallel: true, zero_stage: 1";
  const Asked asked = ask_on_h100("llama-3-8b", 8, "{" + tensor + "}", training);
  EXPECT_EQ(asked.now.memory.verdict(), Verdict::kOutOfMemory);
  const WhatIf* offer = answer_to(asked, {"parallelism.context=2"});
  ASSERT_TRUE(offer);
  EXPECT_NE(offer->verdict, Verdict::kOutOfMemory);
  const Asked of_data = ask_on_h100("llama-3-8b", 8, "{data: 8, " + tensor + "}", training);
  EXPECT_TRUE(answer_to(of_data, {"parallelism.context=2", "parallelism.data=4"}));
}

// Expectations: all orders that hold more than 1F1B are told of it; chunks are taken back with it.
TEST(MemoryWhatIfs, Try1F1BForOtherOrders) {
  const std::string training = "{global_batch_size: 128, sequence_length: 8192}";
  for (const char* order :
       {"gpipe", "looped-bfs", "interleaved-1f1b", "dualpipe", "chimera", "zb-h2", "zb-2p"}) {
    SCOPED_TRACE(order);
    Asked asked = ask("llama3-8b-fsdp-64xH100.yaml",
                      {"parallelism={pipeline: 4}", "options={software: megatron-lm-2021}",
                       std::string("schedule=") + order});
    std::vector<std::string> change = {"schedule=1f1b"};
    if (asked.scenario.parallelism.virtual_stages > 1) change.emplace_back("parallelism.virtual_stages=1");
    EXPECT_TRUE(answer_to(asked, change));
  }
  const Asked plain = ask("llama3-8b-fsdp-64xH100.yaml", {"parallelism={pipeline: 4}"});
  EXPECT_FALSE(answer_to(plain, {"schedule=1f1b"}));
}

TEST(MemoryWhatIfs, TryFlashAttentionWhereItIsUnfused) {
  const std::vector<std::string> flash = {"training.attention=flash"};
  EXPECT_TRUE(answer_to(ask("llama3-8b-fsdp-64xH100.yaml", {"training.attention=unfused"}), flash));
  EXPECT_FALSE(answer_to(ask("llama3-8b-fsdp-64xH100.yaml", {}), flash));
}

// PyTorch's own loss may run in chunks, Megatron-LM's may not.
TEST(MemoryWhatIfs, TryTheLossInChunksWhereItIsPytorchs) {
  const std::vector<std::string> chunks = {"options.memory.loss_chunks=8"};
  const Asked own =
      ask("llama3-8b-fsdp-64xH100.yaml", {"training.micro_batch_size=2", "training.recompute=full",
                                          "options={software: fsdp2, fused_kernels: false}"});
  ASSERT_TRUE(answer_to(own, chunks));
  EXPECT_LT(answer_to(own, chunks)->peak / own.now.memory.heaviest().peak(), 0.7);
  EXPECT_FALSE(answer_to(ask("llama3-8b-fsdp-64xH100.yaml", {"options.software=megatron-core"}), chunks));
  EXPECT_FALSE(answer_to(ask("llama3-8b-fsdp-64xH100.yaml", {"options.memory.loss_chunks=4"}), chunks));
}

// Its gradient lies over the 16-bit logits, where Megatron-Core keeps their softmax in fp32.
TEST(MemoryWhatIfs, TryAFusedLoss) {
  const std::vector<std::string> fused = {"options.memory.fused_loss=true"};
  const std::string job = "parallelism={zero_stage: 1}", full = "training.recompute=full";
  EXPECT_TRUE(
      answer_to(ask("llama3-8b-fsdp-64xH100.yaml", {job, full, "options={software: megatron-core}"}), fused));
  EXPECT_FALSE(answer_to(ask("llama3-8b-fsdp-64xH100.yaml",
                             {job, full, "options={software: megatron-core, memory: {fused_loss: true}}"}),
                         fused));
}

TEST(MemoryWhatIfs, TryAllDivisorsOfAMicroBatch) {
  const auto sizes = [](const std::string& size) {
    std::vector<std::string> tried;
    for (const WhatIf& what_if : ask("llama3-8b-fsdp-64xH100.yaml",
                                     {"training.global_batch_size=768", "training.micro_batch_size=" + size})
                                     .what_ifs)
      if (what_if.change.size() == 1 && what_if.change.front().starts_with("training.micro_batch_size="))
        tried.push_back(what_if.change.front().substr(what_if.change.front().find('=') + 1));
    return tried;
  };
  EXPECT_THAT(sizes("4"), testing::UnorderedElementsAre("1", "2"));
  EXPECT_THAT(sizes("3"), testing::ElementsAre("1"));
  EXPECT_THAT(sizes("1"), testing::IsEmpty());
}

// System: GPT-3 on 9 nodes of A100, where sharded gradients alone make it fit, at more than twice the time.
// Expectations: two changes that do not fit alone, sharded optimizer states and narrow moments, cost nothing, and
// are the first that is offered.
TEST(MemoryWhatIfs, TryPairsWhereOneChangeIsDear) {
  const Asked asked =
      ask("gpt3-175b-1024xA100.yaml",
          {"cluster={node: dgx-a100-80gb, nodes: 9}", "schedule=1f1b", "training.global_batch_size=48",
           "parallelism={tensor: 8, pipeline: 3, data: 3, sequence_parallel: true}"});
  ASSERT_EQ(asked.now.memory.verdict(), Verdict::kOutOfMemory);
  const std::vector<std::string> pair = {"parallelism.zero_stage=1", "training.moment_dtype=bf16"};
  ASSERT_TRUE(answer_to(asked, pair));
  EXPECT_EQ(asked.what_ifs.front().change, pair);
  EXPECT_NE(asked.what_ifs.front().verdict, Verdict::kOutOfMemory);
  EXPECT_LT(asked.what_ifs.front().iteration_time, asked.now.iteration_time);
  for (const std::string& alone : pair)
    EXPECT_EQ(answer_to(asked, {alone})->verdict, Verdict::kOutOfMemory) << alone;
  expect_to_come_true(asked);
}

}  // namespace
}  // namespace stagecraft
