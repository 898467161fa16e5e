// Every message that a wrong scenario gives, word for word: bad/NAME.yaml and bad/NAME.expected beside it.
//
// STAGECRAFT_BLESS=1 writes the .expected files anew; the difference is then read before it is committed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "sim/plan/parallel_plan.hpp"
#include "sim/scenario/scenario.hpp"
#include "tests/file_content.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = STAGECRAFT_SOURCE_DIR;
const fs::path kFolder = kRoot / "tests/sim/scenario/bad";

// What a user would read: all diagnostics in the order of their places.
std::string messages_of(const std::string& name) {
  Diagnostics diagnostics;
  const std::string file = name + ".yaml";
  if (const auto root = parse_flawed_yaml(content_of(kFolder / file), file, diagnostics)) {
    const auto scenario = read_scenario(*root, file, kFolder, {.root = kRoot}, diagnostics);
    if (scenario) {
      (void)resolve({.model = scenario->model,
                     .cluster = scenario->cluster ? &*scenario->cluster : nullptr,
                     .parallelism = scenario->parallelism,
                     .training = scenario->training,
                     .origins = scenario->origins,
                     .fallback = {.file = file}},
                    diagnostics);
    }
  }
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.sorted()) text += render(diagnostic) + "\n";
  return text;
}

class BadScenario : public testing::TestWithParam<const char*> {};

TEST_P(BadScenario, GivesExactlyTheExpectedMessages) {
  const std::string messages = messages_of(GetParam());
  const fs::path expected = kFolder / (std::string(GetParam()) + ".expected");
  if (std::getenv("STAGECRAFT_BLESS") != nullptr) std::ofstream(expected) << messages;
  EXPECT_FALSE(messages.empty());
  EXPECT_EQ(messages, content_of(expected));
}

constexpr const char* kFiles[] = {"alias-bomb",
                                  "autocast",
                                  "autocast-of-fp8",
                                  "background-places",
                                  "batch-does-not-divide",
                                  "chunks-do-not-divide",
                                  "chunks-of-a-plain-order",
                                  "context-and-experts",
                                  "contradictions",
                                  "duplicate-key",
                                  "fabric-does-not-fit",
                                  "fabric-too-large",
                                  "failure-policy-without-a-name",
                                  "failure-processes",
                                  "failure-spares",
                                  "failures",
                                  "failures-nobody-to-replace",
                                  "failures-that-never-end",
                                  "faults",
                                  "faults-links",
                                  "fewer-gpus-than-the-cluster",
                                  "folded-without-a-pipeline",
                                  "hugging-face",
                                  "independent",
                                  "jobs",
                                  "jobs-closed-form",
                                  "keys-of-other-sections",
                                  "keys-without-sections",
                                  "links",
                                  "missing-keys",
                                  "misspelt-names",
                                  "misspelt-order-of-chunks",
                                  "more-gpus-than-a-node",
                                  "more-gpus-than-the-cluster",
                                  "network",
                                  "network-iterations",
                                  "no-cluster",
                                  "no-model",
                                  "no-unit",
                                  "not-a-scenario",
                                  "out-of-range",
                                  "pipeline-does-not-divide",
                                  "placement-beside-refusals",
                                  "placement-beside-typo",
                                  "placement-of-an-unknown-model",
                                  "placement-that-follows",
                                  "recipe-as-precision",
                                  "recompute",
                                  "recompute-without-granularity",
                                  "sequence-too-long",
                                  "several",
                                  "several-devices",
                                  "sixteen-bit-layers",
                                  "stage-layers",
                                  "stages-lists",
                                  "steps",
                                  "sweep",
                                  "tensor-does-not-divide",
                                  "unknown-keys",
                                  "unknown-schema",
                                  "wrong-kinds"};

INSTANTIATE_TEST_SUITE_P(Files, BadScenario, testing::ValuesIn(kFiles),
                         [](const testing::TestParamInfo<const char*>& tested) {
                           std::string name = tested.param;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

TEST(BadScenario, IsListedForEveryFileOfTheFolder) {
  std::set<std::string> scenarios, expected;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") scenarios.insert(entry.path().stem().string());
    if (entry.path().extension() == ".expected") expected.insert(entry.path().stem().string());
  }
  const std::set<std::string> listed(std::begin(kFiles), std::end(kFiles));
  EXPECT_EQ(scenarios, listed);
  EXPECT_EQ(expected, listed);
}

}  // namespace
}  // namespace stagecraft
