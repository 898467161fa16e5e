#include "sim/view/memory_steps.hpp"

#include <algorithm>
#include <compare>

namespace stagecraft {
namespace {

struct Change {
  Duration time{};
  bool takes = false;
  std::size_t delta = 0;
  Bytes bytes;
  friend auto operator<=>(const Change&, const Change&) = default;
};

}  // namespace

std::vector<std::vector<MemoryStep>> memory_steps(const Program& program, const Timeline& timeline) {
  const auto ranks = static_cast<std::size_t>(program.rank_count());
  std::vector<std::vector<Change>> changes(ranks);
  for (std::size_t i = 0; i < program.memory.size(); ++i) {
    const MemoryDelta& delta = program.memory[i];
    if (timeline.never_begins(delta.task)) continue;
    const Resource& resource = program.resources[program.resource_of(delta.task)];
    std::vector<Change>& of_rank = changes[static_cast<std::size_t>(resource.rank)];
    if (delta.at_start != Bytes(0)) of_rank.push_back({timeline.start[delta.task], true, i, delta.at_start});
    if (delta.at_end != Bytes(0)) of_rank.push_back({timeline.end[delta.task], false, i, delta.at_end});
  }
  std::vector<std::vector<MemoryStep>> steps(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::ranges::sort(changes[rank]);
    Bytes held;
    for (const Change& change : changes[rank])
      steps[rank].push_back({.time = change.time, .held = held += change.bytes});
  }
  return steps;
}

}  // namespace stagecraft
