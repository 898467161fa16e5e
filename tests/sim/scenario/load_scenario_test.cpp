#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/usual_names.hpp"
#include "sim/scenario/known_keys.hpp"
#include "tests/sim/scenario/read_scenario.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;

using testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kRoot = STAGECRAFT_SOURCE_DIR;

const std::string kSmallest =
    "stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-a100-80gb, nodes: 1}\ntraining: {global_batch_size: "
    "8}\n";

// One model under three names: a preset, a Hugging Face configuration, a file that a scenario may also be.
TEST(Scenario, NamesAModelByAFileOfHuggingFace) {
  const std::string rest =
      "cluster: {node: dgx-a100-80gb, nodes: 1}\ntraining: {global_batch_size: 8, sequence_length: 8192}\n";
  const Result preset = read("stagecraft: 1\nmodel: llama-3-8b\n" + rest);
  const Result file = read("stagecraft: 1\nmodel: ../tests/data/hf_config/llama-3-8b.config.json\n" + rest);
  const Result fragment = read("stagecraft: 1\nmodel: ../tests/formats/hf_golden/llama-3-8b.yaml\n" + rest);
  ASSERT_TRUE(preset.scenario && file.scenario && fragment.scenario) << file.messages << fragment.messages;
  auto model = std::get<TransformerSpec>(preset.scenario->model);
  model.name = "llama";
  EXPECT_EQ(std::get<TransformerSpec>(file.scenario->model), model);
  EXPECT_EQ(std::get<TransformerSpec>(fragment.scenario->model), model);
  EXPECT_EQ(file.messages, "");
}

// What the importer assumes is not lost where a scenario names the file itself.
TEST(Scenario, KeepsWhatIsAssumedOfAFileOfHuggingFace) {
  const std::string rest = "cluster: {node: dgx-a100-80gb, nodes: 1}\ntraining: {global_batch_size: 8}\n";
  const Result file = read("stagecraft: 1\nmodel: ../tests/data/hf_config/gpt2.config.json\n" + rest);
  ASSERT_TRUE(file.scenario) << file.messages;
  EXPECT_THAT(file.scenario->model_assumptions,
              testing::Contains("embedding and head tied, as in gpt2: tie_word_embeddings is absent"));
  EXPECT_TRUE(read("stagecraft: 1\nmodel: gpt-22b\n" + rest).scenario->model_assumptions.empty());
}

// max_position_embeddings is what positions were made for, not what a job trains with.
TEST(Scenario, SaysTheSequenceLengthThatItTakesFromAFileOfHuggingFace) {
  const std::string head = "stagecraft: 1\nmodel: ";
  const std::string rest = "\ncluster: {node: dgx-a100-80gb, nodes: 1}\ntraining: {global_batch_size: 8";
  const std::string file = "../tests/data/hf_config/llama-3-8b.config.json";
  const Result taken = read(head + file + rest + "}\n");
  ASSERT_TRUE(taken.scenario) << taken.messages;
  EXPECT_EQ(text_of(taken.scenario->warnings),
            "s.yaml:4:11: warning: training.sequence_length: is not given: 8192 tokens, the longest that "
            "the model's file allows\n  hint: give the length that the job trains with\n");
  EXPECT_EQ(taken.messages, text_of(taken.scenario->warnings));  // of commands without a report as well
  EXPECT_TRUE(read(head + file + rest + ", sequence_length: 4096}\n").scenario->warnings.empty());
  EXPECT_TRUE(read(head + "llama-3-8b" + rest + "}\n").scenario->warnings.empty());
}

TEST(Scenario, OverridesAModelOfAnyFile) {
  for (const char* model : {"llama-3-8b", "../tests/data/hf_config/llama-3-8b.config.json",
                            "../tests/formats/hf_golden/llama-3-8b.yaml"}) {
    SCOPED_TRACE(model);
    const std::string text = std::string("stagecraft: 1\nmodel: ") + model +
                             "\ncluster: {node: dgx-a100-80gb, nodes: 1}\ntraining: {global_batch_size: 8}\n";
    const Result whole = read(text), cut = read(text, {"model.layers=4"});
    ASSERT_TRUE(whole.scenario && cut.scenario) << whole.messages << cut.messages;
    auto expected = std::get<TransformerSpec>(whole.scenario->model);
    expected.layers = 4;
    auto got = std::get<TransformerSpec>(cut.scenario->model);
    got.name = expected.name;
    EXPECT_EQ(got, expected);
    EXPECT_THAT(read(text, {"model.layer=4"}).messages, HasSubstr("model.layer: is not a known key"));
  }
}

TEST(Scenario, SaysWhatAFileIsThatIsNone) {
  for (const auto& [file, is] :
       {std::pair{"calibrate/profiles/a100-sxm4-80gb.yaml", "a cost profile"},
        {"calibrate/validation/megatron_sc21.yaml", "a file of published measurements"},
        {"tests/data/hf_config/gpt2.config.json", "a config.json of Hugging Face"},
        {"tests/data/deepspeed/ds_config_fp16_z3.json", "a configuration of DeepSpeed"},
        {"scenarios/models/gpt3-175b.yaml", "a model"},
        {"scenarios/nodes/dgx-h100.yaml", "a node"},
        {"scenarios/fabrics/example-torus.yaml", "a fabric"},
        {"scenarios/software/fsdp2.yaml", "a preset of software"}}) {
    Diagnostics diagnostics;
    EXPECT_FALSE(load_scenario(kRoot / file, {}, repository_files(), diagnostics)) << file;
    EXPECT_THAT(text_of(diagnostics.sorted()),
                HasSubstr(std::string("this is ") + is + ", not a scenario\n  hint: "));
  }
}

TEST(Scenario, SaysWhatIsWrongInTheModelFileItself) {
  EXPECT_THAT(read("stagecraft: 1\nmodel: ../tests/formats/hf_bad/several.json\n").messages,
              HasSubstr("hf_bad/several.json:1:1: error: num_attention_heads: is required, but not given"));
  EXPECT_THAT(read("stagecraft: 1\nmodel: ../scenarios/llama3-8b-64xA100.yaml\n").messages,
              HasSubstr("error: model.model: the file is a scenario, and has no mapping `model:` to lend"));
}

TEST(Scenario, FillsInEveryDefault) {
  const Result result = read(kSmallest);
  ASSERT_TRUE(result.scenario) << result.messages;
  const Scenario& s = *result.scenario;
  EXPECT_EQ(s.source, "some/s.yaml");
  EXPECT_EQ(s.name, "s");
  EXPECT_EQ(std::get<TransformerSpec>(s.model).name, "gpt-22b");
  EXPECT_EQ(std::get<TransformerSpec>(s.model).layers, 48);
  EXPECT_EQ(s.cluster->gpu_count(), 8);
  EXPECT_EQ(s.cluster->groups.front().node.name, "dgx-a100-80gb");
  EXPECT_EQ(s.cluster->fabric.name, "hdr-fat-tree");  // the node's
  EXPECT_EQ(s.profile->name, "a100-sxm4-80gb");       // the node's
  EXPECT_EQ(s.parallelism, ParallelSpec{});
  EXPECT_EQ(s.schedule, ScheduleSpec{});
  EXPECT_EQ(s.overlap, OverlapSpec{});
  const auto sourced = []<class T>(T value, Provenance provenance, const Sourced<T>& found) {
    EXPECT_NE(found.source, "");
    return Sourced<T>{.value = value, .provenance = provenance, .source = found.source};
  };
  EXPECT_EQ(s.options,
            (OptionsSpec{.software = "megatron-lm-2021",
                         .rules = {.schedules = std::vector<std::string>{"1f1b", "interleaved-1f1b"},
                                   .unfused = {LateFusion::kRmsNorm, LateFusion::kSwiglu, LateFusion::kRope},
                                   .operator_overhead = std::chrono::microseconds(70),
                                   .exchange_overhead =
                                       sourced(Duration(std::chrono::microseconds(900)),
                                               Provenance::kAnalytic, s.options.rules.exchange_overhead),
                                   .tensor_collective_overhead =
                                       sourced(Duration(std::chrono::microseconds(45)), Provenance::kAnalytic,
                                               s.options.rules.tensor_collective_overhead),
                                   .sharded_overlap_slowdown = 1.19}}));  // the profile's
  EXPECT_EQ(s.offload, OffloadSpec{});
  EXPECT_EQ(s.training.micro_batch_size, 1);
  EXPECT_EQ(s.training.sequence_length, 2048);  // the model's
  EXPECT_EQ(s.training.precision, Precision::kBf16);
  EXPECT_EQ(s.training.gradient, Precision::kFp32);
  EXPECT_EQ(text_of(s.warnings), "");
}

TEST(Scenario, RemembersWhereEachValueStands) {
  const Result result = read(kSmallest);
  ASSERT_TRUE(result.scenario) << result.messages;
  EXPECT_EQ(result.scenario->origins.at("training.global_batch_size"), (SourceLocation{"s.yaml", 4, 31}));
  EXPECT_FALSE(result.scenario->origins.contains("training.micro_batch_size"));
}

TEST(Scenario, ReducesGradientsInFp16WhenTrainingIsFp16) {
  const Result result = load("gpt3-175b-1024xA100.yaml", {"training.precision=fp16"});
  ASSERT_TRUE(result.scenario) << result.messages;
  EXPECT_EQ(result.scenario->training.gradient, Precision::kFp16);
}

TEST(Scenario, OverridesReachIntoWhatANameStandsFor) {
  const Result result = load("gpt3-175b-1024xA100.yaml",
                             {"model.layers=16", "cluster.node.nics=4", "cluster.fabric.oversubscription=2",
                              "schedule.micro_batch_group=16", "parallelism.tensor=4"});
  ASSERT_TRUE(result.scenario) << result.messages;
  const Scenario& s = *result.scenario;
  EXPECT_EQ(std::get<TransformerSpec>(s.model).layers, 16);
  EXPECT_EQ(std::get<TransformerSpec>(s.model).name, "gpt3-175b");
  EXPECT_EQ(s.cluster->groups.front().node.nics, 4);
  EXPECT_EQ(s.cluster->fabric.name, "hdr-fat-tree");
  EXPECT_EQ(s.cluster->fabric.oversubscription, 2);
  EXPECT_EQ(s.schedule, (ScheduleSpec{.name = "interleaved-1f1b", .micro_batch_group = 16}));
  EXPECT_EQ(s.parallelism.tensor, 4);
}

TEST(Scenario, OverridesReachIntoWords) {
  const Result result =
      load("gpt3-175b-1024xA100.yaml", {"network=closed-form", "network.mode=flow", "training.recompute=full",
                                        "training.recompute.method=uniform", "training.recompute.layers=2"});
  ASSERT_TRUE(result.scenario) << result.messages;
  EXPECT_EQ(result.scenario->network.mode, NetworkMode::kFlow);
  EXPECT_EQ(result.scenario->training.recompute.granularity, Recompute::kFull);
  EXPECT_EQ(result.scenario->training.recompute.layers, 2);
}

TEST(Scenario, TakesAwayKeysThatThereAre) {
  const Result known = load("gpt3-175b-1024xA100.yaml", {"training.recompute=null", "options.software=null"});
  EXPECT_TRUE(known.scenario) << known.messages;
  const Result unknown =
      load("gpt3-175b-1024xA100.yaml", {"trainin.recompute=null", "training.recompte=~", "memory.a.b=null"});
  EXPECT_FALSE(unknown.scenario);
  EXPECT_THAT(unknown.messages, HasSubstr("--set trainin.recompute=null: error: trainin: is not a known key\n"
                                          "  hint: did you mean 'training'?"));
  EXPECT_THAT(unknown.messages, HasSubstr("--set training.recompte=~: error: training.recompte: is not"));
  EXPECT_THAT(unknown.messages, HasSubstr("--set memory.a.b=null: error: memory"));
}

TEST(Scenario, NamesTheOverrideThatIsWrong) {
  const Result result = load("gpt3-175b-1024xA100.yaml", {"parallelism.tensr=4"});
  EXPECT_FALSE(result.scenario);
  EXPECT_THAT(result.messages,
              HasSubstr("--set parallelism.tensr=4: error: parallelism.tensr: is not a known key\n"
                        "  hint: did you mean 'tensor'?"));
}

TEST(Scenario, NamesTheNodeLikeThatOfAnother) {
  const auto said = [](const std::string& name) {
    return load("gpt3-175b-1024xA100.yaml", {"cluster.node=" + name}).messages;
  };
  EXPECT_THAT(said("dgx-h800"), HasSubstr("hint: did you mean 'hgx-h800'?"));
  EXPECT_THAT(said("dgx-a100-80g"), HasSubstr("hint: did you mean 'dgx-a100-80gb'?"));
  EXPECT_THAT(said("ND_H100_v5"),
              HasSubstr("hint: did you mean 'dgx-h100' or 'h100-96gb-500w' or 'hgx-h100-4gpu'?"));
  EXPECT_THAT(said("p4d.24xlarge"), HasSubstr("hint: 'p4d' is like it\n"));
  EXPECT_THAT(said("p5.48xlarge"), HasSubstr("hint: 'p5' is like it\n"));
  EXPECT_THAT(said("p5e"), HasSubstr("hint: 'dgx-h200' is like it\n"));
  EXPECT_THAT(said("ml.p5en.48xlarge"), HasSubstr("hint: 'dgx-h200' is like it\n"));
  EXPECT_THAT(said("A3-megagpu-8g"), HasSubstr("hint: 'dgx-h100' is like it\n"));
  EXPECT_THAT(said("a800"), HasSubstr("hint: did you mean 'hgx-a800'?"));
}

TEST(Scenario, RefusesSharedLinksForNoMistakeOfTheirClusterOrMode) {
  const std::string background = "background: [{from: node 0 gpu 0, to: node 0 gpu 1, rate: 1 GB/s}]}\n";
  EXPECT_THAT(read(kSmallest + "network: {mode: flwo, " + background).messages,
              testing::AllOf(HasSubstr("'flwo' is not known here"), Not(HasSubstr("background"))));
  EXPECT_EQ(read(kSmallest + "network: {mode: flwo, placement: {nodes: [0]}}\n").messages,
            "s.yaml:5:17: error: network.mode: 'flwo' is not known here\n  hint: did you mean 'flow'?\n");
  const std::string mistaken = "cluster: {node: dgx-a100-80gb, nodes: none}\n";
  EXPECT_THAT(
      read("stagecraft: 1\nmodel: gpt-22b\n" + mistaken + "network: {mode: flow, " + background).messages,
      Not(HasSubstr("background")));
}

// Which nodes fail is not known where the job's own are not.
TEST(Scenario, KnowsFaultsBesideJobsThatCannotBePlaced) {
  EXPECT_EQ(read(kSmallest + "network: {jobs: 3}\nfaults: [{at: 0 s, kind: dead-node, node: 0}]\n").messages,
            "s.yaml:5:17: error: network.jobs: jobs share links, and a closed-form network has none\n"
            "  hint: use mode: flow\n");
}

// Whoever looks for a key that there is not sees those that there are.
TEST(Scenario, ListsTheKnownKeysOfAModelBesideAnother) {
  EXPECT_THAT(load("gpt3-175b-1024xA100.yaml", {"model.rope_theta=10000"}).messages,
              HasSubstr("model.rope_theta: is not a known key\n  hint: one of name, family, layers, "));
  EXPECT_THAT(load("gpt3-175b-1024xA100.yaml", {"model.n_layer=10"}).messages,
              HasSubstr("hint: did you mean 'layers'?"));
}

TEST(Scenario, SaysHowStepsOfAccumulationAreGiven) {
  EXPECT_THAT(load("gpt3-175b-1024xA100.yaml", {"training.gradient_accumulation_steps=8"}).messages,
              HasSubstr("hint: set training.global_batch_size = micro_batch_size × steps × data\n"));
}

TEST(Scenario, TakesAdamwForAdam) {
  EXPECT_TRUE(load("gpt3-175b-1024xA100.yaml", {"training.optimizer=adamw"}).scenario);
}

// Nobody knows how many ranks a cluster has that is wrong: its degrees are checked against it when it is right.
TEST(Scenario, AMistakeInTheClusterIsNoneOfItsDegrees) {
  for (const char* wrong : {"cluster.node=h100", "cluster.nodez=8", "cluster.nodes=0"}) {
    const Result result = load("mixtral-8x7b-64xH100.yaml", {wrong});
    EXPECT_FALSE(result.scenario) << wrong;
    EXPECT_THAT(result.messages, HasSubstr("cluster.")) << wrong;
    EXPECT_THAT(result.messages, testing::Not(HasSubstr("parallelism."))) << wrong;
  }
}

TEST(Scenario, NamesTheSectionOfAKeyThatStandsAlone) {
  const auto said = [](const std::string& override) {
    return load("gpt3-175b-1024xA100.yaml", {override}).messages;
  };
  const std::string unknown = "is not a known key\n  hint: did you mean ";
  EXPECT_THAT(said("pipeline=4"), HasSubstr("pipeline: " + unknown + "'parallelism.pipeline'"));
  EXPECT_THAT(said("tp=4"), HasSubstr("tp: " + unknown + "'parallelism.tensor'"));
  EXPECT_THAT(said("Global_Batch_Size=4"), HasSubstr(unknown + "'training.global_batch_size'?"));
  EXPECT_THAT(said("schedul=1f1b"), HasSubstr("schedul: " + unknown + "'schedule'?"));
  EXPECT_THAT(said("fsdp=true"), HasSubstr(unknown + "'parallelism.zero_stage'?"));
  EXPECT_THAT(said("parallelism.fsdp=true"), HasSubstr(unknown + "'zero_stage'?"));
  EXPECT_THAT(said("cluster.bandwidth=400 Gb/s"), HasSubstr(unknown + "'cluster.node.nic_bandwidth'?"));
  EXPECT_THAT(said("failures.mtbf=3 h"), HasSubstr(unknown + "'failures.process.rate_per_node_day'?"));
  // Other mistakes leave the sections that are there; several such keys do not hide each other.
  const Result wrong =
      read("stagecraft: 1\nmodel: none\npp: 2\nbatch_size: 8\ntraining: {recompute: full}\n");
  EXPECT_THAT(wrong.messages, HasSubstr("batch_size: " + unknown + "'training.global_batch_size'?"));
}

TEST(UsualNames, AreOfKeysThatThereAre) {
  Diagnostics diagnostics;
  const auto tree =
      load_tree(kRoot / "scenarios/goodput/checkpoint-restart.yaml", repository_files(), diagnostics);
  ASSERT_TRUE(tree) << text_of(diagnostics.sorted());
  std::vector<std::string> ends;
  for (const std::string& path : known_keys(*tree, repository_files()))
    ends.push_back(path.substr(path.rfind('.') + 1));
  for (const UsualName& name : usual_names())
    EXPECT_THAT(ends, testing::Contains(std::string(name.key))) << name.word;
}

TEST(Scenario, ExpertsBesideTensorRanksMeanSequenceParallelism) {
  const auto loaded = [](const std::string& more) {
    return read(
        "stagecraft: 1\nmodel: mixtral-8x7b\ncluster: {node: dgx-h100, nodes: 1}\n"
        "parallelism: {tensor: 2" +
        more + "}\ntraining: {global_batch_size: 8}\n");
  };
  const Result unsaid = loaded("");
  ASSERT_TRUE(unsaid.scenario) << unsaid.messages;
  EXPECT_TRUE(unsaid.scenario->parallelism.sequence_parallel);
  EXPECT_THAT(unsaid.messages, HasSubstr("warning: parallelism.sequence_parallel: is not given: true"));
  const Result refused = loaded(", sequence_parallel: false");
  ASSERT_TRUE(refused.scenario) << refused.messages;
  EXPECT_FALSE(refused.scenario->parallelism.sequence_parallel);
}

TEST(Scenario, SaysTheSequenceLengthThatItAssumesOfAFamily) {
  const Result result = read(
      "stagecraft: 1\nmodel: {family: gpt, layers: 2, hidden: 1024, heads: 16}\n"
      "cluster: {node: dgx-a100-80gb, gpus: 1}\ntraining: {global_batch_size: 8}\n");
  ASSERT_TRUE(result.scenario) << result.messages;
  EXPECT_EQ(result.scenario->training.sequence_length, 2048);
  EXPECT_EQ(std::get<TransformerSpec>(result.scenario->model).max_sequence_length, 2048);
  std::vector<std::string> paths;
  for (const Diagnostic& warning : result.scenario->warnings) paths.push_back(warning.path);
  EXPECT_THAT(paths, testing::UnorderedElementsAre("training.sequence_length", "model.vocab"));
}

TEST(Scenario, ReadsRecomputeAsAWordOrAMapping) {
  const auto recompute = [](const std::string& text) {
    const Result result = read(
        "stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-a100-80gb, nodes: 1}\n"
        "training: {global_batch_size: 8, attention: unfused, recompute: " +
        text + "}\n");
    EXPECT_EQ(result.messages, "");
    return result.scenario ? result.scenario->training.recompute : RecomputeSpec{};
  };
  EXPECT_EQ(recompute("full"), (RecomputeSpec{.granularity = Recompute::kFull}));
  EXPECT_EQ(recompute("{granularity: full}"), (RecomputeSpec{.granularity = Recompute::kFull}));
  EXPECT_EQ(recompute("{granularity: full, method: block, layers: 3}"),
            (RecomputeSpec{.granularity = Recompute::kFull, .method = RecomputeMethod::kBlock, .layers = 3}));
  EXPECT_EQ(recompute("{granularity: selective, modules: layernorm}"),
            (RecomputeSpec{.granularity = Recompute::kSelective,
                           .modules = RecomputeModules{RecomputeModule::kLayerNorm}}));
  EXPECT_EQ(recompute("{granularity: none}"), RecomputeSpec{});
}

TEST(Scenario, SaysOnceThatASectionIsNoMapping) {
  const Result result = load("gpt3-175b-1024xA100.yaml", {"training=3", "parallelism=4", "offload=1"});
  EXPECT_FALSE(result.scenario);
  EXPECT_EQ(result.messages,
            "--set offload=1: error: offload: expected a mapping, found '1'\n"
            "--set parallelism=4: error: parallelism: expected a mapping, found '4'\n"
            "--set training=3: error: training: expected a mapping, found '3'\n");
}

TEST(Scenario, WarnsBeyondTheTrainedLengthOfRotaryPositions) {
  const Result result = load("llama3-8b-64xA100.yaml", {"training.sequence_length=16384"});
  ASSERT_TRUE(result.scenario) << result.messages;
  ASSERT_EQ(result.scenario->warnings.size(), 1u);
  EXPECT_EQ(result.scenario->warnings.front().message,
            "16384 tokens are more than the model's max_sequence_length = 8192");
}

// Positions that nobody counted are as many as the sequence needs; rotations have no table.
TEST(Scenario, HasALearnedPositionForEachTokenWhereTheModelDoesNotSayHowMany) {
  const auto positions = [](const std::string& more) {
    const Result result =
        read("stagecraft: 1\nmodel: {family: gpt, layers: 2, hidden: 1024, heads: 16, vocab: 51200" + more +
             "}\ncluster: {node: dgx-a100-80gb, nodes: 1}\n"
             "training: {global_batch_size: 8, sequence_length: 512}\n");
    EXPECT_TRUE(result.scenario) << result.messages;
    return std::get<TransformerSpec>(result.scenario->model).max_sequence_length;
  };
  EXPECT_EQ(positions(""), 512);
  EXPECT_EQ(positions(", max_sequence_length: 2048"), 2048);
  EXPECT_EQ(positions(", position: rope"), 0);
}

TEST(Scenario, ReadsAssertionsInBaseUnits) {
  const Result result = read(
      kSmallest + "assert: {peak_memory: \"<= 72 GiB\", mfu: \">= 0.4\", iteration_time: \"<250 ms\"}\n");
  ASSERT_TRUE(result.scenario) << result.messages;
  const auto& assertions = result.scenario->assertions;
  ASSERT_EQ(assertions.size(), 3u);
  EXPECT_EQ(assertions[0].metric, "iteration_time");
  EXPECT_EQ(assertions[0].relation, "<");
  EXPECT_EQ(assertions[0].limit, 0.25);
  EXPECT_EQ(assertions[1].metric, "mfu");
  EXPECT_EQ(assertions[1].relation, ">=");
  EXPECT_EQ(assertions[1].limit, 0.4);
  EXPECT_EQ(assertions[2].limit, 72.0 * (1 << 30));
  EXPECT_EQ(assertions[2].text, "<= 72 GiB");
}

TEST(Scenario, ReadsGroupsOfNodes) {
  const Result result = read(
      "stagecraft: 1\nmodel: gpt-22b\ntraining: {global_batch_size: 8}\n"
      "cluster: {nodes: [{node: dgx-a100-80gb, nodes: 2}, {node: dgx-a100-80gb, nodes: 3}], fabric: "
      "single-switch}\n");
  ASSERT_TRUE(result.scenario) << result.messages;
  EXPECT_EQ(result.scenario->cluster->gpu_count(), 40);
  EXPECT_EQ(result.scenario->cluster->groups.size(), 1u);  // neighbours of one kind
  EXPECT_EQ(result.scenario->cluster->fabric.name, "single-switch");
  const Result apart = read(
      "stagecraft: 1\nmodel: gpt-22b\ntraining: {global_batch_size: 8}\n"
      "cluster: {nodes: [{node: dgx-h100, nodes: 2}, {node: dgx-a100-80gb, nodes: 3}, {node: dgx-h100, "
      "nodes: 3}]}\n");
  ASSERT_TRUE(apart.scenario) << apart.messages;
  EXPECT_EQ(apart.scenario->cluster->groups.size(), 3u);
}

TEST(Scenario, FindsPathsRelativeToItsFolder) {
  const Result result = read(
      "stagecraft: 1\nmodel: models/gpt-22b.yaml\ncluster: {node: ./nodes/dgx-a100-80gb.yaml, nodes: 1}\n"
      "profile: ../calibrate/profiles/a100-sxm4-80gb.yaml\ntraining: {global_batch_size: 8}\n");
  ASSERT_TRUE(result.scenario) << result.messages;
  EXPECT_EQ(std::get<TransformerSpec>(result.scenario->model).layers, 48);
}

std::string with_order(const std::string& file) {
  return "stagecraft: 1\nmodel: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 "
         "ms}\n"
         "parallelism: {pipeline: 2}\nschedule: {file: ../tests/data/schedules/csv/" +
         file + "}\ntraining: {global_batch_size: 2}\n";
}

// 1F1B of two ranks and two micro-batches, as PyTorch writes it.
TEST(ScheduleFile, IsAnOrderInPyTorchsForm) {
  const Result result = read(with_order("made_1f1b_p2_m2_compute_comms.csv"));
  ASSERT_TRUE(result.scenario) << result.messages;
  EXPECT_EQ(result.scenario->schedule.name, "custom");
  ASSERT_TRUE(result.scenario->order);
  EXPECT_EQ(result.scenario->order->schedule.ranks,
            generate(*find_schedule("1f1b"), {.ranks = 2, .micro_batches = 2}).ranks);
  const Result again = read(to_yaml(*result.scenario));
  ASSERT_TRUE(again.scenario) << again.messages;
  EXPECT_EQ(again.scenario->order, result.scenario->order);
}

TEST(ScheduleFile, IsRefusedWithTheLineAndTheCellOfItsMistake) {
  const Result result = read(with_order("made_bad_deadlock.csv"));
  EXPECT_FALSE(result.scenario);
  EXPECT_NE(
      result.messages.find("made_bad_deadlock.csv:2:1: error: schedule.file: rank 1, cell 1 (1F1): blocked"),
      std::string::npos)
      << result.messages;
}

TEST(ScheduleFile, MayHoldFusedPairs) {
  const Result result = read(with_order("made_overlap_cell.csv"));
  ASSERT_TRUE(result.scenario) << result.messages;
  const auto fused = [](const Action& action) { return action.fused; };
  bool any = false;
  for (const std::vector<Action>& rank : result.scenario->order->schedule.ranks)
    any = any || std::ranges::any_of(rank, fused);
  EXPECT_TRUE(any);
}

TEST(ScheduleFile, GoesWithNoName) {
  const Result result = read(
      "stagecraft: 1\nmodel: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}\n"
      "parallelism: {pipeline: 2}\nschedule: {file: none.csv, name: gpipe}\n"
      "training: {global_batch_size: 2}\n");
  EXPECT_EQ(result.messages,
            "s.yaml:4:18: error: schedule.file: 'none.csv' is not a file\n"
            "  hint: a path is relative to the scenario; `stagecraft schedule export` writes such files\n"
            "s.yaml:4:34: error: schedule.name: does not go with file, which gives the whole order\n"
            "  hint: leave one of them out\n");
}

// A scenario in which no value is a default comes back as it was, text with quotes included.
TEST(Scenario, ReadsBackEqualFromItsYaml) {
  const std::string text =
      "stagecraft: 1\nname: \"say \\\"hi\\\": a, b\"\n"
      "model: {family: stages, name: odd, forward: [1 ms, 1500 ns, 1 s, 7 us], input_gradient: 3 ns,\n"
      "  weight_gradient: 2 min, activation: [16 MiB, 1 B, 3 GB, 0], gradient: 512 MiB}\n"
      "cluster:\n  nodes:\n    - {node: dgx-a100-80gb, nodes: 1}\n"
      "    - nodes: 1\n      node: {name: mine, device: A100-SXM4-80GB, gpus: 8, nics: 2, nic_bandwidth: 0.3 "
      "Gb/s, pcie: 31.5 GB/s}\n"
      "  fabric: {kind: single-switch, collective_efficiency: 0.3, switch_latency: 1 ns, nic_bandwidth: 7 "
      "MB/s}\n"
      "profile: a100-sxm4-80gb\n"
      "parallelism: {tensor: 2, pipeline: 2, data: 4, virtual_stages: 2,\n"
      "  order: [pipeline, data, expert, context, tensor]}\n"
      "schedule: {name: interleaved-1f1b, micro_batch_group: 2}\n"
      "training: {global_batch_size: 16, micro_batch_size: 2}\n"
      "overlap: {gradients: false, pipeline: false}\noptions: {scatter_gather: false, fused_kernels: false}\n"
      "assert: {bubble_fraction: \"<= 0.5\", peak_memory: \"< 1 GiB\"}\n";
  const Result first = read(text);
  ASSERT_TRUE(first.scenario) << first.messages;
  const Result second = read(to_yaml(*first.scenario));
  ASSERT_TRUE(second.scenario) << second.messages << to_yaml(*first.scenario);
  const Scenario& a = *first.scenario;
  const Scenario& b = *second.scenario;
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.cluster, b.cluster);
  EXPECT_EQ(a.profile->name, b.profile->name);
  EXPECT_EQ(a.parallelism, b.parallelism);
  EXPECT_EQ(a.schedule, b.schedule);
  EXPECT_EQ(a.training, b.training);
  EXPECT_EQ(a.overlap, b.overlap);
  EXPECT_EQ(options_in_effect(a), b.options);
  ASSERT_EQ(a.assertions.size(), b.assertions.size());
  for (std::size_t i = 0; i < a.assertions.size(); ++i) {
    EXPECT_EQ(a.assertions[i].metric, b.assertions[i].metric);
    EXPECT_EQ(a.assertions[i].relation, b.assertions[i].relation);
    EXPECT_EQ(a.assertions[i].limit, b.assertions[i].limit);
  }
}

// `device` is a name and changes no price, so nodes and profile are compared wherever each was named.
TEST(Scenario, SaysWhereNodesHaveAnotherDeviceThanTheProfile) {
  const std::string h100 =
      "stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-h100, nodes: 1}\ntraining: {global_batch_size: "
      "8}\n";
  const auto said = [&](const std::string& text, const std::vector<std::string>& overrides) {
    const Result result = read(text, overrides);
    EXPECT_TRUE(result.scenario) << result.messages;
    std::vector<std::string> lines;
    for (const Diagnostic& warning : result.scenario->warnings)
      if (warning.code == "other-device") lines.push_back(one_line(warning));
    return lines;
  };
  EXPECT_THAT(
      said(h100, {"cluster.node.device=V100"}),
      ElementsAre("cluster.node.device: is V100, and profile h100-sxm5-80gb is of NVIDIA H100 80GB HBM3"));
  EXPECT_THAT(said(h100, {"cluster.node.profile=b200-sxm-180gb"}),
              ElementsAre("cluster.node.profile: is of NVIDIA B200, and the nodes have H100-SXM5-80GB"));
  EXPECT_THAT(said(h100, {"profile=h200-sxm-141gb"}),
              ElementsAre("profile: is of NVIDIA H200, and the nodes have H100-SXM5-80GB"));
  EXPECT_THAT(
      said("stagecraft: 1\nmodel: gpt-22b\ntraining: {global_batch_size: 8}\ncluster: {nodes: 1, node: "
           "{device: RTX-4090, gpus: 8, nics: 8, nic_bandwidth: 400 Gb/s, pcie: 63 GB/s, nvlink: 450 "
           "GB/s, nvlink_latency: 1 us, profile: h100-sxm5-80gb}}\n",
           {}),
      ElementsAre("cluster.node.profile: is of NVIDIA H100 80GB HBM3, and the nodes have RTX-4090"));
  EXPECT_THAT(
      said("stagecraft: 1\nmodel: gpt-22b\ntraining: {global_batch_size: 16}\ncluster: {nodes: [{node: "
           "dgx-a100-80gb, nodes: 1}, {node: dgx-h100, nodes: 1}]}\n",
           {"cluster.nodes.1.node={name: odd, device: V100, gpus: 8, nics: 8, nic_bandwidth: 400 Gb/s, "
            "pcie: 63 GB/s, nvlink: 450 GB/s, nvlink_latency: 1 us, profile: h100-sxm5-80gb}"}),
      ElementsAre("cluster.nodes: nodes of 'odd' have V100, and profile h100-sxm5-80gb is of NVIDIA H100 "
                  "80GB HBM3"));
  EXPECT_THAT(said(h100, {"cluster.node.device=H100-SXM5"}), ElementsAre());
}

TEST(Scenario, IsSilentOfTheDevicesOfInstalledNodes) {
  for (const std::string& node : repository_files().data().names("scenarios/nodes")) {
    const Result result = read("stagecraft: 1\nmodel: gpt-22b\ncluster: {node: " + node +
                               ", nodes: 1}\ntraining: {global_batch_size: 8}\n");
    if (node == "dgx-1v") continue;  // of no profile
    ASSERT_TRUE(result.scenario) << node << result.messages;
    for (const Diagnostic& warning : result.scenario->warnings)
      EXPECT_NE(warning.code, "other-device") << node << one_line(warning);
  }
}

TEST(Scenario, ReadsBackEveryShapeOfAMachineFromItsYaml) {
  const std::string mesh =
      "{device: A100-SXM4-80GB, gpus: 4, nics: 2, nic_bandwidth: 1 GB/s, pcie: 2 GB/s, nvlink: 3 GB/s,"
      " nvlink_latency: 1 us, nvlink_pairs: [[0, 1, 2], [2, 3]], gpus_per_pcie_switch: 2, pcie_uplink: 1 "
      "GB/s,"
      " sockets: 2, socket_link: 4 GB/s}";
  const std::string domain =
      "{device: A100-SXM4-80GB, gpus: 4, nics: 2, nic_bandwidth: 1 GB/s, pcie: 2 GB/s, nvlink: 3 GB/s,"
      " nvlink_latency: 1 us, nvswitch: 9 GB/s, nvlink_domain: 2}";
  for (const std::string& cluster :
       {"{node: " + mesh +
            ", nodes: 4, fabric: {kind: fat-tree, nodes_per_leaf: 1, spines: 2, nodes_per_pod: 2, cores: 4,"
            " core_oversubscription: 1.5, planes: 2, routing: ecmp, routing_seed: 7},"
            " links: [{name: node 0 nic 1 -> *, bandwidth: 1 MB/s, latency: 3 us, direction: one-way},"
            " {name: spine 0 -> core 1, missing: true}, {name: node 3 gpu 2 -> gpu 3, share: 0.25},"
            " {name: node 2 gpu 2 -> gpu 3, share: 1}]}",
        "{node: " + domain +
            ", nodes: 4, fabric: {kind: dragonfly, groups: 2, routers_per_group: 2, nodes_per_router: 1,"
            " global_links: 2, link_bandwidth: 1 GB/s, global_bandwidth: 2 GB/s}}",
        "{node: " + domain + ", nodes: 4, fabric: {kind: torus, dims: [2, 2], link_bandwidth: 1 GB/s}}"}) {
    SCOPED_TRACE(cluster);
    const Result first = read("stagecraft: 1\nmodel: gpt-22b\nprofile: a100-sxm4-80gb\ncluster: " + cluster +
                              "\ntraining: {global_batch_size: 16}\n");
    ASSERT_TRUE(first.scenario) << first.messages;
    const Result second = read(to_yaml(*first.scenario));
    ASSERT_TRUE(second.scenario) << second.messages << to_yaml(*first.scenario);
    EXPECT_EQ(first.scenario->cluster, second.scenario->cluster);
  }
}

TEST(Scenario, ReadsBackEveryBlockOfAModelFromItsYaml) {
  const auto scenario = [](const std::string& model) {
    return "stagecraft: 1\nmodel: {family: llama, layers: 4, hidden: 64, heads: 4, vocab: 100, ffn_hidden: "
           "96, " +
           model +
           "}\ncluster: {node: dgx-a100-80gb, nodes: 1}\nparallelism: {}\n"
           "training: {global_batch_size: 16, sequence_length: 128}\n";
  };
  for (const char* model :
       {"qkv_bias: true, qk_norm: true, kv_heads: 2, head_size: 24",
        "norms: after, qk_norm: width, activation: geglu", "norms: both, qk_norm: head",
        "mtp_layers: 2, experts: {count: 8, top_k: 2, ffn_hidden: 32}",
        "experts: {count: 8, top_k: 2, groups: 4, top_groups: 3, ffn_hidden: 32}",
        "experts: {count: 8, top_k: 8, ffn_hidden: 32, shared: 2, shared_gate: true, first_dense_layers: 3}",
        "experts: {count: 8, top_k: 1, ffn_hidden: 32, shared: 1, shared_ffn_hidden: 48, dense_layers: [1, "
        "3],"
        " capacity_factor: 1.25, pad_to_capacity: true, imbalance: 1.1}",
        "latent_attention: {query_rank: 24, kv_rank: 16, nope_head_size: 8, rope_head_size: 4,"
        " value_head_size: 10}",
        "latent_attention: {kv_rank: 16, nope_head_size: 8, rope_head_size: 4, value_head_size: 10}"}) {
    SCOPED_TRACE(model);
    const Result first = read(scenario(model));
    ASSERT_TRUE(first.scenario) << first.messages;
    const Result second = read(to_yaml(*first.scenario));
    ASSERT_TRUE(second.scenario) << second.messages << to_yaml(*first.scenario);
    EXPECT_EQ(first.scenario->model, second.scenario->model);
  }
}

// A transformer, and every key that says how to split and repeat it.
TEST(Scenario, ReadsEveryDegreeBackFromItsYaml) {
  const std::string head =
      "stagecraft: 1\nmodel: {family: gpt, layers: 14, hidden: 1024, heads: 16, vocab: 51200, "
      "max_sequence_length: 1024}\ncluster: {node: dgx-a100-80gb, nodes: 4}\n"
      "parallelism: {tensor: 2, context: 2, context_exchange: all-to-all, pipeline: 4, embedding_as_layer: "
      "true, "
      "loss_as_layer: true, sequence_parallel: true, replicated_embedding: true, zero_stage: 3, zero_group: "
      "2}\n"
      "overlap: {tensor: true, context: false, expert: true}\n"
      "options: {bucket_parameters: 25000000, reshard_after_forward: false, expert_dispatcher: node-aware, "
      "fp8_dispatch: true, fp8_parameters: true, fp8_recipe: mxfp8, fp8_attention: current, fused_experts: "
      "true, memory: {gathered_logits: true}}\n"
      "offload: {optimizer: 1, activations: 0.1, weights: 0.333333333333}\n";
  for (const std::string recompute :
       {"none", "selective", "{granularity: selective, modules: [layernorm, mlp]}", "full",
        "{granularity: full, method: block, layers: 2}"}) {
    SCOPED_TRACE(recompute);
    const Result first = read(
        head + "training: {global_batch_size: 8, precision: fp8, sixteen_bit_layers: {last: 2}, recompute: " +
        recompute + "}\n");
    ASSERT_TRUE(first.scenario) << first.messages;
    const Result second = read(to_yaml(*first.scenario));
    ASSERT_TRUE(second.scenario) << second.messages << to_yaml(*first.scenario);
    EXPECT_EQ(first.scenario->model, second.scenario->model);
    EXPECT_EQ(first.scenario->parallelism, second.scenario->parallelism);
    EXPECT_EQ(first.scenario->training, second.scenario->training);
    EXPECT_EQ(first.scenario->overlap, second.scenario->overlap);
    EXPECT_EQ(options_in_effect(*first.scenario), second.scenario->options);
    EXPECT_EQ(first.scenario->offload, second.scenario->offload);
    EXPECT_EQ(first.scenario->parallelism.zero_group, 2);
    EXPECT_EQ(first.scenario->offload.weights, 0.333333333333);
  }
}

// Weights are fp32, so gradients are, in fp16 as well, and a loss that nothing fuses casts its logits.
TEST(Scenario, ReadsAutocastBackFromItsYaml) {
  const std::string head = "stagecraft: 1\nmodel: llama-3-8b\ncluster: {node: dgx-a100-80gb, nodes: 1}\n";
  for (const std::string precision : {"bf16", "fp16"}) {
    const std::string training =
        "training: {global_batch_size: 8, sequence_length: 1024, precision: " + precision +
        ", autocast: true}\n";
    const Result first = read(head + training + "options: {software: fsdp-2023}\n");
    ASSERT_TRUE(first.scenario) << first.messages;
    EXPECT_TRUE(first.scenario->training.autocast);
    EXPECT_EQ(first.scenario->training.gradient, Precision::kFp32);
    EXPECT_TRUE(first.scenario->options.memory.fp32_logits);
    const Result second = read(to_yaml(*first.scenario));
    ASSERT_TRUE(second.scenario) << second.messages << to_yaml(*first.scenario);
    EXPECT_EQ(first.scenario->training, second.scenario->training);
    const Result fused = read(head + training + "options: {software: fsdp-2023, fused_kernels: true}\n");
    EXPECT_FALSE(fused.scenario->options.memory.fp32_logits);
  }
}

// Graphs are those that all devices have, whichever is first; the fabric without a word is the first node's.
TEST(Scenario, SaysWhatItTakesWhereKindsOfNodesDiffer) {
  const std::string h100 = "{node: dgx-h100, nodes: 2}", gb200 = "{node: gb200-nvl72, nodes: 4}",
                    a100 = "{node: dgx-a100-80gb, nodes: 2}";
  const auto on = [](const std::string& nodes, const std::string& more = "") {
    return read("stagecraft: 1\nmodel: llama-3-8b\ncluster: {nodes: [" + nodes +
                "]}\ntraining: {global_batch_size: 64, sequence_length: 1024}\n" + more);
  };
  const auto warnings = [&](const std::string& nodes, const std::string& more = "") {
    const Result result = on(nodes, "options: {software: megatron-core" + more + "}\n");
    return result.scenario ? text_of(result.scenario->warnings) : result.messages;
  };
  for (const std::string& nodes : {h100 + ", " + gb200, gb200 + ", " + h100}) {
    EXPECT_EQ(on(nodes, "options: {software: megatron-core}\n").scenario->options.cuda_graphs,
              CudaGraphs::kNone);
    EXPECT_THAT(warnings(nodes),
                testing::HasSubstr("options.cuda_graphs: is not given: none on all devices, as profile "
                                   "h100-sxm5-80gb has it; gb200-186gb has layers"));
    EXPECT_EQ(warnings(nodes, ", cuda_graphs: layers"), "");
  }
  EXPECT_EQ(on("{node: gb200-nvl72, nodes: 8}").scenario->options.cuda_graphs, CudaGraphs::kLayers);
  EXPECT_THAT(warnings(a100 + ", " + h100),
              testing::HasSubstr("cluster.fabric: is not given: all nodes are on hdr-fat-tree, as node "
                                 "dgx-a100-80gb has it; dgx-h100 has ndr-fat-tree"));
}

}  // namespace
}  // namespace stagecraft
