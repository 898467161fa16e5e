#include "sim/view/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace stagecraft {
namespace {

using Tasks = std::vector<TaskId>;

Tasks begun_on(std::size_t resource, const Program& program, const Timeline& timeline) {
  Tasks tasks;
  const std::uint32_t begin = program.resource_begin[resource], end = program.resource_begin[resource + 1];
  tasks.reserve(end - begin);
  for (std::uint32_t t = begin; t < end; ++t) {
    const TaskId task(t);
    if (!timeline.never_begins(task)) tasks.push_back(task);
  }
  return tasks;
}

// Rows of tasks that may overlap.
std::vector<Tasks> spread(Tasks tasks, const Timeline& timeline) {
  std::ranges::sort(tasks, [&](TaskId a, TaskId b) {
    return std::pair(timeline.start[a], a) < std::pair(timeline.start[b], b);
  });
  using Busy = std::pair<Duration, std::size_t>;  // until when, which row
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free;
  std::vector<Tasks> rows;
  for (const TaskId task : tasks) {
    while (!busy.empty() && busy.top().first <= timeline.start[task]) {
      free.push(busy.top().second);
      busy.pop();
    }
    std::size_t row = rows.size();
    if (free.empty()) {
      rows.emplace_back();
    } else {
      row = free.top();
      free.pop();
    }
    rows[row].push_back(task);
    busy.emplace(timeline.end[task], row);
  }
  return rows;
}

}  // namespace

std::vector<Lane> lanes_of(const Program& program, const Timeline& timeline) {
  std::vector<Lane> lanes;
  for (std::size_t r = 0; r < program.resources.size(); ++r) {
    const ResourceId id(static_cast<std::uint32_t>(r));
    const Resource& resource = program.resources[id];
    Tasks tasks = begun_on(r, program, timeline);
    if (tasks.empty()) continue;
    std::vector<Tasks> rows;
    if (resource.kind == ResourceKind::kStream) {
      rows.push_back(std::move(tasks));
    } else {
      rows = spread(std::move(tasks), timeline);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      lanes.push_back({.resource = id,
                       .index = static_cast<int>(i),
                       .rank = resource.rank,
                       .name = i == 0 ? resource.name : fmt::format("{} {}", resource.name, i + 1),
                       .tasks = std::move(rows[i])});
    }
  }
  std::ranges::stable_sort(lanes, {}, &Lane::rank);
  return lanes;
}

std::vector<std::string> rank_names(const Program& program, int pipeline) {
  const std::int32_t count = program.rank_count();
  std::vector<std::string> names;
  for (std::int32_t rank = 0; rank < count; ++rank)
    names.push_back(count > pipeline && pipeline > 0
                        ? fmt::format("replica {} · rank {}", rank / pipeline, rank % pipeline)
                        : fmt::format("rank {}", rank));
  return names;
}

}  // namespace stagecraft
