// The identity of a scenario and of the files that it names.
#include "sim/scenario/scenario_hash.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <variant>

#include "base/hash.hpp"
#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/schedule/csv.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/sim/repository_files.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

const std::string kStages =
    "stagecraft: 1\nmodel: {family: stages, forward: 1 ms, input_gradient: 1 ms, weight_gradient: 1 ms}\n"
    "parallelism: {pipeline: 2}\ntraining: {global_batch_size: 2}\n";
const std::string kJob =
    "stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-a100-80gb, nodes: 4}\nparallelism: {tensor: 8}\n"
    "training: {global_batch_size: 32}\n";

class ScenarioHash : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  // Each time with a library that has read nothing.
  [[nodiscard]] Scenario load(const std::string& text, const std::string& file = "s.yaml") const {
    Diagnostics diagnostics;
    const auto root = parse_yaml(text, file, diagnostics);
    Library library(repository_files().data());
    std::optional<Scenario> scenario;
    if (root)
      scenario = read_scenario({.root = *root, .source = file, .folder = folder_}, library, diagnostics);
    for (const Diagnostic& diagnostic : diagnostics.sorted())
      EXPECT_NE(diagnostic.severity, Severity::kError) << render(diagnostic);
    return scenario.value();
  }

  [[nodiscard]] std::string hash_of(const std::string& text) const { return scenario_hash(load(text)); }

  const fs::path folder_ =
      fs::path(testing::TempDir()) /
      (std::string("scenario_hash_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ScenarioHash, IsOfTheTextWhereNoFileIsNamed) {
  Scenario scenario = load(kJob + "name: a job\n");
  const std::string hash = scenario_hash(scenario);
  scenario.name.clear();
  scenario.parallelism.data = 4;
  EXPECT_EQ(hash, StableHash().add(std::string_view(to_yaml(scenario))).hex());
  EXPECT_NE(hash, hash_of(kJob + "overlap: {gradients: false}\n"));
}

TEST_F(ScenarioHash, IsTheSameWhateverTheFileIsCalled) {
  const std::string hash = scenario_hash(load(kJob, "s.yaml"));
  EXPECT_EQ(hash, scenario_hash(load(kJob, "t.yaml")));
  EXPECT_EQ(hash, hash_of(kJob + "name: a job\n"));
}

// 4 nodes of 8 GPUs over 8 tensor ranks.
TEST_F(ScenarioHash, CountsTheReplicasThatAreLeft) {
  const auto written = [this](const std::string& data) {
    std::string job = kJob;
    return hash_of(job.replace(job.find("tensor: 8"), 9, "tensor: 8, data: " + data));
  };
  EXPECT_EQ(hash_of(kJob), written("4"));
}

TEST_F(ScenarioHash, ChangesWithTheOrderInAFile) {
  const auto write_order = [this](const char* name) {
    const Schedule order = generate(*find_schedule(name), {.ranks = 2, .micro_batches = 2});
    write("order.csv", std::get<std::string>(print_csv(order, CsvForm::kComputeOnly)));
    return hash_of(kStages + "schedule: {file: order.csv}\n");
  };
  const std::string first = write_order("1f1b");
  EXPECT_NE(first, write_order("gpipe"));
  EXPECT_EQ(first, write_order("1f1b"));
}

TEST_F(ScenarioHash, ChangesWithATraceOfFailures) {
  const auto write_trace = [this](const std::string& last) {
    write("trace.csv", "time_s,event,node\n0,add,a\n0,add,b\n0,add,c\n0,add,d\n" + last);
    return hash_of(kJob + "failures: {process: {kind: trace, file: trace.csv}, repair: none}\n");
  };
  const std::string first = write_trace("10,remove,a\n");
  EXPECT_NE(first, write_trace("20,remove,a\n"));
  EXPECT_EQ(first, write_trace("10,remove,a\n"));
}

TEST_F(ScenarioHash, ChangesWithATraceOfRepairs) {
  const auto write_repairs = [this](const std::string& end) {
    write("repairs.csv", "time_s,event,node,level,class,description\n0,fault_start,a,1,gpu,x\n" + end +
                             ",fault_end,a,1,gpu,x\n");
    return hash_of(kJob + "failures: {repair: {kind: empirical, file: repairs.csv}}\n");
  };
  EXPECT_NE(write_repairs("10"), write_repairs("20"));
}

TEST_F(ScenarioHash, ChangesWithTheScenarioOfAnotherJob) {
  const auto write_job = [this](const std::string& batch) {
    write(
        "job.yaml",
        "stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-a100-80gb, nodes: 1}\nparallelism: {tensor: 8}\n"
        "training: {global_batch_size: " +
            batch + "}\n");
    return hash_of(
        "stagecraft: 1\nmodel: gpt-22b\ncluster: {node: dgx-a100-80gb, nodes: 2}\nparallelism: {tensor: 8}\n"
        "training: {global_batch_size: 32}\n"
        "network: {mode: flow, placement: {nodes: [0]}, jobs: [{scenario: job.yaml, nodes: [1]}]}\n");
  };
  EXPECT_NE(write_job("8"), write_job("16"));
}

}  // namespace
}  // namespace stagecraft
