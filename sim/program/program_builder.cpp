#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "sim/program/program.hpp"

namespace stagecraft {
namespace {

// Stable counting sort of the items 0 .. items-1 by key in [0, keys).
//
//   key_of(item)        the key of an item
//   place(item, slot)   is told the slot of each item in the sorted order
//   returns             offsets, size keys+1: the items of key k have the slots [offsets[k], offsets[k+1])
//
// Counts become ends, and filling from the back turns ends into begins: no second array of cursors.
template <class KeyOf, class Place>
std::vector<std::uint32_t> counting_sort(std::size_t keys, std::size_t items, KeyOf key_of, Place place) {
  SC_CHECK(items < UINT32_MAX, "offsets are 32 bits wide");
  std::vector<std::uint32_t> offsets(keys + 1, 0);
  for (std::size_t item = 0; item < items; ++item) ++offsets[key_of(item)];
  std::uint32_t end = 0;
  for (std::uint32_t& offset : offsets) offset = end += offset;
  for (std::size_t item = items; item-- > 0;) place(item, --offsets[key_of(item)]);
  return offsets;
}

// One column in canonical order. Takes the builder's column by value, so that its memory is freed before the
// next one.
template <class T>
IdVector<TaskId, T> in_canonical_order(std::vector<T> column, const std::vector<TaskId>& canonical) {
  IdVector<TaskId, T> sorted(column.size());
  for (std::size_t handle = 0; handle < column.size(); ++handle) sorted[canonical[handle]] = column[handle];
  return sorted;
}

}  // namespace

ResourceId ProgramBuilder::add_resource(Resource resource) {
  return resources_.push_back(std::move(resource));
}

LabelId ProgramBuilder::add_label(Label label) {
  return labels_.push_back(std::move(label));
}

ProgramBuilder::Handle ProgramBuilder::add_task(ResourceId resource, Duration duration, LabelId label,
                                                std::int32_t micro_batch) {
  SC_CHECK(resource.index() < resources_.size(), "a task needs a resource of this builder");
  SC_CHECK(label.index() < labels_.size(), "a task needs a label of this builder");
  SC_CHECK(duration >= Duration::zero(), "a task cannot take negative time");
  SC_CHECK(task_duration_.size() < UINT32_MAX, "ids are 32 bits wide");
  const Handle handle(static_cast<std::uint32_t>(task_duration_.size()));
  task_resource_.push_back(resource);
  task_duration_.push_back(duration);
  task_label_.push_back(label);
  task_micro_batch_.push_back(micro_batch);
  return handle;
}

void ProgramBuilder::add_dependency(Handle before, Handle after) {
  SC_CHECK(before.index() < task_duration_.size() && after.index() < task_duration_.size(),
           "a dependency joins tasks of this builder");
  edges_.push_back({.before = before, .after = after});
}

void ProgramBuilder::add_memory(Handle task, Bytes at_start, Bytes at_end) {
  SC_CHECK(task.index() < task_duration_.size(), "memory belongs to a task of this builder");
  memory_.push_back({.task = task, .at_start = at_start, .at_end = at_end});
}

LinkId ProgramBuilder::add_link(SharedLink link) {
  SC_CHECK(std::isfinite(link.capacity.count()) && link.capacity > Bandwidth(0),
           "a link carries a positive number of bytes per second");
  return links_.push_back(std::move(link));
}

RouteId ProgramBuilder::add_route(std::vector<LinkUse> uses) {
  std::ranges::sort(uses, {}, &LinkUse::link);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    SC_CHECK(uses[i].link.index() < links_.size(), "a route crosses links of this builder");
    SC_CHECK(i == 0 || uses[i - 1].link != uses[i].link, "a route names a link once");
    SC_CHECK(uses[i].flows > 0 && uses[i].flows <= kMostFlows, "a route crosses its links with some flow");
  }
  SC_CHECK(route_uses_.size() + uses.size() < UINT32_MAX, "offsets are 32 bits wide");
  const RouteId route(static_cast<std::uint32_t>(route_begin_.size() - 1));
  route_uses_.insert(route_uses_.end(), uses.begin(), uses.end());
  route_begin_.push_back(static_cast<std::uint32_t>(route_uses_.size()));
  return route;
}

void ProgramBuilder::add_flow(Handle task, Duration transfer, Bandwidth rate, RouteId route) {
  SC_CHECK(task.index() < task_duration_.size(), "a flow belongs to a task of this builder");
  SC_CHECK(route.index() + 1 < route_begin_.size(), "a flow follows a route of this builder");
  SC_CHECK(transfer >= Duration::zero() && transfer <= task_duration_[task.index()],
           "a task transfers within its duration");
  SC_CHECK(std::isfinite(rate.count()) && rate > Bandwidth(0), "a flow has a positive rate");
  flows_.push_back({.transfer = transfer, .rate = rate, .task = TaskId(task.value()), .route = route});
}

void ProgramBuilder::add_load(Handle task, double share) {
  SC_CHECK(task.index() < task_duration_.size(), "a load belongs to a task of this builder");
  SC_CHECK(share >= 0 && share <= 1, "a load takes a share of a device");
  loads_.push_back({.task = task, .share = share});
}

void ProgramBuilder::add_link_change(LinkChange change) {
  SC_CHECK(change.link.index() < links_.size(), "a link of this builder changes");
  SC_CHECK(change.capacity > Bandwidth(0) && change.capacity <= links_[change.link].capacity,
           "a link never has more than at first, and always something");
  SC_CHECK(change.time >= (link_changes_.empty() ? Duration::zero() : link_changes_.back().time),
           "changes come in the order of their times");
  link_changes_.push_back(change);
}

void ProgramBuilder::add_speed_change(SpeedChange change) {
  SC_CHECK(change.resource.index() < resources_.size(), "a resource of this builder changes");
  SC_CHECK(change.speed >= 0 && change.speed <= 1, "nothing runs faster than at first");
  SC_CHECK(change.time >= (speed_changes_.empty() ? Duration::zero() : speed_changes_.back().time),
           "changes come in the order of their times");
  speed_changes_.push_back(change);
}

void ProgramBuilder::reserve(std::size_t tasks, std::size_t dependencies) {
  task_resource_.reserve(tasks);
  task_duration_.reserve(tasks);
  task_label_.reserve(tasks);
  task_micro_batch_.reserve(tasks);
  edges_.reserve(dependencies);
}

void ProgramBuilder::place_flows(Program& program, const std::vector<TaskId>& canonical) {
  program.flows = std::move(flows_);
  for (Flow& flow : program.flows) flow.task = canonical[flow.task.index()];
  const auto by_task = [](const Flow& a, const Flow& b) { return a.task < b.task; };
  if (!std::ranges::is_sorted(program.flows, by_task)) std::ranges::sort(program.flows, by_task);
  for (std::size_t i = 1; i < program.flows.size(); ++i)
    SC_CHECK(program.flows[i - 1].task != program.flows[i].task, "a task has at most one flow");
  program.links = std::move(links_);
  program.route_begin = std::move(route_begin_);
  program.route_uses = std::move(route_uses_);
}

void ProgramBuilder::place_loads(Program& program, const std::vector<TaskId>& canonical) {
  for (const HandleLoad& load : loads_)
    program.loads.push_back({.task = canonical[load.task.index()], .share = load.share});
  std::ranges::sort(program.loads, {}, &DeviceLoad::task);
  for (std::size_t i = 0; i < program.loads.size(); ++i) {
    SC_CHECK(i == 0 || program.loads[i - 1].task != program.loads[i].task, "a task has at most one load");
    SC_CHECK(!program.resources[program.resource_of(program.loads[i].task)].yields,
             "a task that yields to loads is none itself");
  }
}

Program ProgramBuilder::build() && {
  Program program;
  const std::size_t tasks = task_duration_.size();
  std::vector<TaskId> canonical(tasks);
  program.resource_begin = counting_sort(
      resources_.size(), tasks, [&](std::size_t handle) { return task_resource_[handle].index(); },
      [&](std::size_t handle, std::uint32_t slot) { canonical[handle] = TaskId(slot); });
  std::exchange(task_resource_, {});  // memory limits the largest programs: free used columns

  program.successors.resize(edges_.size());
  program.successor_begin = counting_sort(
      tasks, edges_.size(), [&](std::size_t edge) { return canonical[edges_[edge].before.index()].index(); },
      [&](std::size_t edge, std::uint32_t slot) {
        program.successors[slot] = canonical[edges_[edge].after.index()];
      });
  std::exchange(edges_, {});
  for (std::size_t task = 0; task < tasks; ++task)  // canonical, whatever the order in which edges were added
    std::sort(program.successors.begin() + program.successor_begin[task],
              program.successors.begin() + program.successor_begin[task + 1]);

  program.memory.resize(memory_.size());
  if (!memory_.empty())
    std::ignore = counting_sort(
        tasks, memory_.size(),
        [&](std::size_t item) { return canonical[memory_[item].task.index()].index(); },
        [&](std::size_t item, std::uint32_t slot) {
          const HandleMemory& from = memory_[item];
          program.memory[slot] = {canonical[from.task.index()], from.at_start, from.at_end};
        });

  program.duration = in_canonical_order(std::move(task_duration_), canonical);
  program.label = in_canonical_order(std::move(task_label_), canonical);
  program.micro_batch = in_canonical_order(std::move(task_micro_batch_), canonical);
  program.resources = std::move(resources_);
  program.labels = std::move(labels_);
  place_flows(program, canonical);
  place_loads(program, canonical);
  program.link_changes = std::move(link_changes_);
  program.speed_changes = std::move(speed_changes_);
  return program;
}

}  // namespace stagecraft
