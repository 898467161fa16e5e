#include "sim/engine/event_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<TaskId> pop(EventQueue& queue, Duration now) {
  std::vector<TaskId> out;
  queue.pop_at(now, out);
  return out;
}

TEST(EventQueue, IsEmptyAtFirst) {
  EXPECT_EQ(EventQueue().next(), std::nullopt);
}

TEST(EventQueue, GivesTheEarliestTimeAndAllEventsOfIt) {
  EventQueue queue;
  queue.push(7ns, TaskId(1));
  queue.push(5ns, TaskId(2));
  queue.push(5ns, TaskId(3));

  EXPECT_EQ(queue.next(), 5ns);
  EXPECT_THAT(pop(queue, 5ns), UnorderedElementsAre(TaskId(2), TaskId(3)));
  EXPECT_EQ(queue.next(), 7ns);
  EXPECT_THAT(pop(queue, 7ns), ElementsAre(TaskId(1)));
  EXPECT_EQ(queue.next(), std::nullopt);
}

TEST(EventQueue, TakesEventsOfThePresent) {
  EventQueue queue;
  queue.push(5ns, TaskId(1));
  EXPECT_THAT(pop(queue, 5ns), ElementsAre(TaskId(1)));
  queue.push(5ns, TaskId(2));
  EXPECT_THAT(pop(queue, 5ns), ElementsAre(TaskId(2)));
}

TEST(EventQueue, GivesNothingBeforeItsNextEvent) {
  EventQueue queue;
  queue.push(5ns, TaskId(1));
  EXPECT_THAT(pop(queue, 4ns), IsEmpty());
  queue.push(4ns, TaskId(2));  // asking at 4 did not make 5 the present
  EXPECT_EQ(queue.next(), 4ns);
}

TEST(EventQueue, RefusesToPassAnEventOver) {
  EventQueue queue;
  queue.push(5ns, TaskId(1));
  EXPECT_THROW(pop(queue, 6ns), InternalError);
}

TEST(EventQueue, ReachesTheEndOfTime) {
  EventQueue queue;
  queue.push(Duration::max(), TaskId(1));
  EXPECT_THAT(pop(queue, Duration::max()), ElementsAre(TaskId(1)));
}

// Property: pushes and pops in any mixture come out as from a sorted map.
TEST(EventQueue, AgreesWithASortedMap) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed=" << seed);
    std::mt19937_64 random(seed);
    EventQueue queue;
    std::map<Duration, std::vector<TaskId>> expected;
    Duration now{};
    for (std::uint32_t i = 0; i < 2000; ++i) {
      if (random() % 3 != 0 || expected.empty()) {
        const std::uint64_t spread = std::uint64_t{1} << random() % 24;  // from massive ties to none
        const Duration time = now + Duration(static_cast<std::int64_t>(random() % spread));
        queue.push(time, TaskId(i));
        expected[time].push_back(TaskId(i));
      } else {
        now = expected.begin()->first;
        ASSERT_EQ(queue.next(), now);
        ASSERT_THAT(pop(queue, now), testing::UnorderedElementsAreArray(expected.begin()->second));
        expected.erase(expected.begin());
      }
    }
  }
}

}  // namespace
}  // namespace stagecraft
