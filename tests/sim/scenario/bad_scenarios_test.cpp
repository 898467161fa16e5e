// Every message that a wrong scenario gives, word for word: bad/NAME.yaml and bad/NAME.expected beside it.
//
// STAGECRAFT_BLESS=1 writes the .expected files anew; the difference is then read before it is committed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
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
  if (const auto root = parse_yaml(content_of(kFolder / file), file, diagnostics)) {
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

INSTANTIATE_TEST_SUITE_P(
    Files, BadScenario,
    testing::Values("alias-bomb", "batch-does-not-divide", "chunks-do-not-divide", "chunks-of-a-plain-order",
                    "context-and-experts", "contradictions", "duplicate-key", "failure-policy-without-a-name",
                    "failure-processes", "failure-spares", "failures", "failures-nobody-to-replace",
                    "failures-that-never-end", "fewer-gpus-than-the-cluster", "fabric-does-not-fit",
                    "fabric-too-large", "folded-without-a-pipeline", "faults", "faults-links", "hugging-face",
                    "independent", "jobs", "jobs-closed-form", "misspelt-names", "misspelt-order-of-chunks",
                    "links", "missing-keys", "more-gpus-than-a-node", "more-gpus-than-the-cluster", "network",
                    "network-iterations", "no-cluster", "no-model", "no-unit", "not-a-scenario",
                    "out-of-range", "pipeline-does-not-divide", "recompute", "recompute-without-granularity",
                    "sequence-too-long", "several", "several-devices", "stage-layers", "stages-lists",
                    "steps", "sweep", "tensor-does-not-divide", "unknown-keys", "unknown-schema",
                    "wrong-kinds"),
    [](const testing::TestParamInfo<const char*>& tested) {
      std::string name = tested.param;
      for (char& c : name)
        if (c == '-') c = '_';
      return name;
    });

TEST(BadScenario, IsListedForEveryFileOfTheFolder) {
  int yaml = 0;
  int expected = 0;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    yaml += entry.path().extension() == ".yaml";
    expected += entry.path().extension() == ".expected";
  }
  EXPECT_EQ(yaml, 50);
  EXPECT_EQ(expected, 50);
}

}  // namespace
}  // namespace stagecraft
