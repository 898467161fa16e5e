#include "sim/scenario/library.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/scenario/scenario_tree.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = STAGECRAFT_SOURCE_DIR;

TEST(Library, ReadsAFileOnce) {
  Library library({.root = kRoot});
  Diagnostics diagnostics;
  const fs::path model = kRoot / "scenarios/models/gpt-22b.yaml";
  const fs::path profile = kRoot / "calibrate/profiles/a100-sxm4-80gb.yaml";
  const YamlNode* tree = library.tree(model, diagnostics);
  const HardwareProfile* measured = library.profile(profile, diagnostics);
  ASSERT_NE(tree, nullptr);
  ASSERT_NE(measured, nullptr);
  EXPECT_EQ(measured->name, "a100-sxm4-80gb");
  EXPECT_EQ(library.tree(model, diagnostics), tree);
  EXPECT_EQ(library.profile(profile, diagnostics), measured);
  EXPECT_TRUE(diagnostics.items().empty());
}

TEST(Library, ReportsAWrongFileEveryTime) {
  Library library({.root = kRoot});
  Diagnostics diagnostics;
  EXPECT_EQ(library.tree(kRoot / "no-such.yaml", diagnostics), nullptr);
  EXPECT_EQ(library.tree(kRoot / "no-such.yaml", diagnostics), nullptr);
  EXPECT_EQ(library.profile(kRoot / "README.md", diagnostics), nullptr);
  EXPECT_GE(diagnostics.error_count(), 3u);
}

// Whichever of its names a scenario would take.
TEST(Library, RefusesAProfileOfSoftwareThatIsNotInstalled) {
  Library library({.root = kRoot});
  Diagnostics read, refused;
  std::string text = *library.text(kRoot / "calibrate/profiles/a100-sxm4-80gb.yaml", read);
  const std::string good = "sharded_fp16: megatron-deepspeed-2021";
  const std::size_t at = text.find(good);
  ASSERT_NE(at, std::string::npos);
  const fs::path file = fs::path(testing::TempDir()) / "no_such_software.yaml";
  std::ofstream(file) << text.replace(at, good.size(), "sharded_fp16: fsdp3");
  EXPECT_EQ(library.profile(file, refused), nullptr);
  fs::remove(file);
  ASSERT_EQ(refused.items().size(), 1u);
  const Diagnostic& said = refused.items().front();
  EXPECT_EQ(one_line(said), "software.sharded_fp16: 'fsdp3' is not a known software, nor a file");
  EXPECT_GT(said.where.line, 200);
  EXPECT_EQ(said.hint.substr(0, 13), "did you mean ");
}

// Two libraries that were asked for the same files in another order, one of them twice.
TEST(Library, HashesTheContentsOfTheFilesThatWereAskedFor) {
  Library one({.root = kRoot}), other({.root = kRoot});
  Diagnostics diagnostics;
  const fs::path small = kRoot / "scenarios/models/gpt-22b.yaml";
  const fs::path large = kRoot / "scenarios/models/gpt3-175b.yaml";
  const std::string none = one.contents();
  (void)one.tree(small, diagnostics);
  const std::string of_small = one.contents();
  (void)one.tree(large, diagnostics);
  (void)other.tree(large, diagnostics);
  const std::string of_large = other.contents();
  (void)other.tree(small, diagnostics);
  (void)other.tree(large, diagnostics);
  EXPECT_EQ(one.contents(), other.contents());
  EXPECT_NE(none, of_small);
  EXPECT_NE(of_small, of_large);
  EXPECT_NE(of_large, other.contents());
  other.forget_asked();
  EXPECT_EQ(other.contents(), none);
  (void)other.text(small, diagnostics);
  EXPECT_EQ(other.contents(), of_small);
  EXPECT_TRUE(diagnostics.items().empty());
}

// A model that is a config.json counts among the files, read as it is and with a key of it overridden: a sweep is
// another one where that file is.
TEST(Library, HashesTheConfigurationThatAScenarioNamesAsItsModel) {
  const auto contents = [](const std::string& config, std::vector<Assignment> assignments) {
    Library library({.root = kRoot});
    Diagnostics diagnostics;
    auto root = parse_yaml("stagecraft: 1\nmodel: tests/data/hf_config/" + config +
                               ".config.json\ncluster: {node: dgx-a100-80gb, nodes: 1}\n"
                               "training: {global_batch_size: 8, sequence_length: 1024}\n",
                           "s.yaml", diagnostics);
    const ScenarioTree tree{.root = root.value(), .source = "s.yaml", .folder = kRoot};
    EXPECT_TRUE(load_scenario(tree, assignments, library, diagnostics));
    return library.contents();
  };
  EXPECT_NE(contents("llama-3-8b", {}), contents("llama-3-70b", {}));
  const std::vector<Assignment> fewer = {{.path = "model.layers", .value = yaml_scalar("4")}};
  EXPECT_NE(contents("llama-3-8b", fewer), contents("llama-3-70b", fewer));
}

// Scenarios read one after the other do not see each other: an override of one is not that of the next.
TEST(Library, GivesTheSameScenariosAsReadingAlone) {
  Library library({.root = kRoot});
  const fs::path file = kRoot / "scenarios/gpt3-175b-1024xA100.yaml";
  Diagnostics diagnostics;
  const std::vector<std::string> overrides = {"model.layers=48", "cluster.node.nics=4",
                                              "cluster.fabric.oversubscription=2"};
  const auto changed = load_scenario(file, overrides, library, diagnostics);
  const auto plain = load_scenario(file, {}, library, diagnostics);
  const auto alone = load_scenario(file, {}, DataDirectory{.root = kRoot}, diagnostics);
  ASSERT_TRUE(changed && plain && alone);
  EXPECT_NE(to_yaml(*changed), to_yaml(*alone));
  EXPECT_EQ(to_yaml(*plain), to_yaml(*alone));
  EXPECT_EQ(plain->origins, alone->origins);
}

}  // namespace
}  // namespace stagecraft
