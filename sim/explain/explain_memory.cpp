#include "sim/explain/explain_memory.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "sim/explain/inputs.hpp"
#include "sim/report/report.hpp"
#include "sim/schedule/notation.hpp"

namespace stagecraft {
namespace {

std::string path_of(std::size_t stage, std::string_view key) {
  return fmt::format("memory.stages.{}.{}", stage, key);
}

Origin item_origin(const StageMemory& stage, MemoryClass kind) {
  std::string text = "counted from the parameters and the layers of the rank";
  if (kind == MemoryClass::kActivations) {
    const std::string action =
        stage.moment.action ? to_string(*stage.moment.action) : std::string("the optimizer step");
    text = fmt::format("held when the rank holds most: {} in flight at {}",
                       counted(stage.moment.in_flight, "micro-batch"), action);
  }
  return {.kind = OriginKind::kLedger, .text = std::move(text)};
}

std::string key_of(MemoryClass kind) {
  return fmt::format("{}_bytes", name_of(kind));
}

Explanation class_sum(const StageMemory& stage, MemoryClass kind, std::size_t index) {
  const std::string path = path_of(index, key_of(kind));
  std::vector<Explanation> items;
  for (const MemoryItem& item : stage.items)
    if (item.kind == kind) items.push_back(leaf(item.name, item.size, item_origin(stage, kind)));
  if (items.empty())
    return leaf(path, stage.of(kind), {.kind = OriginKind::kLedger, .text = "nothing of it"});
  return formula(path, Operation::kSum, std::move(items));
}

Explanation peak(const StageMemory& stage, std::size_t index) {
  std::vector<Explanation> sums;
  for (const MemoryClass kind : kMemoryClasses) sums.push_back(class_sum(stage, kind, index));
  return formula(path_of(index, "peak_bytes"), Operation::kSum, std::move(sums));
}

Explanation allocated(const StageMemory& stage, std::size_t index) {
  std::vector<Explanation> sums;
  for (const MemoryClass kind : kMemoryClasses)
    if (kind != MemoryClass::kOverhead) sums.push_back(class_sum(stage, kind, index));
  return formula(path_of(index, "allocated_bytes"), Operation::kSum, std::move(sums));
}

std::optional<Explanation> of_stage(const Scenario& scenario, const StageMemory& stage, std::size_t index,
                                    std::string_view key) {
  if (key == "peak_bytes") return peak(stage, index);
  if (key == "allocated_bytes") return allocated(stage, index);
  if (key == "reserved_bytes") {
    Origin origin{.kind = OriginKind::kLedger, .text = "what the allocator reserves and cannot use"};
    if (scenario.profile)
      origin = profile_origin(*scenario.profile, scenario.profile->memory.fragmentation.provenance,
                              scenario.profile->memory.fragmentation.source);
    return formula(path_of(index, key), Operation::kSum,
                   {allocated(stage, index), leaf("fragmentation", stage.fragmentation, std::move(origin))});
  }
  for (const MemoryClass kind : kMemoryClasses)
    if (key == key_of(kind)) return class_sum(stage, kind, index);
  return std::nullopt;
}

}  // namespace

std::optional<Explanation> explain_memory(const Scenario& scenario, const Simulation& simulation,
                                          const std::string& path) {
  const MemoryLedger& memory = simulation.report.memory;
  if (path == "memory.peak_bytes") {
    std::vector<Explanation> peaks;
    for (std::size_t i = 0; i < memory.stages.size(); ++i) peaks.push_back(peak(memory.stages[i], i));
    return formula(path, Operation::kMaximum, std::move(peaks));
  }
  if (path == "memory.capacity_bytes" && scenario.profile)
    return leaf(path, memory.capacity,
                profile_origin(*scenario.profile, scenario.profile->device.provenance,
                               scenario.profile->device.source));
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    const std::string before = path_of(i, "");
    if (path.starts_with(before))
      return of_stage(scenario, memory.stages[i], i, std::string_view(path).substr(before.size()));
  }
  return std::nullopt;
}

}  // namespace stagecraft
