// A priority queue of task ends, for times that only increase.
//
// A simulation never schedules an event in the past, so a radix heap suffices. Bucket b holds the events
// whose time first differs from the present in bit b-1 (bucket 0: the present itself). Events only move to
// lower buckets, so a push is a store. All events of one instant come out in one batch, which pays because
// pipelines have many ties.
//   source  Ahuja, Mehlhorn, Orlin, Tarjan, J. ACM 37(2), 1990, section 2 (one-level radix heap).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/check.hpp"
#include "base/units.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

// Item: who has the event; small and cheap to copy.
template <class Item>
class RadixHeap {
 public:
  // `time` is not before the last pop_at().
  void push(Duration time, Item item) {
    const std::size_t bucket = bucket_of(time);
    if ((occupied_ >> bucket & 1) == 0 || time < earliest_[bucket]) earliest_[bucket] = time;
    occupied_ |= std::uint64_t{1} << bucket;
    buckets_[bucket].push_back({time, item});
  }

  // The earliest time in the queue; nullopt when it is empty. Does not move the present.
  [[nodiscard]] std::optional<Duration> next() const {
    if (occupied_ == 0) return std::nullopt;
    return earliest_[lowest()];
  }

  // Moves the present to `now` and every event of that instant to the back of `out`, in no particular order.
  // throws InternalError when an event before `now` is still in the queue.
  void pop_at(Duration now, std::vector<Item>& out) {
    if (occupied_ == 0 || earliest_[lowest()] > now) return;
    const std::size_t bucket = lowest();
    SC_CHECK(earliest_[bucket] == now, "an event was passed over");
    present_ = now;
    occupied_ &= occupied_ - 1;
    for (const Event& event : buckets_[bucket]) {
      if (event.time == now)
        out.push_back(event.item);
      else
        push(event.time, event.item);  // to a lower bucket: it now shares more bits with the present
    }
    buckets_[bucket].clear();
  }

 private:
  struct Event {
    Duration time;
    Item item;
  };

  // Times are not negative, so they differ in one of 63 bits.
  [[nodiscard]] std::size_t bucket_of(Duration time) const {
    return static_cast<std::size_t>(
        std::bit_width(static_cast<std::uint64_t>(time.count() ^ present_.count())));
  }
  [[nodiscard]] std::size_t lowest() const { return static_cast<std::size_t>(std::countr_zero(occupied_)); }

  Duration present_{};
  std::uint64_t occupied_ = 0;           // bit b: bucket b is not empty
  std::array<Duration, 64> earliest_{};  // earliest time of each nonempty bucket
  std::array<std::vector<Event>, 64> buckets_;
};

using EventQueue = RadixHeap<TaskId>;

}  // namespace stagecraft
