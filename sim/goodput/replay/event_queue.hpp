// The events of a replay, by (time, kind), and the order among equals.
//
// The published simulators kept their events in a binary heap and left ties to where the heap's array
// had put them; that decides which node gets which place in Bamboo's pipelines, and in Varuna's case
// which far later removal fails a checkpoint. Nobody should want that order, but the published values
// follow from it alone, so it can be had:
//
//   kTraceOrder   the canonical id: what was written first in the trace comes first. For everything but
//                 old values.
//   kHeap         an array in which entry i is no later than entries 2i+1 and 2i+2. A new event goes to
//                 the end and rises while it is earlier than what is above it; when the first is taken,
//                 the gap sinks to a leaf along the earlier child (the right one of two equals), and
//                 the last event goes there and rises.
//   kHeapRebuilt  the same, and before the run every entry, from the last that has children to the
//                 first, is taken out and put back in that way.
//
//   source  docs/resilience.md, sections 1 and 7.2 (defects 3 and 5); the algorithm: Python's documentation
//           of `heapq`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

enum class Ties : std::uint8_t { kTraceOrder, kHeap, kHeapRebuilt };

// The kinds of events, in their order at equal times (docs/resilience.md, section 1).
enum class ReplayEventKind : std::uint8_t {
  kAdd = 1,
  kRemove = 2,
  kReady = 4,
  kGlobalTimeout = 5,
  kLocalTimeout = 6,
  kStepEnd = 7,
  kCheckpointComplete = 8,
};

struct ReplayEvent {
  Duration time{};
  ReplayEventKind kind = ReplayEventKind::kAdd;
  std::int64_t id = 0;       // canonical: the row of an add or a removal, for a ready that of its add
  std::int32_t node = -1;    // node of kAdd, kRemove, kReady
  std::int64_t version = 0;  // version of a timer or step when it was set
  std::int64_t steps = 0;    // recorded steps that the checkpoint of kCheckpointComplete covers
};

class EventQueue {
 public:
  explicit EventQueue(Ties ties) : ties_(ties) {}

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] const std::vector<ReplayEvent>& storage() const { return heap_; }
  void push(const ReplayEvent& event);
  // The earliest. requires !empty()
  [[nodiscard]] ReplayEvent pop();
  // Takes every entry out and puts it back: among equals they may change places.
  void rebuild();

 private:
  [[nodiscard]] bool earlier(const ReplayEvent& a, const ReplayEvent& b) const;
  void rise(std::size_t from, std::size_t at);  // no higher than `from`
  void sink(std::size_t at);

  Ties ties_;
  std::vector<ReplayEvent> heap_;
};

}  // namespace stagecraft
