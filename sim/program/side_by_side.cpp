#include "sim/program/side_by_side.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {
namespace {

// Offsets added to the ids of the second program.
struct Shift {
  std::uint32_t resources = 0, tasks = 0, labels = 0, routes = 0;
  std::int32_t ranks = 0;

  explicit Shift(const Program& program)
      : resources(static_cast<std::uint32_t>(program.resources.size())),
        tasks(static_cast<std::uint32_t>(program.task_count())),
        labels(static_cast<std::uint32_t>(program.labels.size())),
        routes(static_cast<std::uint32_t>(program.route_begin.empty() ? 0 : program.route_begin.size() - 1)),
        ranks(program.rank_count()) {}

  [[nodiscard]] TaskId operator()(TaskId id) const { return TaskId(id.value() + tasks); }
  [[nodiscard]] ResourceId operator()(ResourceId id) const { return ResourceId(id.value() + resources); }
  [[nodiscard]] LabelId operator()(LabelId id) const { return LabelId(id.value() + labels); }
  [[nodiscard]] RouteId operator()(RouteId id) const { return RouteId(id.value() + routes); }
};

// Offsets of `other` after those of a list that has `count` entries.
void append_offsets(std::vector<std::uint32_t>& offsets, const std::vector<std::uint32_t>& other) {
  if (offsets.empty()) offsets.push_back(0);
  const std::uint32_t count = offsets.back();
  for (std::size_t i = 1; i < other.size(); ++i) offsets.push_back(count + other[i]);
}

void append_tasks(Program& program, const Program& other, const Shift& shift) {
  append_offsets(program.resource_begin, other.resource_begin);
  append_offsets(program.successor_begin, other.successor_begin);
  for (const TaskId after : other.successors) program.successors.push_back(shift(after));
  for (std::uint32_t i = 0; i < other.task_count(); ++i) {
    program.duration.push_back(other.duration[TaskId(i)]);
    program.label.push_back(shift(other.label[TaskId(i)]));
    program.micro_batch.push_back(other.micro_batch[TaskId(i)]);
  }
}

}  // namespace

Loop put_beside(Program& program, const Program& other, const std::string& name) {
  SC_CHECK(program.links.size() == other.links.size() && other.link_changes.empty(),
           "programs side by side share their links");
  const Shift shift(program);
  for (Resource resource : other.resources) {
    resource.rank += shift.ranks;
    program.resources.push_back(std::move(resource));
  }
  append_tasks(program, other, shift);
  for (Label label : other.labels) {
    label.name = name + ": " + label.name;
    program.labels.push_back(std::move(label));
  }
  for (MemoryDelta memory : other.memory) {
    memory.task = shift(memory.task);
    program.memory.push_back(memory);
  }
  append_offsets(program.route_begin, other.route_begin);
  program.route_uses.insert(program.route_uses.end(), other.route_uses.begin(), other.route_uses.end());
  for (Flow flow : other.flows) {
    flow.task = shift(flow.task);
    flow.route = shift(flow.route);
    program.flows.push_back(flow);
  }
  for (DeviceLoad load : other.loads) {
    load.task = shift(load.task);
    program.loads.push_back(load);
  }
  for (SpeedChange change : other.speed_changes) {
    change.resource = shift(change.resource);
    program.speed_changes.push_back(change);
  }
  std::ranges::stable_sort(program.speed_changes, {}, &SpeedChange::time);
  return {.first = ResourceId(shift.resources),
          .end = ResourceId(static_cast<std::uint32_t>(program.resources.size()))};
}

}  // namespace stagecraft
