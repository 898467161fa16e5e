// Timelines of shipped scenarios, hashed: the same bits in every build type and on any number of threads.
//
// STAGECRAFT_BLESS=1 writes golden_hashes.txt anew; the difference is then read before it is committed. Hash
// and time stand side by side, so that the difference says how much a prediction moved.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "tests/file_content.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

constexpr std::array kScenarios = {"gpt3-175b-1024xA100",
                                   "llama3-70b-256xA100",
                                   "llama3-8b-64xA100",
                                   "sc21-39.1b-512xA100",
                                   "llama3-70b-128xH100-shared-links",
                                   "llama3-70b-three-jobs-320xH100"};

// One line a scenario: name, nanoseconds, hash of the timeline.
std::string hashes() {
  std::string text;
  for (const char* name : kScenarios) {
    const Report report = simulate(shipped(name));
    text += std::string(name) + ' ' + std::to_string(report.iteration_time.count()) + " ns " +
            report.timeline_hash + '\n';
  }
  return text;
}

TEST(GoldenTimelines, AreTheSameInEveryBuildType) {
  const std::filesystem::path file = repository().root / "tests/sim/simulate/golden_hashes.txt";
  if (std::getenv("STAGECRAFT_BLESS") != nullptr) std::ofstream(file) << hashes();
  EXPECT_EQ(hashes(), content_of(file));
}

TEST(GoldenTimelines, AreTheSameFromOneAndFromEightThreads) {
  std::array<std::string, 8> found;
  {
    std::vector<std::jthread> threads;
    for (std::string& text : found) threads.emplace_back([&text] { text = hashes(); });
  }
  const std::string alone = hashes();
  for (const std::string& text : found) EXPECT_EQ(text, alone);
}

}  // namespace
}  // namespace stagecraft
