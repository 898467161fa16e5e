#include "sim/study/ordered_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/study/payload_cache.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

std::vector<std::size_t> numbers(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

// Jobs of very different length, so that later ones end first.
std::string slow(std::size_t job) {
  if (job % 7 == 0) std::this_thread::sleep_for(2ms);
  return std::to_string(job * job);
}

OrderedPool pool_into(std::vector<std::string>& results, int threads) {
  OrderedPool pool;
  pool.threads = threads;
  pool.make_work = [] { return slow; };
  pool.accept = [&](std::size_t, const std::string& result) {
    results.push_back(result);
    return true;
  };
  return pool;
}

TEST(OrderedPool, HandsResultsOnInOrderOnAnyNumberOfThreads) {
  std::vector<std::string> expected;
  for (std::size_t job = 0; job < 200; ++job) expected.push_back(std::to_string(job * job));
  for (const int threads : {1, 2, 8}) {
    std::vector<std::string> results;
    OrderedPool pool = pool_into(results, threads);
    pool.window = 5;
    pool.run(numbers(200));
    EXPECT_EQ(results, expected) << threads;
  }
}

TEST(OrderedPool, JobsKeepTheirNumbers) {
  std::vector<std::size_t> accepted;
  std::vector<std::string> results;
  OrderedPool pool = pool_into(results, 4);
  pool.accept = [&](std::size_t job, const std::string&) {
    accepted.push_back(job);
    return true;
  };
  pool.run(std::vector<std::size_t>{3, 5, 8});
  EXPECT_THAT(accepted, ElementsAre(3, 5, 8));
}

TEST(OrderedPool, StopsWhenToldTo) {
  std::vector<std::string> results;
  OrderedPool pool = pool_into(results, 4);
  pool.accept = [&](std::size_t, const std::string& result) {
    results.push_back(result);
    return results.size() < 3;
  };
  pool.run(numbers(1'000));
  EXPECT_THAT(results, ElementsAre("0", "1", "4"));
}

TEST(OrderedPool, EndsItsWorkersWhenTheCallerThrows) {
  std::vector<std::string> results;
  OrderedPool pool = pool_into(results, 4);
  pool.window = 1;
  pool.accept = [](std::size_t, const std::string&) -> bool { throw std::runtime_error("no"); };
  EXPECT_THROW(pool.run(numbers(100)), std::runtime_error);
}

TEST(OrderedPool, NoWorkerIsMoreThanTheWindowAhead) {
  std::atomic<std::size_t> begun = 0;
  std::size_t accepted = 0;
  OrderedPool pool;
  pool.threads = 8;
  pool.window = 10;
  pool.make_work = [&] {
    return [&](std::size_t) {
      ++begun;
      return std::string();
    };
  };
  pool.accept = [&](std::size_t, const std::string&) {
    EXPECT_LE(begun.load(), accepted + 1 + 10);
    ++accepted;
    return true;
  };
  pool.run(numbers(300));
  EXPECT_EQ(accepted, 300u);
}

TEST(PayloadCache, MakesEachPayloadOnce) {
  PayloadCache cache;
  std::atomic<int> made = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const std::string key = std::to_string(i % 5);
        EXPECT_EQ(cache.get(key,
                            [&] {
                              ++made;
                              std::this_thread::sleep_for(1ms);
                              return "payload " + key;
                            }),
                  "payload " + key);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(made, 5);
  EXPECT_EQ(cache.reused(), 8u * 50 - 5);
}

TEST(PayloadCache, TriesAnewAfterAFailure) {
  PayloadCache cache;
  EXPECT_THROW((void)cache.get("a", []() -> std::string { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(cache.get("a", [] { return std::string("yes"); }), "yes");
}

// Room for one payload, not for two: what is known already takes none.
TEST(PayloadCache, TakesRoomOnceForWhatComesAgain) {
  PayloadCache cache(200);
  for (int i = 0; i < 10; ++i) cache.put("a", "first");
  cache.put("b", "second");
  EXPECT_EQ(cache.get("b", [] { return std::string("made"); }), "second");
}

TEST(PayloadCache, WithoutRoomEveryPayloadIsMade) {
  PayloadCache cache(0);
  int made = 0;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(cache.get("a", [&] { return std::to_string(++made); }), std::to_string(i + 1));
}

}  // namespace
}  // namespace stagecraft
