#include "sim/goodput/replay/event_queue.hpp"

#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {

bool EventQueue::earlier(const ReplayEvent& a, const ReplayEvent& b) const {
  if (ties_ == Ties::kTraceOrder) return std::tie(a.time, a.kind, a.id) < std::tie(b.time, b.kind, b.id);
  return std::tie(a.time, a.kind) < std::tie(b.time, b.kind);
}

void EventQueue::rise(std::size_t from, std::size_t at) {
  while (at > from) {
    const std::size_t above = (at - 1) / 2;
    if (!earlier(heap_[at], heap_[above])) return;
    std::swap(heap_[at], heap_[above]);
    at = above;
  }
}

void EventQueue::sink(std::size_t at) {
  const std::size_t from = at;
  for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
    if (child + 1 < heap_.size() && !earlier(heap_[child], heap_[child + 1])) ++child;
    std::swap(heap_[at], heap_[child]);
    at = child;
  }
  rise(from, at);
}

void EventQueue::push(const ReplayEvent& event) {
  heap_.push_back(event);
  rise(0, heap_.size() - 1);
}

ReplayEvent EventQueue::pop() {
  SC_CHECK(!heap_.empty(), "nothing left to happen");
  ReplayEvent first = heap_.front();
  heap_.front() = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sink(0);
  return first;
}

void EventQueue::rebuild() {
  for (std::size_t i = heap_.size() / 2; i-- > 0;) sink(i);
}

}  // namespace stagecraft
