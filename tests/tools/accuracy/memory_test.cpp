// Memory as predicted against memory as measured. Tolerances as in published_test.cpp: promises to our users.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/repository_files.hpp"
#include "tests/sim/simulate/scenarios.hpp"
#include "tests/tools/accuracy/published_set.hpp"
#include "tools/validation/memory_scores.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;

const MemoryScore& worst_of(const MemoryScores& scores) {
  return scores.rows.at(scores.summary().worst);
}

// Source: BigScience's chronicles, nvidia-smi of the nodes with the embedding. Left out: L634, which says 65
// for micro-batch 2 and L635 56 for micro-batch 4 of the same layout.
TEST(BloomOnJeanZay, IsPredictedWithinTenPercentWithEveryVerdictRight) {
  const PublishedSet set = published("bloom_jean_zay");
  const MemoryScores scores = score_memory(set, repository_files());
  EXPECT_EQ(scores.rows.size(), 55u);
  EXPECT_EQ(scores.wrong_verdicts(), 0);
  EXPECT_LE(scores.summary().median_absolute, 0.05);
  int compared = 0;
  for (const MemoryScore& row : scores.rows) {
    if (!row.error() || row.id.ends_with("L634")) continue;
    EXPECT_LE(std::abs(*row.error()), 0.1) << row.id;
    ++compared;
  }
  EXPECT_EQ(compared, 32);
}

// Source: pytorch/torchtitan @b5bcd76c: what the allocator reserved. 405B is printed as 82.5 GiB by 1F1B and
// 72.7 interleaved, 78.5 and 77.0 are said (docs/accuracy.md).
TEST(TorchtitanOnH100, IsPredictedWithinEightPercentAndWithoutTensorRanksWithinFive) {
  const PublishedSet set = published("memory/torchtitan_h100");
  const MemoryScores scores = score_memory(set, repository_files());
  ASSERT_EQ(scores.rows.size(), 16u);
  for (const MemoryScore& row : scores.rows) {
    EXPECT_LE(std::abs(row.error().value()), row.id.starts_with("tt_8b_") ? 0.05 : 0.08) << row.id;
  }
  EXPECT_LE(scores.summary().median_absolute, 0.05);
  EXPECT_EQ(scores.wrong_verdicts(), 0);
}

// Nothing was fitted on these: what PyTorch gave out at most on the rank that logs. Left out: a deferred product
// of the head, which holds more.
// Source: NVIDIA/Megatron-LM, golden values of its functional tests.
TEST(MegatronTests, GptsArePredictedWithinFivePercentAndTwoInTheMedian) {
  for (const auto& [file, compared] :
       {std::pair("megatron_tests_h100", 21u), std::pair("megatron_tests_gb200", 5u),
        std::pair("memory/megatron_tests_large_a100", 2u)}) {
    const PublishedSet set = published(file);
    EXPECT_EQ(set.memory_rank, MemoryRank::kLast);
    MemoryScores scores = score_memory(set, repository_files());
    std::erase_if(scores.rows, [](const MemoryScore& row) {
      return row.id.find("defer") != std::string::npos || row.id.find("weekly") != std::string::npos ||
             !row.error();
    });
    ASSERT_EQ(scores.rows.size(), compared) << file;
    EXPECT_LE(scores.summary().median_absolute, 0.02) << file;
    for (const MemoryScore& row : scores.rows) EXPECT_LE(std::abs(row.error().value()), 0.07) << row.id;
    EXPECT_EQ(scores.wrong_verdicts(), 0);
  }
}

TEST(MegatronReleaseTests, AreWithinElevenPercentMixturesWithTheirBusiestRank) {
  int compared = 0;
  for (const char* file : {"megatron_release_h100", "megatron_release_a100", "megatron_release_gb200"})
    for (const MemoryScore& row : score_memory(published(file), repository_files()).rows) {
      if (!row.error()) continue;
      EXPECT_LE(std::abs(*row.error()), row.id.find("15b") != std::string::npos ? 0.03 : 0.11) << row.id;
      ++compared;
    }
  EXPECT_EQ(compared, 10);
}

// Nothing was fitted on these, but what the code of the job leaves unfused was read: SwiGLU and rotary positions,
// and a loss that copies its softmax. Routers of random weights send more to one rank of 16 than is said.
// Source: BastiaanGroot/ML-Infrastructure-Engineer, NVIDIA-NeMo/Megatron-Bridge.
TEST(Qwen3UnderMegatronBridge, IsPredictedWithinTwoPercentMixturesWithinFive) {
  const MemoryScores scores = score_memory(published("nebius_qwen3_h100"), repository_files());
  ASSERT_EQ(scores.rows.size(), 18u);
  for (const MemoryScore& row : scores.rows)
    EXPECT_LE(std::abs(row.error().value()), row.id.find("a3b") != std::string::npos ? 0.05 : 0.02) << row.id;
  EXPECT_LE(scores.summary().median_absolute, 0.005);
}

// Nothing was fitted on these: one layout on 512 to 8,192 GPUs, the figure of the first stage.
// Source: MLPerf Training v5.0, logs of Llama 3.1 405B.
TEST(MlperfOn405B, FirstRankIsPredictedWithinOnePercent) {
  const MemoryScores scores = score_memory(published("mlperf_v50_llama31_405b_h100"), repository_files());
  ASSERT_EQ(scores.rows.size(), 5u);
  for (const MemoryScore& row : scores.rows) EXPECT_LE(std::abs(row.error().value()), 0.01) << row.id;
}

// Nothing was fitted on these: 24 layouts of one model, whose pipelines split by nanotron's own rule.
// Source: huggingface.co/nanotron/old_bench.
TEST(NanotronOnH100, EachLayoutIsPredictedWithinSevenPercent) {
  const MemoryScores scores = score_memory(published("memory/nanotron_h100"), repository_files());
  ASSERT_EQ(scores.rows.size(), 24u);
  for (const MemoryScore& row : scores.rows) EXPECT_LE(std::abs(row.error().value()), 0.07) << row.id;
  EXPECT_EQ(scores.wrong_verdicts(), 0);
}

// Nothing was fitted on these: what nvidia-smi shows, and what ran out of memory (arXiv 2310.19341, Table
// 10).
TEST(SkyworkOnA800, IsPredictedWithinTwentyPercentAndElevenOnAverage) {
  const MemoryScores scores = score_memory(published("skywork_a800"), repository_files());
  const auto compared =
      std::ranges::count_if(scores.rows, [](const MemoryScore& row) { return row.error().has_value(); });
  ASSERT_EQ(compared, 10);
  EXPECT_LE(std::abs(worst_of(scores).error().value()), 0.20) << worst_of(scores).id;
  EXPECT_LE(scores.summary().mean_absolute, 0.11);
}

// Nothing was fitted on these. DeepSpeed's BF16 optimizer keeps whole fp32 gradients, those of a micro-batch
// in 16 bit, and one tensor that the former are cast to. The row of 206B ran out of memory, that of 203B ran
// at 67 GB.
TEST(BloomInBf16, IsPredictedWithinNinePercent) {
  const MemoryScores scores = score_memory(published("bloom_jean_zay_bf16"), repository_files());
  ASSERT_EQ(scores.rows.size(), 20u);
  int compared = 0;
  for (const MemoryScore& row : scores.rows) {
    if (!row.error()) continue;
    EXPECT_LE(std::abs(*row.error()), 0.09) << row.id;
    ++compared;
  }
  EXPECT_EQ(compared, 17);
  EXPECT_LE(scores.wrong_verdicts(), 1);
}

// Nor on these. Of one layout 38 and 44 GB are printed; 47 are said.
TEST(BloomOverFewerTensorRanks, IsPredictedWithinThirteenPercentWithEveryVerdictRight) {
  const MemoryScores scores = score_memory(published("bloom_jean_zay_rest"), repository_files());
  ASSERT_EQ(scores.rows.size(), 33u);
  int compared = 0;
  for (const MemoryScore& row : scores.rows) {
    if (!row.error() || row.id.ends_with("_again")) continue;
    EXPECT_LE(std::abs(*row.error()), 0.13) << row.id;
    ++compared;
  }
  EXPECT_EQ(compared, 15);
  EXPECT_EQ(scores.wrong_verdicts(), 0);
}

// Nor on these: every order of Zero Bubble, and trimmed models over expert and context ranks of B200.
TEST(OrdersOfZeroBubble, ArePredictedWithinNinePercent) {
  const MemoryScores scores = score_memory(published("zero_bubble_rest"), repository_files());
  ASSERT_EQ(scores.rows.size(), 79u);
  EXPECT_LE(std::abs(worst_of(scores).error().value()), 0.09) << worst_of(scores).id;
  EXPECT_LE(scores.summary().mean_absolute, 0.05);
  EXPECT_EQ(scores.wrong_verdicts(), 0);
}

TEST(ExpertAndContextRanksOnB200, ArePredictedWithinFourPercent) {
  const MemoryScores scores = score_memory(published("simumax_b200_experts_context"), repository_files());
  ASSERT_EQ(scores.rows.size(), 19u);
  EXPECT_LE(std::abs(worst_of(scores).error().value()), 0.04) << worst_of(scores).id;
  EXPECT_EQ(scores.wrong_verdicts(), 0);
}

// Nor on these, our own. Peaks of the eager runs hold a part of the model that ran compiled before them.
TEST(OwnPytorchRuns, ArePredictedWithinThreePercent) {
  for (const char* set : {"own_pytorch_h200", "own_pytorch_h100"}) {
    const MemoryScores scores = score_memory(published(set), repository_files());
    EXPECT_EQ(scores.rows.size(), 2u) << set;
    for (const MemoryScore& row : scores.rows) EXPECT_LE(std::abs(row.error().value()), 0.03) << row.id;
  }
}

// Every row ran, but for two of Skywork's, which ended for want of memory.
TEST(RowsWithATime, AreNotSaidToRunOutOfMemory) {
  for (const auto& [file, rows] : {std::pair("llm_foundry_a100", 37u),
                                   std::pair("llm_foundry_h100", 5u),
                                   std::pair("vtrain_multi_node", 73u),
                                   std::pair("megatron_sc21", 6u),
                                   std::pair("sequence_parallel_selective_recompute", 4u),
                                   std::pair("vtrain_18b_175b", 36u),
                                   std::pair("megatron_sc21_rest", 11u),
                                   std::pair("sequence_parallel_175b_1t", 5u),
                                   std::pair("dgxc_h100", 13u),
                                   std::pair("megatron_lm_h100", 3u),
                                   std::pair("dgxc_llama31_h100", 96u),
                                   std::pair("dgxc_gpt3_h100", 15u),
                                   std::pair("dgxc_moe_h100", 40u),
                                   std::pair("dgxc_gb200", 27u),
                                   std::pair("megatron_bridge_b200", 9u),
                                   std::pair("megatron_bridge_h100", 13u),
                                   std::pair("megatron_bridge_gb200", 17u),
                                   std::pair("megatron_bridge_gb300", 9u),
                                   std::pair("megatron_bridge_gb300_experts", 10u),
                                   std::pair("megatron_bridge_b300", 6u),
                                   std::pair("megatron_moe_h100", 8u),
                                   std::pair("megatron_moe_long_h100", 8u),
                                   std::pair("parallel_folding_h100", 65u),
                                   std::pair("together_b200", 8u),
                                   std::pair("dgxc_nemotron4_h100", 54u),
                                   std::pair("nemo_h100", 21u),
                                   std::pair("llm_foundry_a100_later", 24u),
                                   std::pair("llm_foundry_a100_40gb", 78u),
                                   std::pair("llm_foundry_h100_later", 57u),
                                   std::pair("nemotron4_reports", 6u),
                                   std::pair("gpu_recipes_h100", 3u),
                                   std::pair("gpu_recipes_h200", 3u),
                                   std::pair("gpu_recipes_b200", 3u),
                                   std::pair("large_runs_a100", 11u),
                                   std::pair("fms_fsdp_a100", 8u),
                                   std::pair("internevo_a100", 30u),
                                   std::pair("flagperf_deepspeed_a800", 4u),
                                   std::pair("flagperf_deepspeed_h800", 3u),
                                   std::pair("flagperf_deepspeed_a100_40gb", 2u),
                                   std::pair("swift_a800", 4u),
                                   std::pair("swift_deepspeed_a800", 2u),
                                   std::pair("torchtune_a100", 4u),
                                   std::pair("fms_fsdp_h100", 4u),
                                   std::pair("torchtitan_a100_llama3", 2u),
                                   std::pair("torchtitan_h200_fp8", 2u),
                                   std::pair("megatron_bridge_2604_h100", 4u),
                                   std::pair("megatron_bridge_2604_gb200", 6u),
                                   std::pair("megatron_bridge_2606_gb200", 3u),
                                   std::pair("megatron_bridge_2606_gb300", 4u),
                                   std::pair("hy3_gb300", 13u),
                                   std::pair("megatron_bridge_2604_b200", 3u),
                                   std::pair("skywork_a800", 12u),
                                   std::pair("kempner_71b_h200", 6u),
                                   std::pair("kempner_h200", 22u),
                                   std::pair("mlperf_v50_llama31_405b_h100", 5u),
                                   std::pair("mlperf_v40_gpt3_h100", 3u),
                                   std::pair("mlperf_v41_gpt3_h100", 2u),
                                   std::pair("mlperf_v51_llama31_8b_h200", 1u),
                                   std::pair("mlperf_v41_gpt3_b200", 1u),
                                   std::pair("mlperf_v51_llama31_8b_b200", 1u),
                                   std::pair("mlperf_v50_llama31_405b_gb200", 1u),
                                   std::pair("mlperf_v50_llama31_405b_gb200_data_last", 1u),
                                   std::pair("olmo_core_h100", 10u),
                                   std::pair("torchtitan_async_tp_h100", 8u),
                                   std::pair("flagperf_h100", 5u),
                                   std::pair("flagperf_h800", 2u),
                                   std::pair("flash_attention_a100", 5u),
                                   std::pair("bignlp_a100", 7u),
                                   std::pair("azure_nemo_a100", 11u),
                                   std::pair("flagperf_a800", 8u),
                                   std::pair("atorch_fsdp_a100", 4u),
                                   std::pair("atorch_deepspeed_3d_a100", 6u),
                                   std::pair("llm_c_a100", 3u),
                                   std::pair("easycontext_a100", 5u),
                                   std::pair("hf_granite_7b_a100", 2u),
                                   std::pair("llm_c_h100", 1u),
                                   std::pair("mlperf_v31_gpt3_h100", 1u),
                                   std::pair("nanotron_times_h100", 7u),
                                   std::pair("lightning_thunder_h100", 8u),
                                   std::pair("torchtitan_qwen3_h100", 5u),
                                   std::pair("prime_rl_h100", 4u),
                                   std::pair("aws_qwen3_30b_h100", 2u),
                                   std::pair("pai_qwen3_235b_h800", 4u),
                                   std::pair("te_gpt2_xl_h100", 1u),
                                   std::pair("te_gpt2_xl_h200", 1u),
                                   std::pair("nebius_llama8b_h200", 2u),
                                   std::pair("prime_rl_h200", 2u),
                                   std::pair("prime_rl_b200", 4u),
                                   std::pair("megatron_bridge_gpt_oss_h100", 3u),
                                   std::pair("megatron_bridge_gpt_oss_b200", 3u),
                                   std::pair("megatron_bridge_gpt_oss_b300", 3u),
                                   std::pair("megatron_bridge_gpt_oss_gb200", 5u),
                                   std::pair("megatron_bridge_gpt_oss_gb300", 5u),
                                   std::pair("mlperf_v60_gpt_oss_20b_b300", 2u),
                                   std::pair("mlperf_v60_gpt_oss_20b_gb300", 2u),
                                   std::pair("mlperf_v60_gpt_oss_20b_gb300_512", 1u),
                                   std::pair("olmo3_h100", 2u),
                                   std::pair("own_pytorch_h200", 2u),
                                   std::pair("own_pytorch_h100", 2u),
                                   std::pair("own_pytorch_eager_h200", 1u),
                                   std::pair("own_pytorch_eager_h100", 2u)}) {
    const PublishedSet set = published(file);
    const MemoryScores scores = score_memory(set, repository_files());
    EXPECT_EQ(scores.rows.size(), rows) << file;
    EXPECT_EQ(scores.wrong_verdicts(), 0) << file;
  }
}

// Source: Qi et al. (arXiv 2401.10241), Table 4: the allocator's peak over stages.
TEST(ZeroBubble, Of1F1BIsPredictedWithinEightPercent) {
  const PublishedSet set = published("zero_bubble");
  const MemoryScores scores = score_memory(set, repository_files());
  int compared = 0;
  for (const MemoryScore& row : scores.rows) {
    if (!row.id.ends_with("1F1B")) continue;
    EXPECT_LE(std::abs(row.error().value()), 0.08) << row.id;
    ++compared;
  }
  EXPECT_EQ(compared, 6);
}

// Source: MooreThreads/SimuMax @4dcaae51, docs/b200: Megatron-LM and Transformer Engine on one node of 8
// B200, peak allocated. What is allocated does not depend on the device; its capacity is written in.
TEST(SimumaxB200, IsPredictedWithinThreePercent) {
  struct Row {
    const char* model;
    int tensor, pipeline, data;
    double measured_gib;
  };
  const char* kSeventy = "layers: 12, hidden: 8192, heads: 64, kv_heads: 8, ffn_hidden: 28672";
  const char* kFour = "layers: 4, hidden: 16384, heads: 128, kv_heads: 8, ffn_hidden: 53248";
  const std::vector<Row> rows{{kSeventy, 1, 2, 4, 66.55}, {kSeventy, 2, 1, 4, 60.68},
                              {kSeventy, 4, 1, 2, 39.07}, {kSeventy, 8, 1, 1, 28.29},
                              {kFour, 1, 2, 4, 87.08},    {kFour, 2, 1, 4, 81.59},
                              {kFour, 4, 1, 2, 52.89},    {kFour, 8, 1, 1, 38.57}};
  for (const Row& row : rows) {
    const std::string degrees = "tensor: " + std::to_string(row.tensor) +
                                ", pipeline: " + std::to_string(row.pipeline) +
                                ", data: " + std::to_string(row.data);
    SCOPED_TRACE(row.model + (" " + degrees));
    Scenario scenario =
        scenario_of("stagecraft: 1\nmodel: {family: llama, " + std::string(row.model) +
                    ", vocab: 128256}\n"
                    "cluster: {node: dgx-b200, nodes: 1}\nprofile: h100-sxm5-80gb\n"
                    "parallelism: {" +
                    degrees + ", zero_stage: 1, sequence_parallel: " + (row.tensor > 1 ? "true" : "false") +
                    "}\n"
                    "training: {sequence_length: 4096, global_batch_size: 128}\n"
                    "options: {memory: {fused_loss: true, gradient_placeholders: true}}\n");
    scenario.profile->device.memory = 178_GiB;
    Bytes most{};
    const MemoryLedger ledger = memory_of(scenario);
    for (const StageMemory& stage : ledger.stages) most = std::max(most, stage.allocated());
    EXPECT_NEAR(most / 1_GiB / row.measured_gib, 1, 0.03);
    EXPECT_NE(ledger.verdict(), Verdict::kOutOfMemory);
  }
}

}  // namespace
}  // namespace stagecraft
