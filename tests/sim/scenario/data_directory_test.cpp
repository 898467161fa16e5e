// Where the program's own scenarios, models and profiles lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sim/scenario/library.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;
namespace fs = std::filesystem;

class DataDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("STAGECRAFT_DATA");
    root_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
  }
  void TearDown() override {
    unsetenv("STAGECRAFT_DATA");
    fs::remove_all(root_);
  }
  fs::path root_;
};

TEST_F(DataDirectoryTest, IsTheNearestParentWithModels) {
  fs::create_directories(root_ / "tree/scenarios/models");
  fs::create_directories(root_ / "tree/build/release/bin");
  const auto found = DataDirectory::find(root_ / "tree/build/release/bin/stagecraft");
  ASSERT_TRUE(found);
  EXPECT_EQ(fs::canonical(found->root), fs::canonical(root_ / "tree"));
}

TEST_F(DataDirectoryTest, IsTheShareFolderOfAnInstallation) {
  fs::create_directories(root_ / "usr/share/stagecraft/scenarios/models");
  fs::create_directories(root_ / "usr/bin");
  const auto found = DataDirectory::find(root_ / "usr/bin/stagecraft");
  ASSERT_TRUE(found);
  EXPECT_EQ(fs::canonical(found->root), fs::canonical(root_ / "usr/share/stagecraft"));
}

TEST_F(DataDirectoryTest, IsWhatTheEnvironmentSaysOrNothing) {
  fs::create_directories(root_ / "mine/scenarios/models");
  setenv("STAGECRAFT_DATA", (root_ / "mine").c_str(), 1);
  EXPECT_EQ(DataDirectory::find("/usr/bin/stagecraft")->root, root_ / "mine");
  setenv("STAGECRAFT_DATA", (root_ / "misspelt").c_str(), 1);
  EXPECT_FALSE(DataDirectory::find(fs::path(STAGECRAFT_SOURCE_DIR) / "build/bin/stagecraft"));
}

TEST_F(DataDirectoryTest, ListsTheStemsOfYamlFilesInOrder) {
  fs::create_directories(root_ / "scenarios/models");
  for (const char* file : {"b.yaml", "a.yaml", "README.md"})
    std::ofstream(root_ / "scenarios/models" / file) << "x";
  EXPECT_THAT(DataDirectory{.root = root_}.names("scenarios/models"), ElementsAre("a", "b"));
  EXPECT_THAT(DataDirectory{.root = root_}.names("no/such/folder"), ElementsAre());
}

}  // namespace
}  // namespace stagecraft
