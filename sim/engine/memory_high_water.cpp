#include "sim/engine/memory_high_water.hpp"

#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

namespace stagecraft {
namespace {

struct Ledger {
  Bytes held{};
  Bytes peak{};

  void add(Bytes delta) { peak = std::max(peak, held += delta); }
};

Bytes high_water_of_stream(std::span<const MemoryDelta> deltas) {
  Ledger ledger;
  for (const MemoryDelta& delta : deltas) {
    ledger.add(delta.at_start);
    ledger.add(delta.at_end);
  }
  return ledger.peak;
}

enum class Phase { kEnd, kStart };  // memory freed at an instant can be allocated at that instant

struct Change {
  Duration time;
  Phase phase;
  std::size_t index;  // index of the delta; deltas ascend by task

  friend auto operator<=>(const Change&, const Change&) = default;
};

Bytes high_water_of_concurrent(std::span<const MemoryDelta> deltas, const Timeline& timeline) {
  std::vector<Change> changes;
  changes.reserve(2 * deltas.size());
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    const TaskId task = deltas[i].task;
    changes.push_back({timeline.start[task], Phase::kStart, i});
    if (timeline.end[task] > timeline.start[task]) changes.push_back({timeline.end[task], Phase::kEnd, i});
  }
  std::sort(changes.begin(), changes.end());

  Ledger ledger;
  for (const Change& change : changes) {
    const MemoryDelta& delta = deltas[change.index];
    if (change.phase == Phase::kStart) ledger.add(delta.at_start);
    if (change.phase == Phase::kEnd || timeline.end[delta.task] == timeline.start[delta.task])
      ledger.add(delta.at_end);
  }
  return ledger.peak;
}

}  // namespace

IdVector<ResourceId, Bytes> memory_high_water(const Program& program, const Timeline& timeline) {
  IdVector<ResourceId, Bytes> peaks(program.resources.size());
  auto first = program.memory.begin();
  while (first != program.memory.end()) {
    const ResourceId resource = program.resource_of(first->task);
    const TaskId end(program.resource_begin[resource.index() + 1]);
    const auto last =
        std::find_if(first, program.memory.end(), [&](const MemoryDelta& d) { return d.task >= end; });
    const std::span<const MemoryDelta> deltas(first, last);
    peaks[resource] = program.resources[resource].kind == ResourceKind::kStream
                          ? high_water_of_stream(deltas)
                          : high_water_of_concurrent(deltas, timeline);
    first = last;
  }
  return peaks;
}

}  // namespace stagecraft
