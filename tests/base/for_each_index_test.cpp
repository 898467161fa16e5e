#include "base/for_each_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/check.hpp"

namespace stagecraft {
namespace {

using testing::Each;
using testing::ElementsAre;
using namespace std::chrono_literals;

TEST(ForEachIndex, CallsForEachIndexOnceOnAnyNumberOfThreads) {
  for (const int threads : {-1, 0, 1, 2, 8, 300})
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{500}}) {
      std::vector<int> calls(200);
      for_each_index({.count = calls.size(), .threads = threads, .step = step},
                     [&](std::size_t, std::size_t i) { ++calls[i]; });
      EXPECT_THAT(calls, Each(1)) << threads << " threads, step " << step;
    }
}

TEST(ForEachIndex, OneThreadTakesIndicesInOrder) {
  std::vector<std::size_t> order;
  for_each_index({.count = 5, .step = 2}, [&](std::size_t thread, std::size_t i) {
    EXPECT_EQ(thread, 0u);
    order.push_back(i);
  });
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

// Each thread counts into a number of its own, without a lock.
TEST(ForEachIndex, ThreadsMayKeepAStateEach) {
  std::vector<int> calls(4);
  for_each_index({.count = 1'000, .threads = 4},
                 [&](std::size_t thread, std::size_t) { ++calls.at(thread); });
  EXPECT_EQ(std::accumulate(calls.begin(), calls.end(), 0), 1'000);
}

TEST(ForEachIndex, WithoutIndicesNothingIsCalled) {
  const auto fail = [] { throw std::logic_error("called"); };
  for_each_index({.count = 0,
                  .threads = 4,
                  .tick =
                      [&](std::size_t) {
                        fail();
                        return true;
                      }},
                 [&](std::size_t, std::size_t) { fail(); });
}

// 7, 17, 27, … fail, and 7 takes the longest to do so.
TEST(ForEachIndex, ThrowsForTheLeastIndexThatFails) {
  const auto work = [](std::size_t, std::size_t i) {
    if (i % 10 != 7) return;
    if (i == 7) std::this_thread::sleep_for(5ms);
    throw std::runtime_error(std::to_string(i));
  };
  for (const int threads : {1, 2, 8})
    for (const std::size_t step : {std::size_t{1}, std::size_t{6}, std::size_t{100}}) {
      std::string message;
      try {
        for_each_index({.count = 100, .threads = threads, .step = step}, work);
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      EXPECT_EQ(message, "7") << threads << " threads, step " << step;
    }
}

TEST(ForEachIndex, TakesNoMoreAfterAFailure) {
  int calls = 0;
  const auto work = [&](std::size_t, std::size_t i) {
    ++calls;
    if (i == 7) throw std::runtime_error("no");
  };
  EXPECT_THROW(for_each_index({.count = 100}, work), std::runtime_error);
  EXPECT_EQ(calls, 8);
}

TEST(ForEachIndex, TicksAfterEachStep) {
  std::vector<std::size_t> ticks;
  const auto tick = [&](std::size_t taken) {
    ticks.push_back(taken);
    return true;
  };
  for_each_index({.count = 7, .step = 3, .tick = tick}, [](std::size_t, std::size_t) {});
  EXPECT_THAT(ticks, ElementsAre(3, 6, 7));
}

TEST(ForEachIndex, TicksOnTheCallingThread) {
  const std::thread::id caller = std::this_thread::get_id();
  const auto tick = [&](std::size_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    return true;
  };
  for_each_index({.count = 100, .threads = 4, .tick = tick}, [](std::size_t, std::size_t) {});
}

TEST(ForEachIndex, ATickStopsIt) {
  std::atomic<int> calls = 0;
  const auto count = [&](std::size_t, std::size_t) { ++calls; };
  for_each_index({.count = 100, .step = 3, .tick = [](std::size_t taken) { return taken < 6; }}, count);
  EXPECT_EQ(calls, 6);
}

TEST(ForEachIndex, ThrowsWhatATickThrows) {
  const auto tick = [](std::size_t) -> bool { throw std::runtime_error("no"); };
  EXPECT_THROW(for_each_index({.count = 10, .tick = tick}, [](std::size_t, std::size_t) {}),
               std::runtime_error);
}

TEST(ForEachIndex, RefusesStepsOfNothing) {
  EXPECT_THROW(for_each_index({.count = 10, .step = 0}, [](std::size_t, std::size_t) {}), InternalError);
}

}  // namespace
}  // namespace stagecraft
