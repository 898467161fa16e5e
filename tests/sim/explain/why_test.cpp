#include "sim/explain/why.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "sim/explain/codes.hpp"
#include "sim/explain/sensitivities.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using namespace std::chrono_literals;

std::string file_of(const std::string& name) {
  return STAGECRAFT_SOURCE_DIR "/scenarios/" + name;
}

Scenario load(const std::string& name, const std::vector<std::string>& overrides = {}) {
  Diagnostics diagnostics;
  auto scenario = load_scenario(file_of(name), overrides, repository_files(), diagnostics);
  diagnostics.throw_if_errors();
  return *std::move(scenario);
}

Why why_of(const std::string& name, const std::vector<std::string>& overrides = {}) {
  const Scenario scenario = load(name, overrides);
  return explain_why(scenario, simulate_in_full(scenario),
                     [&](const std::vector<std::string>& set, Diagnostics& diagnostics) {
                       std::vector<std::string> all = overrides;
                       all.insert(all.end(), set.begin(), set.end());
                       return load_scenario(file_of(name), all, repository_files(), diagnostics);
                     });
}

const Sensitivity& of(const std::vector<Sensitivity>& results, const std::string& input) {
  return *std::ranges::find(results, input, &Sensitivity::input);
}

// Every device, where they differ.
TEST(Sensitivities, OfSeveralDevicesChangeAllOfThem) {
  const Scenario scenario = load("goodput/oobleck-mixed.yaml");
  ASSERT_GT(scenario.group_profiles.size(), 1u);
  const Duration time = simulate(scenario).iteration_time;
  const auto results = sensitivities(scenario, "iteration_time_s", Amount(time));
  ASSERT_TRUE(of(results, "compute speed").difference.has_value());
  EXPECT_LT(*of(results, "compute speed").difference, -0.01);
}

// System: GPipe on 4 ranks, 8 micro-batches, F 1 ms, B 2 ms: (8 + 3) * 3 = 33 ms. A forward of 1.1 ms makes
// it (8 + 3) * 3.1 = 34.1 ms, and a batch of 9 in place of 8 (9 + 3) * 3 = 36 ms.
TEST(Sensitivities, AreTheScenarioSimulatedAgain) {
  const Scenario scenario = load("pipeline-4x8.yaml", {"schedule=gpipe"});
  const auto results = sensitivities(scenario, "iteration_time_s", Amount(33ms));
  const Sensitivity& forward = of(results, "forward of a stage");
  EXPECT_EQ(forward.value, Amount(34'100us));
  EXPECT_NEAR(*forward.difference, 1.1 / 33, 1e-12);
  EXPECT_EQ(of(results, "training.global_batch_size").change, "8 -> 9");
  EXPECT_EQ(of(results, "training.global_batch_size").value, Amount(36ms));
}

// Property: faster hardware never makes an iteration longer, and what a job does not have is not listed.
TEST(Sensitivities, MoreBandwidthIsNeverSlower) {
  const Scenario scenario = load("llama3-8b-64xA100.yaml");
  const Amount base = simulate(scenario).iteration_time;
  const auto results = sensitivities(scenario, "iteration_time_s", base);
  for (const char* input : {"compute speed", "memory bandwidth", "NVLink bandwidth", "NIC bandwidth"})
    EXPECT_LE(*of(results, input).difference, 0) << input;
  for (const char* input : {"network latency", "launch cost of kernels", "host time per iteration"})
    EXPECT_GE(*of(results, input).difference, 0) << input;
  EXPECT_EQ(std::ranges::find(results, "forward of a stage", &Sensitivity::input), results.end());
}

// System: half of the optimizer on hosts: its states are copied over PCIe, then stepped in the host's memory.
// Expectations: 10 % more of each way shortens its part, both together the whole step to 1 / 1.1. Without a stated
// memory bandwidth the assumed one grows. A job that offloads nothing has neither input.
TEST(Sensitivities, TheWaysToTheHostCountWhereSomethingIsOffloaded) {
  const std::string path = "offload.optimizer_step_s";
  for (const char* stated : {"409.6 GB/s", "null"}) {
    const Scenario scenario =
        load("llama3-8b-64xA100.yaml",
             {"offload.optimizer=0.5", std::string("cluster.node.host_memory_bandwidth=") + stated});
    const Amount base = simulate(scenario).offload.optimizer_step;
    const auto results = sensitivities(scenario, path, base);
    const double pcie = *of(results, "PCIe bandwidth").difference;
    const double memory = *of(results, "host memory bandwidth").difference;
    EXPECT_LT(pcie, -0.001);
    EXPECT_LT(memory, -0.001);
    EXPECT_NEAR(pcie + memory, 1 / 1.1 - 1, 1e-6);
  }
  const Scenario without = load("llama3-8b-64xA100.yaml");
  const auto results = sensitivities(without, "iteration_time_s", simulate(without).iteration_time);
  for (const char* input : {"PCIe bandwidth", "host memory bandwidth"})
    EXPECT_EQ(std::ranges::find(results, input, &Sensitivity::input), results.end()) << input;
}

// System: all-reduces of 16 MiB over 8 H100, 125 us by a point of the curve, of which 29 us are the latency of
// its formula. Expectation: 2.9 us more each, some 2 % of what the tensor ranks wait.
TEST(Sensitivities, LatencyInANodeMovesThePointsOfCurves) {
  const Scenario scenario =
      load("llama3-8b-64xA100.yaml",
           {"cluster.node=dgx-h100", "cluster.nodes=1", "parallelism.tensor=8", "parallelism.data=1",
            "parallelism.sequence_parallel=false", "training.sequence_length=2048",
            "training.global_batch_size=8", "options.cuda_graphs=iteration"});
  const std::string path = "breakdown_s.tensor_comm";
  const Simulation simulation = simulate_in_full(scenario);
  const Amount base = simulation.report.breakdown[static_cast<std::size_t>(Category::kTensorComm)];
  const auto results = sensitivities(scenario, path, base);
  EXPECT_GT(*of(results, "latency inside a node").difference, 0.01);
  EXPECT_LT(*of(results, "latency inside a node").difference, 0.03);
}

// System: the same pipeline. Orders of two chunks cut its stages in two; interleaved-zb and zb-v end first, as
// `compare` has it.
TEST(Why, NamesTheBoundTheLossAndTheBestChange) {
  const Why why = why_of("pipeline-4x8.yaml", {"schedule=gpipe"});
  EXPECT_EQ(why.bound_by, "backward");
  ASSERT_THAT(why.sentences, SizeIs(3));
  EXPECT_EQ(
      why.sentences[0],
      "The critical path of 33.0 ms is mostly backward passes (48.5 %), the bubble (27.3 %) and forward "
      "passes (24.2 %).");
  EXPECT_EQ(why.sentences[1],
            "9.00 ms of it, 27.3 %, is neither forward nor backward: most of that is the bubble (27.3 %).");
  ASSERT_TRUE(why.best);
  EXPECT_EQ(why.best->words, "schedule=interleaved-zb");
  EXPECT_EQ(why.best->iteration_time, 25500us);
  EXPECT_THAT(why.sentences[2],
              EndsWith("schedule=interleaved-zb would help most: 25.5 ms in place of 33.0 ms, 22.7 % less."));
}

// Llama 3 8B on 16 nodes with NICs of 100 Gb/s, whose gathers and reductions run beside nearly all passes.
const std::vector<std::string> kZero3OnSlowLinks = {
    "cluster={node: dgx-h100, nodes: 16, fabric: {kind: fat-tree, nic_bandwidth: 100 Gb/s}}",
    "parallelism={zero_stage: 3}", "training={global_batch_size: 128, sequence_length: 4096}"};

// Expectation: half of the iteration is that slowdown, as `explain` of forward and backward has it.
TEST(Why, SaysWhatTrafficBesideThePassesAddsToThem) {
  const Why why = why_of("llama3-8b-64xA100.yaml", kZero3OnSlowLinks);
  ASSERT_THAT(why.sentences, SizeIs(4));
  EXPECT_THAT(why.sentences[2], testing::MatchesRegex("The passes include .*, 4[0-9].[0-9] %, of slowdown by "
                                                      "traffic beside them."));
  EXPECT_THAT(why_of("pipeline-4x8.yaml").sentences, SizeIs(3));
}

// The optimizer alone sharded fits, on a card that is full, and gathers once in place of twice. The software stays, which
// a profile may choose by the stage.
TEST(Why, AdvisesLessShardingThatFits) {
  const Why why = why_of("llama3-8b-64xA100.yaml", kZero3OnSlowLinks);
  ASSERT_TRUE(why.best);
  EXPECT_EQ(why.best->words, "parallelism.zero_stage=1 options.software=fsdp2");
  std::set<std::string> tried;
  for (const TriedChange& change : why.changes) tried.insert(change.words);
  for (const char* change : {"parallelism.zero_stage=2", "options.reshard_after_forward=false",
                             "parallelism.zero_stage=0 options.software=fsdp2"})
    EXPECT_TRUE(tried.contains(change)) << change;
}

// A token goes once to each node: of 16 ranks over two nodes less leaves a node than of an all-to-all.
TEST(Why, AdvisesTheDispatcherOfExpertsOverNodes) {
  const std::vector<std::string> fine = {"model.experts.count=128", "model.experts.top_k=8",
                                         "model.experts.ffn_hidden=1792", "parallelism.expert=16"};
  const Why why = why_of("mixtral-8x7b-64xH100.yaml", fine);
  const auto tried =
      std::ranges::find(why.changes, "options.expert_dispatcher=node-aware", &TriedChange::words);
  ASSERT_NE(tried, why.changes.end());
  const Scenario now = load("mixtral-8x7b-64xH100.yaml", fine);
  EXPECT_LT(tried->iteration_time, simulate_in_full(now).report.iteration_time);
}

// Costs are of the one chunk that is said: another number of chunks would be another job.
TEST(Why, LeavesTheChunksOfGivenCosts) {
  const Why why = why_of("pipeline-4x8.yaml", {"schedule=gpipe", "parallelism.virtual_stages=1"});
  ASSERT_TRUE(why.best);
  EXPECT_EQ(why.best->words, "schedule=zb-h1");
  EXPECT_EQ(why.best->iteration_time, 27ms);
}

// The same, also on GPUs: only a capacity can say what fits.
TEST(Why, OnlyWhereTheCapacityIsKnownSaysThatMemoryFits) {
  const std::string gpipe = "schedule=gpipe", on_gpus = "cluster={node: dgx-a100-80gb, gpus: 4}";
  EXPECT_THAT(why_of("pipeline-4x8.yaml", {gpipe}).sentences.back(), Not(HasSubstr("memory")));
  EXPECT_THAT(why_of("pipeline-4x8.yaml", {gpipe, on_gpus}).sentences.back(),
              HasSubstr("% less, and memory fits"));
  // One stage has no bubble to shorten.
  EXPECT_THAT(why_of("pipeline-4x8.yaml", {"parallelism.pipeline=1"}).sentences.back(),
              Not(HasSubstr("memory")));
}

// What is advised gives what is promised, and fits.
TEST(Why, TheBestChangeIsReallySimulatedAndFits) {
  const Why why = why_of("llama3-8b-64xA100.yaml", {"overlap.gradients=false"});
  ASSERT_TRUE(why.best);
  std::vector<std::string> set = why.best->set;
  set.insert(set.begin(), "overlap.gradients=false");
  const Report report = simulate(load("llama3-8b-64xA100.yaml", set));
  EXPECT_EQ(report.iteration_time, why.best->iteration_time);
  EXPECT_NE(report.memory.verdict(), Verdict::kOutOfMemory);
  for (const TriedChange& change : why.changes)
    EXPECT_TRUE(change.iteration_time.has_value() || !change.refused.empty()) << change.words;
}

// System: micro-batches of 4 without recompute do not fit into 79.1 GiB. Overlapping tensor communication is
// faster and does not fit either; micro-batches of 1 fit and take longer.
TEST(Why, OfAJobThatDoesNotFitNamesTheFastestChangeThatDoes) {
  const std::vector<std::string> large = {"training.micro_batch_size=4", "training.recompute=none"};
  const Report report = simulate(load("llama3-8b-64xA100.yaml", large));
  ASSERT_EQ(report.memory.verdict(), Verdict::kOutOfMemory);
  const Why why = why_of("llama3-8b-64xA100.yaml", large);
  ASSERT_TRUE(why.best);
  EXPECT_EQ(why.best->words, "training.micro_batch_size=1");
  EXPECT_NE(why.best->verdict, Verdict::kOutOfMemory);
  EXPECT_GT(*why.best->iteration_time, report.iteration_time);
  EXPECT_THAT(why.sentences.back(), HasSubstr("First make it fit into memory"));
  EXPECT_THAT(why.sentences.back(), HasSubstr("training.micro_batch_size=1 is the fastest that fits"));
}

// Micro-batches of 16 long samples fit by no single change.
TEST(Why, WhereNoChangeFitsSaysWhomToAsk) {
  const Why why = why_of("llama3-8b-64xA100.yaml", {"training.micro_batch_size=16", "training.recompute=none",
                                                    "training.sequence_length=131072"});
  EXPECT_FALSE(why.best);
  EXPECT_THAT(why.sentences.back(), HasSubstr("none of "));
  EXPECT_THAT(why.sentences.back(), HasSubstr("`stagecraft memory`"));
  EXPECT_THAT(why.sentences.back(), HasSubstr("`stagecraft search`"));
}

// Only orders that the preset lists are tried, its form of interleaving in place of the usual one.
TEST(Why, AdvisesOnlyOrdersThatTheSoftwareRuns) {
  const std::map<std::string, std::set<std::string>> tried = {
      {"megatron-core", {"1f1b", "interleaved-1f1b"}},
      {"megatron-deepspeed-2021", {"1f1b"}},
      {"fsdp-2023", {}},
      {"fsdp2", {"1f1b", "interleaved-pytorch", "interleaved-zb", "zb-v"}}};
  for (const auto& [software, orders] : tried) {
    const Why why = why_of("gpt3-175b-1024xA100.yaml", {"schedule=gpipe", "parallelism.virtual_stages=1",
                                                        "options.software=" + software});
    std::set<std::string> seen;
    for (const TriedChange& change : why.changes)
      if (change.words.starts_with("schedule="))
        seen.insert(change.words.substr(9, change.words.find(' ') - 9));
    EXPECT_EQ(seen, orders) << software;
  }
}

// 80 layers on 16 ranks are 5 a rank, which no 2 or 4 chunks divide.
TEST(Why, TriesTheChunksThatDivideTheLayers) {
  const Why why =
      why_of("llama3-8b-64xA100.yaml", {"model=llama-3-70b", "cluster={node: dgx-h100, nodes: 16}",
                                        "parallelism={tensor: 8, pipeline: 16, sequence_parallel: true}",
                                        "training={global_batch_size: 16, sequence_length: 8192}"});
  std::set<std::string> interleaved;
  for (const TriedChange& change : why.changes)
    if (change.words.starts_with("schedule=interleaved-1f1b")) interleaved.insert(change.words);
  EXPECT_EQ(interleaved, std::set<std::string>{"schedule=interleaved-1f1b parallelism.virtual_stages=5"});
  ASSERT_TRUE(why.best);
  EXPECT_EQ(why.best->words, *interleaved.begin());
}

// System: 32 layers of Llama 3 8B on 8 ranks, four each. Its head of 128,256 words takes as long as two to three
// layers. Expectation: the last rank gets two layers, and those it gives away go to two others, so that the
// longest has five in place of some 6.5. The first rank has the embedding, so it is not one of them.
TEST(Why, NamesTheRankThatTheOthersWaitForAndBalancesTheSplit) {
  const Why why = why_of("llama3-8b-64xA100.yaml",
                         {"cluster={node: dgx-h100, nodes: 4}", "parallelism={pipeline: 8, zero_stage: 1}",
                          "training={global_batch_size: 256, sequence_length: 8192}", "schedule=1f1b"});
  ASSERT_THAT(why.sentences, SizeIs(4));
  EXPECT_THAT(why.sentences[2], testing::MatchesRegex("Pipeline rank 7 works 5[0-9].[0-9] % longer than the "
                                                      "mean of the ranks, and the others wait for it."));
  ASSERT_TRUE(why.best);
  EXPECT_EQ(why.best->words, "parallelism.stage_layers=[4,5,5,4,4,4,4,2]");
  std::set<std::string> tried;
  for (const TriedChange& change : why.changes) tried.insert(change.words);
  EXPECT_TRUE(tried.contains("parallelism.stage_layers=[4,4,4,4,4,5,5,2]"));
}

TEST(Why, TriesAFusedLossWhereThereIsNone) {
  const auto tries = [](const std::string& options) {
    const Why why =
        why_of("llama3-8b-64xA100.yaml", {"cluster={node: dgx-h100, nodes: 8}", "options=" + options});
    return std::ranges::count(why.changes, "options.memory.fused_loss=true", &TriedChange::words);
  };
  EXPECT_EQ(tries("{software: megatron-core}"), 1);
  EXPECT_EQ(tries("{software: megatron-core, memory: {compiled_loss: true}}"), 1);
  EXPECT_EQ(tries("{software: megatron-core, memory: {fused_loss: true}}"), 0);
  EXPECT_EQ(tries("{software: megatron-lm-2021}"), 0);
}

// On an H100 PyTorch ran FlashAttention-2 until 2.10; a key names what it runs since.
TEST(Why, TriesTheNewerAttentionKernelsOfTheDevice) {
  const auto tries = [](const std::string& keys, const std::string& kernel) {
    const Why why = why_of("llama3-8b-64xA100.yaml", {"cluster={node: dgx-h100, nodes: 8}", keys});
    return std::ranges::count(why.changes, "options.attention_kernel=" + kernel, &TriedChange::words);
  };
  EXPECT_EQ(tries("options={software: fsdp2}", "cudnn"), 1);
  EXPECT_EQ(tries("options={software: fsdp2}", "fa2"), 0);
  EXPECT_EQ(tries("options={software: fsdp2}", "triton-2023"), 0);
  EXPECT_EQ(tries("options={software: fsdp2, attention_kernel: cudnn}", "cudnn"), 0);
  EXPECT_EQ(tries("training.attention=unfused", "cudnn"), 0);
}

// The last rank has two layers in each of its two chunks, and the head: either chunk gives one away.
TEST(Why, BalancesRanksOfSeveralChunks) {
  const Why why =
      why_of("llama3-8b-64xA100.yaml",
             {"cluster={node: dgx-h100, nodes: 4}", "parallelism={pipeline: 8, virtual_stages: 2}",
              "training={global_batch_size: 256, sequence_length: 8192}", "schedule=interleaved-1f1b"});
  const auto split = std::ranges::find_if(
      why.changes, [](const TriedChange& c) { return c.words.starts_with("parallelism.stage_layers="); });
  ASSERT_NE(split, why.changes.end());
  EXPECT_EQ(split->words, "parallelism.stage_layers=[2,3,3,2,2,2,2,1,2,2,2,2,2,2,2,1]");
}

// The ends count as layers there, which no list of layers may say besides.
TEST(Why, BalancesAlsoWhereTheEndsCountAsLayers) {
  const Why why = why_of(
      "llama3-8b-64xA100.yaml",
      {"cluster={node: dgx-h100, nodes: 4}", "parallelism={pipeline: 8, loss_as_layer: true}",
       "model.layers=31", "training={global_batch_size: 256, sequence_length: 8192}", "schedule=1f1b"});
  const auto split = std::ranges::find_if(
      why.changes, [](const TriedChange& c) { return c.words.starts_with("parallelism.stage_layers="); });
  ASSERT_NE(split, why.changes.end());
  EXPECT_THAT(split->words, EndsWith(" parallelism.loss_as_layer=false"));
  EXPECT_TRUE(split->iteration_time.has_value()) << split->refused;
}

// Twice the NIC bandwidth saves a thousandth of the iteration.
TEST(Why, LeavesOutWhatSavesLessThanHalfAPercent) {
  const std::vector<std::string> sets = {"parallelism.zero_stage=1"};
  const Duration now = simulate(load("sc21-1.7b-32xA100.yaml", sets)).iteration_time;
  const Why why = why_of("sc21-1.7b-32xA100.yaml", sets);
  EXPECT_LT(*why.changes.back().iteration_time, now);
  EXPECT_FALSE(why.best);
  EXPECT_THAT(why.sentences.back(), EndsWith("changes of settings that fit into memory would save 0.5 %."));
}

// All activations are copied, although they would fit; half of them are copied behind the passes.
TEST(Why, AdvisesLessOffloadWhereCopiesAreTheBound) {
  const Why why = why_of("llama3-8b-64xA100.yaml", {"offload.activations=1", "training.recompute=none"});
  EXPECT_THAT(why.sentences.front(), HasSubstr("the host and copies to it ("));
  std::set<std::string> tried;
  for (const TriedChange& change : why.changes) tried.insert(change.words);
  EXPECT_TRUE(tried.contains("offload.activations=0.5"));
  EXPECT_TRUE(tried.contains("offload.activations=0"));
  ASSERT_TRUE(why.best);
  EXPECT_THAT(why.best->words, testing::StartsWith("offload.activations="));
}

TEST(Codes, AreSortedAndSaySomething) {
  EXPECT_TRUE(std::ranges::is_sorted(code_meanings(), std::less<>(), &CodeMeaning::code));
  for (const CodeMeaning& meaning : code_meanings())
    EXPECT_TRUE(meaning.meaning.ends_with('.')) << meaning.code;
  EXPECT_FALSE(meaning_of("no-such-code"));
}

// Every `.code = "…"` of the sources is explained.
TEST(Codes, OfTheSourcesAreExplained) {
  const std::regex code(R"re(\.code = "([a-z0-9-]+)")re");
  int seen = 0;
  for (const char* folder : {"base", "formats", "models", "topology", "sim", "tools", "calibrate"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(STAGECRAFT_SOURCE_DIR "/" + std::string(folder))) {
      if (entry.path().extension() != ".cpp") continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        std::smatch found;
        if (line.find(".code = ") == std::string::npos || !std::regex_search(line, found, code)) continue;
        ++seen;
        EXPECT_TRUE(meaning_of(found[1].str())) << entry.path() << ": " << found[1];
      }
    }
  }
  EXPECT_GT(seen, 50);
}

}  // namespace
}  // namespace stagecraft
