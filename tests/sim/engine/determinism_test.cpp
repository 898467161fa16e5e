#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "sim/engine/engine.hpp"
#include "tests/sim/engine/random_program.hpp"

namespace stagecraft {
namespace {

std::uint64_t hash_of_a_hundred_runs() {
  StableHash all;
  for (std::uint64_t seed = 0; seed < 100; ++seed) all.add(hash(run(random_program(seed))));
  return all.value();
}

// With links and loads, and what they tell of the links.
std::uint64_t hash_of_a_hundred_runs_with_flows() {
  StableHash all;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Timeline timeline = run(random_flow_program(seed));
    all.add(hash(timeline));
    for (const LinkUsage& usage : timeline.links) {
      all.add(std::bit_cast<std::uint64_t>(usage.bytes));
      for (const Duration time : {usage.busy, usage.saturated, usage.delay}) all.add(time.count());
    }
    for (const Meeting& meeting : timeline.meetings) all.add(meeting.time.count());
  }
  return all.value();
}

TEST(Engine, GivesTheGoldenHashInEveryBuildType) {
  // A golden value: it changes when the random programs or the meaning of a timeline change, and for no other
  // reason.
  EXPECT_EQ(hash_of_a_hundred_runs(), 0xf7eb7a6a24be4e7aULL);
}

TEST(Engine, GivesTheSameHashOnEightThreadsAtOnce) {
  std::array<std::uint64_t, 8> hashes{};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t& result : hashes)
      threads.emplace_back([&result] { result = hash_of_a_hundred_runs(); });
  }
  for (const std::uint64_t result : hashes) EXPECT_EQ(result, hash_of_a_hundred_runs());
}

TEST(Engine, GivesTheGoldenHashOfSharedLinksInEveryBuildType) {
  // A golden value, as above.
  EXPECT_EQ(hash_of_a_hundred_runs_with_flows(), 0xf63f7eef63b87cc4ULL);
}

TEST(Engine, GivesTheSameHashOfSharedLinksOnEightThreadsAtOnce) {
  std::array<std::uint64_t, 8> hashes{};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t& result : hashes)
      threads.emplace_back([&result] { result = hash_of_a_hundred_runs_with_flows(); });
  }
  for (const std::uint64_t result : hashes) EXPECT_EQ(result, hash_of_a_hundred_runs_with_flows());
}

}  // namespace
}  // namespace stagecraft
