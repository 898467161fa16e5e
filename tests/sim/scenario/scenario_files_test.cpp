// The scenarios that we ship are right, and each survives being printed and read again.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft {
namespace {

const std::filesystem::path kRoot = STAGECRAFT_SOURCE_DIR;
struct Shipped {
  const char* name;
  int gpus;
  int micro_batches;
};

std::string messages(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.sorted()) text += render(diagnostic) + "\n";
  return text;
}

std::optional<Scenario> load(const std::string& name, Diagnostics& diagnostics) {
  return load_scenario(kRoot / "scenarios" / (name + ".yaml"), {}, repository_files(), diagnostics);
}

std::optional<ParallelPlan> place(const Scenario& scenario, Diagnostics& diagnostics) {
  return resolve({.model = scenario.model,
                  .cluster = scenario.cluster ? &*scenario.cluster : nullptr,
                  .parallelism = scenario.parallelism,
                  .training = scenario.training,
                  .origins = scenario.origins,
                  .fallback = {.file = scenario.source}},
                 diagnostics);
}

class ShippedScenario : public testing::TestWithParam<Shipped> {};

TEST_P(ShippedScenario, LoadsAndResolvesWithoutAWord) {
  Diagnostics diagnostics;
  const auto scenario = load(GetParam().name, diagnostics);
  ASSERT_TRUE(scenario) << messages(diagnostics);
  for (const Diagnostic& warning : scenario->warnings) ADD_FAILURE() << render(warning);
  const auto plan = place(*scenario, diagnostics);
  ASSERT_TRUE(plan) << messages(diagnostics);
  EXPECT_EQ(messages(diagnostics), "");
  EXPECT_EQ(plan->gpus(), GetParam().gpus);
  EXPECT_EQ(plan->micro_batches, GetParam().micro_batches);
  const ScheduleKind* kind = find_schedule(scenario->schedule.name);
  ASSERT_NE(kind, nullptr);
  EXPECT_EQ(kind->constraint({.ranks = plan->pipeline,
                              .micro_batches = plan->micro_batches,
                              .chunks = plan->virtual_stages,
                              .group = scenario->schedule.micro_batch_group}),
            std::nullopt);
}

TEST_P(ShippedScenario, ReadsBackEqualFromItsYaml) {
  Diagnostics diagnostics;
  const auto first = load(GetParam().name, diagnostics);
  ASSERT_TRUE(first) << messages(diagnostics);
  const std::string text = to_yaml(*first);
  const auto root = parse_yaml(text, "printed", diagnostics);
  ASSERT_TRUE(root) << messages(diagnostics) << text;
  const auto second = read_scenario({.root = *root, .source = "printed", .folder = kRoot / "scenarios"},
                                    repository_files(), diagnostics);
  ASSERT_TRUE(second) << messages(diagnostics) << text;
  EXPECT_EQ(first->name, second->name);
  EXPECT_EQ(first->model, second->model);
  EXPECT_EQ(first->cluster, second->cluster);
  const auto profile_of = [](const Scenario& s) { return s.profile ? s.profile->name : "none"; };
  EXPECT_EQ(profile_of(*first), profile_of(*second));
  EXPECT_EQ(first->parallelism, second->parallelism);
  EXPECT_EQ(first->schedule, second->schedule);
  EXPECT_EQ(first->training, second->training);
  EXPECT_EQ(first->overlap, second->overlap);
  EXPECT_EQ(options_in_effect(*first), second->options);
  EXPECT_EQ(first->assertions.size(), second->assertions.size());
  EXPECT_EQ(to_yaml(*second), text);
}

// GPUs and global batch / (data * micro-batch) as the tables of the sources and scenarios/README.md have
// them.
INSTANTIATE_TEST_SUITE_P(
    Files, ShippedScenario,
    testing::Values(Shipped{"gpt3-175b-1024xA100", 1024, 96}, Shipped{"gpt3-175b-1024xA100-1f1b", 1024, 96},
                    Shipped{"gpt3-175b-1024xA100-1f1b-recompute", 1024, 96},
                    Shipped{"llama3-8b-64xA100", 64, 16}, Shipped{"llama3-70b-256xA100", 256, 32},
                    Shipped{"pipeline-4x8", 4, 8}, Shipped{"sc21-1.7b-32xA100", 32, 1},
                    Shipped{"sc21-7.5b-128xA100", 128, 1}, Shipped{"sc21-39.1b-512xA100", 512, 12},
                    Shipped{"sc21-145.6b-1536xA100", 1536, 48}, Shipped{"sc21-529.6b-2520xA100", 2520, 280},
                    Shipped{"seqsel-22b-8xA100-full", 8, 1}, Shipped{"seqsel-22b-8xA100-selective", 8, 1},
                    Shipped{"llama3-8b-fsdp-64xH100", 64, 2}, Shipped{"mixtral-8x7b-64xH100", 64, 32},
                    Shipped{"deepseek-v3-2048xH100", 2048, 120},
                    Shipped{"deepseek-v3-2048xH200-dualpipe", 2048, 120},
                    Shipped{"deepseek-v3-256xGB200", 256, 64}, Shipped{"deepseek-v3-256xGB300", 256, 32},
                    Shipped{"llama3-70b-128xH100-shared-links", 128, 32},
                    Shipped{"llama3-70b-three-jobs-320xH100", 128, 32},
                    Shipped{"llama3.1-405b-128k-16384xH100", 16384, 16}),
    [](const testing::TestParamInfo<Shipped>& tested) {
      std::string name = tested.param.name;
      for (char& c : name)
        if (c == '-' || c == '.') c = '_';
      return name;
    });

}  // namespace
}  // namespace stagecraft
