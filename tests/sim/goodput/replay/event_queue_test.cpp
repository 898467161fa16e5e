#include "sim/goodput/replay/event_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/check.hpp"

namespace stagecraft {
namespace {

using testing::ElementsAre;

ReplayEvent event(std::int64_t at, std::int64_t id, ReplayEventKind kind = ReplayEventKind::kAdd) {
  return {.time = Duration(at), .kind = kind, .id = id};
}

std::vector<std::int64_t> drained(EventQueue queue) {
  std::vector<std::int64_t> ids;
  while (!queue.empty()) ids.push_back(queue.pop().id);
  return ids;
}

std::vector<std::int64_t> stored(const EventQueue& queue) {
  std::vector<std::int64_t> ids;
  for (const ReplayEvent& event : queue.storage()) ids.push_back(event.id);
  return ids;
}

EventQueue queue_of(Ties ties, const std::vector<ReplayEvent>& events) {
  EventQueue queue(ties);
  for (const ReplayEvent& one : events) queue.push(one);
  return queue;
}

TEST(EventQueue, OrdersByTimeThenKindThenWhereItStandsInTheTrace) {
  const std::vector<ReplayEvent> events = {event(5, 0), event(3, 1, ReplayEventKind::kStepEnd),
                                           event(3, 9, ReplayEventKind::kRemove), event(3, 4), event(3, 2)};
  EXPECT_THAT(drained(queue_of(Ties::kTraceOrder, events)), ElementsAre(2, 4, 9, 1, 0));
}

// Four equal events lie as they came: 0 1 2 3. The first goes; its gap sinks along 2, the right one of two
// equals, and the last event, 3, goes there: 2 1 3.
TEST(EventQueue, AHeapTakesTheRightOneOfTwoEqualChildren) {
  EventQueue queue = queue_of(Ties::kHeap, {event(1, 0), event(1, 1), event(1, 2), event(1, 3)});
  EXPECT_THAT(stored(queue), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(queue.pop().id, 0);
  EXPECT_THAT(stored(queue), ElementsAre(2, 1, 3));
  EXPECT_THAT(drained(queue), ElementsAre(2, 1, 3));  // then 3 sinks along 1, its only child
}

// 0 1 2: the only entry with children is 0, which sinks along 2 and does not rise over its equal.
TEST(EventQueue, RebuildingMovesEquals) {
  EventQueue queue = queue_of(Ties::kHeapRebuilt, {event(1, 0), event(1, 1), event(1, 2)});
  queue.rebuild();
  EXPECT_THAT(stored(queue), ElementsAre(2, 1, 0));
}

TEST(EventQueue, WithoutEqualsEveryOrderOfTiesIsTheSame) {
  std::vector<ReplayEvent> events;
  for (std::int64_t i = 0; i < 200; ++i) events.push_back(event(i * 73 % 200, i * 73 % 200));
  std::vector<std::int64_t> sorted;
  for (std::int64_t i = 0; i < 200; ++i) sorted.push_back(i);
  for (const Ties ties : {Ties::kTraceOrder, Ties::kHeap, Ties::kHeapRebuilt}) {
    EventQueue queue = queue_of(ties, events);
    queue.rebuild();
    EXPECT_EQ(drained(queue), sorted);
  }
}

TEST(EventQueue, HasNothingToGiveWhenEmpty) {
  EventQueue queue(Ties::kTraceOrder);
  EXPECT_THROW((void)queue.pop(), InternalError);
}

}  // namespace
}  // namespace stagecraft
