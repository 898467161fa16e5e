#include <algorithm>

#include "base/hash.hpp"
#include "sim/engine/engine.hpp"

namespace stagecraft {

bool Timeline::is_stuck(TaskId task) const {
  return stall && std::ranges::binary_search(stall->stuck, task);
}

bool Timeline::never_begins(TaskId task) const {
  return stall && std::ranges::binary_search(stall->waiting, task);
}

std::uint64_t hash(const Timeline& timeline) {
  StableHash hash;
  for (const Duration start : timeline.start) hash.add(start.count());
  for (const Duration end : timeline.end) hash.add(end.count());
  return hash.value();
}

}  // namespace stagecraft
