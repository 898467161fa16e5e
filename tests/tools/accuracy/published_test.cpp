// Predictions against measurements that others published. The tolerances are promises to our users: a change
// that passes one of them is a change that makes the simulator worse.
#include "tools/validation/published.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "sim/scenario/known_keys.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "tests/sim/repository_files.hpp"
#include "tests/sim/simulate/scenarios.hpp"
#include "tests/tools/accuracy/published_set.hpp"

namespace stagecraft {
namespace {

struct Row {
  std::string id;
  double error = 0;  // predicted / measured - 1
};

// Every row whose id begins with `prefix`; one that the simulator refuses throws.
std::vector<Row> scored(const std::string& name, const std::string& prefix) {
  std::vector<Row> rows;
  for (const PublishedRow& row : published(name).rows) {
    const bool timed = row.iteration_seconds || row.tokens_per_s_per_gpu;
    if (!row.id.starts_with(prefix) || !row.skip.empty() || !timed) continue;
    Diagnostics diagnostics;
    const auto scenario = read_scenario({.root = row.scenario, .source = row.id, .folder = {}},
                                        repository_files(), diagnostics);
    diagnostics.throw_if_errors();
    const Report report = simulate(*scenario);
    const double measured = row.iteration_seconds.value_or(
        static_cast<double>(report.tokens) / (row.tokens_per_s_per_gpu.value_or(1) * report.gpus));
    rows.push_back({row.id, to_seconds(report.iteration_time) / measured - 1});
  }
  return rows;
}

double mean_absolute(const std::vector<Row>& rows) {
  double sum = 0;
  for (const Row& row : rows) sum += std::abs(row.error);
  return sum / static_cast<double>(rows.size());
}

void expect_each_within(const std::vector<Row>& rows, double tolerance) {
  for (const Row& row : rows) EXPECT_LE(std::abs(row.error), tolerance) << row.id << ' ' << row.error;
}

// Nodes of 4 GPUs where the set says so, and no set of nodes without any.
TEST(PublishedSet, SaysHowManyGpusItsNodesHave) {
  const PublishedSet set = published("dgxc_gb200");
  const YamlNode* cluster = set.rows.front().scenario.find("cluster");
  ASSERT_NE(cluster, nullptr);
  EXPECT_EQ(cluster->find("nodes")->text, "32");  // of the row's 128 GPUs
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "nodes_of_none.yaml";
  for (const char* wrong : {"0", "-4", "four"}) {
    std::ofstream(file) << "format: stagecraft.published/1\nset: x\ngpus_per_node: " << wrong
                        << "\nsource: {title: x}\nrows:\n- {id: a, gpus: 8}\n";
    Diagnostics diagnostics;
    EXPECT_FALSE(load_published(file, {}, diagnostics)) << wrong;
    ASSERT_EQ(diagnostics.sorted().size(), 1u) << wrong;
    EXPECT_EQ(diagnostics.sorted().front().path, "gpus_per_node");
    EXPECT_EQ(diagnostics.sorted().front().where.line, 3);
  }
  std::filesystem::remove(file);
}

// What is known of a source holds for whatever file has rows of it; what the file says itself comes first.
TEST(PublishedSet, IsCompletedByWhatIsKnownOfItsSource) {
  const std::filesystem::path folder(testing::TempDir());
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  };
  Diagnostics diagnostics;
  const std::vector<KnownSource> sources = load_known_sources(
      write("known.yaml",
            "- {source: a/b, unsaid: {model: {dropout: false}, cluster: {fabric: slow}}, memory_figure: "
            "device, "
            "why: dropout}\n"
            "- {source: a/b @12345678, where: {cluster: {node: stand-in}}, instead: {cluster: {node: card}}, "
            "why: the card}\n"
            "- {source: c/d, unsaid: {cluster: {fabric: other}}, why: nothing}\n"),
      diagnostics);
  const auto read = [&](const std::string& commit, const std::string& cluster) {
    const auto set =
        load_published(write("rows.yaml",
                             "format: stagecraft.published/1\nset: x\nsource: {title: x, repo: "
                             "https://github.com/A/b, commit: " +
                                 commit + "}\nscenario: {cluster: " + cluster +
                                 "}\nmodels: {m: {layers: 2}}\nrows:\n- {id: r, gpus: 8, model: m}\n"),
                       sources, diagnostics);
    diagnostics.throw_if_errors();
    return *set;
  };
  const auto value = [](const PublishedSet& set, const char* section, const char* key) {
    return set.rows.at(0).scenario.find(section)->find(key)->text;
  };
  const PublishedSet stands_in = read("123456789abc", "{node: stand-in}");
  EXPECT_EQ(value(stands_in, "model", "dropout"), "false");
  EXPECT_EQ(value(stands_in, "cluster", "fabric"), "slow");
  EXPECT_EQ(value(stands_in, "cluster", "node"), "card");
  EXPECT_EQ(stands_in.known, (std::vector<std::string>{"dropout", "the card"}));
  EXPECT_EQ(stands_in.memory_figure, MemoryFigure::kDevice);
  const PublishedSet later = read("abcdef123456", "{node: stand-in, fabric: own}");
  EXPECT_EQ(value(later, "cluster", "fabric"), "own");
  EXPECT_EQ(value(later, "cluster", "node"), "stand-in");  // of another version nothing is known
  EXPECT_EQ(later.known, std::vector<std::string>{"dropout"});
  (void)load_known_sources(write("known.yaml", "{source: a/b}"), diagnostics);
  (void)load_known_sources(write("known.yaml", "- {source: a/b, why: nothing}"), diagnostics);
  ASSERT_EQ(diagnostics.sorted().size(), 2u);
  EXPECT_EQ(diagnostics.sorted()[1].message, "nothing is said of it");
  EXPECT_EQ(diagnostics.sorted()[0].message, "this is no list of known sources");
  for (const char* name : {"known.yaml", "rows.yaml"}) std::filesystem::remove(folder / name);
}

// What the rows of a table differ in, but for names that two sections have and the mapping `options.memory`.
TEST(PublishedSet, TakesKeysOfPlansJobsOverlapsAndOptionsInRows) {
  Diagnostics diagnostics;
  Library library(repository());
  const auto tree = load_tree(repository().root / "scenarios/gpt3-175b-1024xA100.yaml", library, diagnostics);
  ASSERT_TRUE(tree.has_value());
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "row_keys.yaml";
  const std::set<std::string> shared{"parallelism.order", "training.optimizer", "options.memory"};
  std::set<std::string> sections;
  for (const std::string& path : known_keys(*tree, library)) {
    const std::string section = path.substr(0, path.find('.')), key = path.substr(path.rfind('.') + 1);
    if (path != section + "." + key || shared.contains(path)) continue;
    if (section != "parallelism" && section != "training" && section != "options" && section != "overlap")
      continue;
    std::ofstream(file)
        << "format: stagecraft.published/1\nset: x\nsource: {title: x}\nrows:\n- {id: a, gpus: 8, "
        << (section == "overlap" ? "overlap_" : "") << key << ": off}\n";
    const auto set = load_published(file, {}, diagnostics);
    ASSERT_TRUE(set.has_value()) << path;
    const YamlNode* there = set->rows.at(0).scenario.find(section);
    ASSERT_TRUE(there != nullptr && there->find(key) != nullptr) << path;
    EXPECT_EQ(there->find(key)->text, "off") << path;
    sections.insert(section);
  }
  std::filesystem::remove(file);
  EXPECT_TRUE(diagnostics.items().empty());
  EXPECT_EQ(sections.size(), 4u);
}

// What is promised of a set of which every row with a time is scored.
struct SetPromise {
  const char* set;
  std::size_t rows;
  double mean;      // absolute error
  double each = 1;  // of the worst row
};

void PrintTo(const SetPromise& promise, std::ostream* out) {
  *out << promise.set;
}

// Sources are in the files. What single rows are off by, and why: docs/accuracy.md.
constexpr SetPromise kPromises[] = {
    {"vtrain_multi_node", 73, 0.075},  // its own authors reach 14.7 %
    {"simumax_b200", 24, 0.04, 0.15},  // FLOPs at the one rate that fits these rows best: 9.5 %
    {"bloom_jean_zay", 54, 0.04},
    {"megatron_lm_h100", 3, 0.06},
    {"llm_foundry_a100", 37, 0.04},
    {"llm_foundry_a100_later", 24, 0.05},
    {"llm_foundry_h100", 5, 0.04, 0.06},
    {"llm_foundry_h100_later", 57, 0.04},
    {"dgxc_h100", 13, 0.03, 0.07},
    {"dgxc_llama31_h100", 96, 0.04, 0.09},
    {"dgxc_nemotron4_h100", 54, 0.035, 0.10},
    {"dgxc_gpt3_h100", 15, 0.055},
    {"megatron_bridge_gb200", 17, 0.055, 0.17},
    {"megatron_bridge_gb300", 9, 0.03, 0.08},
    {"nemo_long_b200", 8, 0.03, 0.06},
    // Nothing was fitted on these.
    {"dgxc_moe_h100", 40, 0.06, 0.16},
    {"vtrain_18b_175b", 36, 0.045, 0.13},
    {"megatron_sc21_rest", 11, 0.04, 0.08},
    {"sequence_parallel_175b_1t", 5, 0.025, 0.045},
    {"zero_bubble_rest", 79, 0.04, 0.10},
    {"bloom_jean_zay_rest", 31, 0.07, 0.25},
    {"bloom_jean_zay_bf16", 17, 0.035, 0.15},
    {"simumax_b200_experts_context", 19, 0.10, 0.14},
    {"deepspeed_zero3_a100", 5, 0.27, 0.38},  // a host that copies a piece for each rank is only half of it
    {"nemo_h100", 21, 0.05, 0.13},
    {"megatron_bridge_h100", 13, 0.04, 0.08},
    {"parallel_folding_h100", 65, 0.07, 0.21},
    {"nemotron4_reports", 6, 0.045, 0.10},
    {"gpu_recipes_h100", 3, 0.055, 0.08},
    {"gpu_recipes_h200", 3, 0.10, 0.14},
    {"gpu_recipes_b200", 3, 0.11, 0.22},
    {"kempner_71b_h200", 6, 0.04},
    {"kempner_h200", 21, 0.08},
    {"own_pytorch_h200", 2, 0.03, 0.05},
    {"own_pytorch_eager_h200", 1, 0.03, 0.03},
    {"own_pytorch_h100", 2, 0.035, 0.05},
    {"own_pytorch_eager_h100", 2, 0.03, 0.03},
    {"llm_foundry_a100_40gb", 78, 0.065, 0.25},
    {"large_runs_a100", 11, 0.06, 0.10},
    {"skywork_a800", 9, 0.04, 0.06},
    {"fms_fsdp_a100", 8, 0.04, 0.08},
    {"internevo_a100", 30, 0.055, 0.28},
    {"xtuner_a100", 11, 0.10, 0.65},  // two of them fill 2 and 4 GPUs
    {"flagperf_deepspeed_a800", 4, 0.095, 0.14},
    {"flagperf_deepspeed_h800", 3, 0.12, 0.28},  // of a network that is printed as 200 Gb/s
    {"flagperf_deepspeed_a100_40gb", 2, 0.02, 0.03},
    {"swift_a800", 4, 0.085, 0.21},
    {"swift_deepspeed_a800", 2, 0.035, 0.04},
    {"torchtune_a100", 4, 0.095, 0.15},
    {"gdgpt_a100_40gb", 17, 0.175, 0.43},  // 3,072 tokens, a quarter faster a token than 2,048 and 4,096
    {"gdgpt_zero_a100_40gb", 4, 0.08, 0.20},
    {"fms_fsdp_h100", 4, 0.09, 0.13},
    {"torchtitan_a100_llama3", 2, 0.04, 0.06},
    {"torchtitan_h200_fp8", 2, 0.085, 0.09},
    {"megatron_bridge_2604_h100", 4, 0.075, 0.19},
    {"megatron_bridge_2604_gb200", 6, 0.07, 0.09},
    {"megatron_bridge_2604_b200", 3, 0.145, 0.20},
    // Their experts before the fused block are too fast since they send each token to a rank once, as they did.
    {"megatron_bridge_gb300_experts", 10, 0.065, 0.195},
    {"megatron_bridge_b300", 6, 0.165, 0.46},  // one of 26.02 is slower than a B200
    // Predicted as soon as fused experts and attention in fp8 were priced.
    {"megatron_bridge_2606_gb200", 3, 0.055, 0.11},
    {"megatron_bridge_2606_gb300", 4, 0.045, 0.07},
    {"mlperf_v60_deepseek_v3_gb300", 2, 0.07, 0.075},
    {"mlperf_v60_deepseek_v3_gb200", 1, 0.05, 0.05},
    {"hy3_gb300", 13, 0.09, 0.14},
    {"torchtitan_a100_llama2", 6, 0.06, 0.11},
    {"automodel_llama70b_h100", 7, 0.09, 0.14},
    {"nebius_qwen3_h100", 18, 0.12},  // routers of random weights send one rank what three have
    {"nemo_b200", 8, 0.12, 0.28},
    {"nemo_gb200", 8, 0.09, 0.19},
    {"gb200_dense_bf16", 7, 0.04, 0.08},
    {"together_b200_nemotron15b", 7, 0.16, 0.27},
    {"mlperf_v50_llama31_405b_h100", 5, 0.03, 0.04},
    {"mlperf_v40_gpt3_h100", 3, 0.035, 0.07},
    {"mlperf_v41_gpt3_h100", 2, 0.09, 0.1},
    {"mlperf_v51_llama31_8b_h200", 1, 0.085, 0.085},
    {"mlperf_v41_gpt3_b200", 1, 0.14, 0.14},
    {"mlperf_v51_llama31_8b_b200", 1, 0.05, 0.05},
    {"mlperf_v50_llama31_405b_gb200", 1, 0.03, 0.03},
    {"mlperf_v50_llama31_405b_gb200_data_last", 1, 0.04, 0.04},
    {"olmo_core_h100", 10, 0.055, 0.16},
    {"torchtitan_async_tp_h100", 8, 0.075, 0.13},
    {"flagperf_h100", 5, 0.095, 0.13},
    {"flagperf_h800", 2, 0.03, 0.04},
    {"flash_attention_a100", 5, 0.08, 0.16},
    // Scenarios of these were written with the keys of the contract before anything was predicted, then with what
    // their sources say: docs/accuracy.md, "Unseen".
    {"bignlp_a100", 7, 0.045, 0.09},
    {"azure_nemo_a100", 11, 0.07, 0.26},
    {"flagperf_a800", 7, 0.02, 0.04},
    {"atorch_fsdp_a100", 4, 0.035, 0.07},
    {"atorch_deepspeed_3d_a100", 6, 0.115, 0.13},
    {"llm_c_a100", 3, 0.035, 0.04},
    {"easycontext_a100", 5, 0.255, 0.46},
    {"hf_granite_7b_a100", 2, 0.145, 0.16},
    {"llm_c_h100", 1, 0.08, 0.08},
    {"mlperf_v31_gpt3_h100", 1, 0.045, 0.05},
    {"nanotron_times_h100", 7, 0.225, 0.5},
    {"automodel_moe_h100", 6, 0.18, 0.28},
    {"lightning_thunder_h100", 8, 0.055, 0.13},
    {"torchtitan_qwen3_h100", 4, 0.205, 0.25},
    {"prime_rl_h100", 3, 0.38, 0.53},
    {"aws_qwen3_30b_h100", 2, 0.565, 0.58},
    {"pai_qwen3_235b_h800", 4, 0.12, 0.19},
    {"te_gpt2_xl_h100", 1, 0.25, 0.25},
    {"te_gpt2_xl_h200", 1, 0.23, 0.23},
    {"nebius_llama8b_h200", 2, 0.085, 0.1},
    {"prime_rl_h200", 2, 0.275, 0.37},
    {"prime_rl_b200", 4, 0.135, 0.37},
    // Predicted as soon as windows, biases of experts and clamps were priced.
    {"megatron_bridge_gpt_oss_h100", 3, 0.175, 0.19},
    {"megatron_bridge_gpt_oss_b200", 3, 0.12, 0.165},
    {"megatron_bridge_gpt_oss_b300", 3, 0.20, 0.22},
    {"megatron_bridge_gpt_oss_gb200", 5, 0.21, 0.23},
    {"megatron_bridge_gpt_oss_gb300", 5, 0.19, 0.25},
    {"mlperf_v60_gpt_oss_20b_b300", 2, 0.185, 0.28},
    {"mlperf_v60_gpt_oss_20b_gb200", 1, 0.11, 0.11},
    {"mlperf_v60_gpt_oss_20b_gb300", 2, 0.145, 0.24},
    {"mlperf_v60_gpt_oss_20b_gb300_512", 1, 0.37, 0.37},
    {"olmo3_h100", 2, 0.025, 0.035},
};

class PublishedSets : public testing::TestWithParam<SetPromise> {};

TEST_P(PublishedSets, ArePredictedAsPromised) {
  const std::vector<Row> rows = scored(GetParam().set, "");
  ASSERT_EQ(rows.size(), GetParam().rows);
  expect_each_within(rows, GetParam().each);
  EXPECT_LE(mean_absolute(rows), GetParam().mean);
}

INSTANTIATE_TEST_SUITE_P(Each, PublishedSets, testing::ValuesIn(kPromises),
                         [](const auto& instance) { return std::string(instance.param.set); });

// Source: Narayanan et al., SC'21 (arXiv 2104.04473), Table 1: weak scaling from 32 to 2,520 GPUs.
TEST(Sc21Table1, IsPredictedWithinSevenPercentAndThreeAndAHalfOnAverage) {
  const std::vector<Row> rows = scored("megatron_sc21", "sc21_t1_");
  ASSERT_EQ(rows.size(), 5u);
  expect_each_within(rows, 0.07);
  EXPECT_LE(mean_absolute(rows), 0.035);
}

// Source: the same, Table 2: DeepSpeed's ZeRO 3 on 384 GPUs.
TEST(Sc21Table2, OfZero3IsPredictedWithinEighteenPercent) {
  expect_each_within(scored("megatron_sc21", "sc21_t2_"), 0.18);
}

// Source: Korthikanti et al. (arXiv 2205.05198), Table 5.
TEST(SequenceParallelTable5, IsPredictedWithinFivePercentAndTwoAndAHalfOnAverage) {
  const std::vector<Row> rows = scored("sequence_parallel_selective_recompute", "seqsel_t5_");
  ASSERT_EQ(rows.size(), 4u);
  expect_each_within(rows, 0.05);
  EXPECT_LE(mean_absolute(rows), 0.025);
}

// Left out: two rows that took twice and 1.6 times as long as their neighbours (docs/accuracy.md).
TEST(VTrainMultiNode, OfTensor8And16IsPredictedWithinThreeAndAHalfPercentOnAverage) {
  std::vector<Row> rows = scored("vtrain_multi_node", "vtm_");
  std::erase_if(rows, [](const Row& row) {
    const bool wide = row.id.find("_t8") != std::string::npos || row.id.find("_t16") != std::string::npos;
    return !wide || row.id == "vtm_3.6B_t8d8p1_mb64" || row.id == "vtm_3.6B_t8d8p1_mb2";
  });
  ASSERT_EQ(rows.size(), 35u);
  EXPECT_LE(mean_absolute(rows), 0.035);
}

// Source: Qi et al. (arXiv 2401.10241), Table 4. Rows come in pairs: ZB-1p and 1F1B at equal micro-batches.
TEST(ZeroBubble, IsPredictedWithinFourPercentAndRatiosOfSchedulesWithinThree) {
  const std::vector<Row> rows = scored("zero_bubble", "zb_t4_");
  ASSERT_EQ(rows.size(), 12u);
  expect_each_within(rows, 0.04);
  for (std::size_t i = 0; i < rows.size(); i += 2)
    EXPECT_NEAR((1 + rows[i].error) / (1 + rows[i + 1].error), 1, 0.03) << rows[i].id;
}

// Small jobs that wait for their hosts: one constant for the software, one for each other kind of host.
// Source: NVIDIA/Megatron-LM, golden values of its functional tests.
TEST(MegatronTests, JobsThatWaitForTheirHostsArePredictedWithinFourteenPercentOnAverage) {
  EXPECT_LE(mean_absolute(scored("megatron_tests_h100", "h100_")), 0.14);
  EXPECT_LE(mean_absolute(scored("megatron_tests_a100", "a100_")), 0.11);
  EXPECT_LE(mean_absolute(scored("megatron_tests_gb200", "gb200_")), 0.1);
}

// Held out: the constants of the small jobs on layers of 2,048 and 4,096.
TEST(MegatronBridgeOnB200, QwenThatWaitsForItsHostIsPredicted) {
  std::vector<Row> rows = scored("megatron_bridge_b200", "");
  std::erase_if(rows, [](const Row& row) { return row.id.find("qwen3") == std::string::npos; });
  ASSERT_EQ(rows.size(), 3u);
  for (const Row& row : rows)
    EXPECT_LE(std::abs(row.error), row.id.find("30b") != std::string::npos ? 0.04 : 0.14) << row.id;
}

// Held out: a GPT of 15B over 256 GPUs, and mixtures whose routing is the router's own.
TEST(MegatronReleaseTests, ArePredictedWithinTenPercentOnAverageAndTheGptOnA100WithinThree) {
  std::vector<Row> a100 = scored("megatron_release_a100", "release_a100_15b");
  ASSERT_EQ(a100.size(), 4u);
  expect_each_within(a100, 0.03);
  EXPECT_LE(mean_absolute(scored("megatron_release_h100", "release_")), 0.1);
  EXPECT_LE(mean_absolute(scored("megatron_release_gb200", "release_")), 0.1);
}

// Left out: the first release of DeepSeek-V3 on GB200, whose time is that of its host (docs/accuracy.md).
TEST(DgxCloudGb200, IsPredictedWithinThreeAndAHalfPercentOnAverage) {
  std::vector<Row> rows = scored("dgxc_gb200", "dgxc_");
  std::erase_if(rows, [](const Row& row) { return row.id.find("deepseek") != std::string::npos; });
  ASSERT_EQ(rows.size(), 24u);
  expect_each_within(rows, 0.08);
  EXPECT_LE(mean_absolute(rows), 0.035);
}

// Qwen3 with and without overlapped exchanges, by two dispatchers; what overlap saves was fitted on these
// pairs. Left out: two layouts of many small kernels, which wait for their host (docs/accuracy.md).
TEST(Qwen3OnH100, IsPredictedWithinEightPercentByDispatcherAndOverlap) {
  std::vector<Row> rows = scored("megatron_moe_h100", "");
  std::erase_if(rows,
                [](const Row& row) { return row.id.ends_with("in_node") || row.id.ends_with("tensor_4"); });
  ASSERT_EQ(rows.size(), 6u);
  expect_each_within(rows, 0.08);
}

// Held out, and the only pairs that differ in nothing but routing: what is even is predicted, what the router's own
// choices cost has to be said. One number says it for every length.
TEST(Qwen3OfLongSequences, IsPredictedWithinTwoPercentWhereRoutingIsEven) {
  const std::vector<Row> rows = scored("megatron_moe_long_h100", "");
  ASSERT_EQ(rows.size(), 8u);
  for (const Row& row : rows) {
    if (!row.id.ends_with("balanced")) continue;
    EXPECT_LE(std::abs(row.error), 0.02) << row.id;
  }
}

struct LayerTimes {
  double forward_ms = 0, backward_ms = 0;
};

StagePrice one_stage(const std::string& layers, const std::string& parallelism,
                     const std::string& recompute) {
  const Scenario scenario = scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: " +
      layers +
      ", hidden: 6144, heads: 64, vocab: 51200,"
      " max_sequence_length: 2048}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 1}\n"
      "parallelism: {tensor: 8, " +
      parallelism +
      "}\n"
      "training: {global_batch_size: 4, micro_batch_size: 4, precision: fp16, attention: unfused, "
      "recompute: " +
      recompute + "}\n");
  return simulate_in_full(scenario).prices.stages.front();
}

// A model of two layers and one of a single layer differ by one layer, without embedding, head and loss.
LayerTimes layer_times(const std::string& parallelism, const std::string& recompute) {
  const StagePrice one = one_stage("1", parallelism, recompute);
  const StagePrice two = one_stage("2", parallelism, recompute);
  const auto ms = [](const PassPrice& more, const PassPrice& less) {
    return to_seconds(more.total() - less.total()) * 1e3;
  };
  return {.forward_ms = ms(two.forward, one.forward),
          .backward_ms = ms(two.recompute, one.recompute) + ms(two.input_gradient, one.input_gradient) +
                         ms(two.weight_gradient, one.weight_gradient)};
}

// Source: Korthikanti et al. (arXiv 2205.05198), Table 4: one layer of the 22B model, tensor 8,
// micro-batch 4.
TEST(SequenceParallelTable4, LayerTimesAreWithinTenPercent) {
  Diagnostics diagnostics;
  const auto file = load_yaml_file(
      repository().root / "calibrate/validation/sequence_parallel_selective_recompute.yaml", diagnostics);
  ASSERT_TRUE(file.has_value());
  const YamlNode* tables = file->find("tables");
  ASSERT_NE(tables, nullptr);
  const YamlNode* rows = tables->find("layer_times_22B_tensor8_micro_batch4");
  ASSERT_NE(rows, nullptr);
  int compared = 0;
  for (const YamlNode& row : rows->items) {
    const std::string& id = row.find("id")->text;
    SCOPED_TRACE(id);
    const LayerTimes predicted =
        layer_times(id == "seqsel_t4_sp" ? "sequence_parallel: true" : "sequence_parallel: false",
                    id == "seqsel_t4_full" ? "full" : "none");
    const auto measured = [&](const char* key) { return parse_number(row.find(key)->text).value(); };
    EXPECT_NEAR(predicted.forward_ms / measured("fwd_ms"), 1, 0.10);
    EXPECT_NEAR(predicted.backward_ms / measured("bwd_ms"), 1, 0.10);
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

// Throughput of the interleaved schedule over that of 1F1B: GPT-3 175B on 96 A100, 12 stages of 8 tensor
// ranks.
double interleaving_gain(int virtual_stages, int batch) {
  const auto seconds = [&](int chunks) {
    const Scenario scenario = scenario_of(
        "stagecraft: 1\n"
        "model: gpt3-175b\n"
        "cluster: {node: dgx-a100-80gb, nodes: 12}\n"
        "parallelism: {tensor: 8, pipeline: 12, virtual_stages: " +
        std::to_string(chunks) + "}\nschedule: " + (chunks == 1 ? "1f1b" : "interleaved-1f1b") +
        "\noverlap: {gradients: false, parameters: false, pipeline: false}\n"
        "training: {global_batch_size: " +
        std::to_string(batch) +
        ", micro_batch_size: 1, precision: fp16, attention: unfused, recompute: full}\n");
    return to_seconds(simulate(scenario).iteration_time);
  };
  return seconds(1) / seconds(virtual_stages) - 1;
}

// Source: Narayanan et al., SC'21, abstract (more than 10 %) and section 5.3.2 (the gap closes as the batch
// grows). Predicted: 17 and 26 % at 24 samples with 2 and 4 chunks, 7 and 10 % at 60.
TEST(Sc21Interleaving, GainsOverTenPercentAndLessTheLargerTheBatch) {
  for (const int chunks : {2, 4}) {
    double before = 1;
    for (const int batch : {12, 24, 36, 48, 60}) {
      const double gain = interleaving_gain(chunks, batch);
      EXPECT_LT(gain, before) << chunks << " chunks, " << batch << " samples";
      before = gain;
    }
    EXPECT_GT(interleaving_gain(chunks, 36), 0.10);
    EXPECT_GT(before, 0.05);
    EXPECT_LT(before, 0.12);
  }
}

// Throughput with scatter/gather over that without: GPT-3 175B on 96 A100, 12 stages of 8 tensor ranks.
double scatter_gather_gain(int virtual_stages, int batch) {
  const auto seconds = [&](const char* on) {
    const Scenario scenario = scenario_of(
        "stagecraft: 1\n"
        "model: gpt3-175b\n"
        "cluster: {node: dgx-a100-80gb, nodes: 12}\n"
        "parallelism: {tensor: 8, pipeline: 12, virtual_stages: " +
        std::to_string(virtual_stages) +
        "}\n"
        "schedule: interleaved-1f1b\n"
        "overlap: {gradients: false, parameters: false, pipeline: false}\n"
        "options: {scatter_gather: " +
        on + "}\n" + "training: {global_batch_size: " + std::to_string(batch) +
        ", micro_batch_size: 1, precision: fp16, attention: unfused, recompute: full}\n");
    return to_seconds(simulate(scenario).iteration_time);
  };
  return seconds("false") / seconds("true") - 1;
}

// Source: Narayanan et al., SC'21, figure 18: up to 11 % more throughput, batches of 12 to 60. The number of
// chunks is not printed; more chunks send more messages. Predicted: 3, 7 and 15 % with 2, 4 and 8.
TEST(Sc21Figure18, ScatterGatherGainsUpToElevenPercentBetweenFourAndEightChunks) {
  for (const int batch : {12, 60}) {
    const double two = scatter_gather_gain(2, batch), four = scatter_gather_gain(4, batch),
                 eight = scatter_gather_gain(8, batch);
    EXPECT_GT(two, 0.02);
    EXPECT_GT(four, two);
    EXPECT_GT(eight, four);
    EXPECT_LE(four, 0.11);
    EXPECT_GE(eight, 0.11);
    EXPECT_LE(eight, 0.16);
  }
}

}  // namespace
}  // namespace stagecraft
