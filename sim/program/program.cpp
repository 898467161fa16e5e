#include "sim/program/program.hpp"

#include <algorithm>

namespace stagecraft {

ResourceId Program::resource_of(TaskId task) const {
  SC_CHECK(task.index() < task_count(), "no such task");
  // The last resource that begins at or before the task: an empty one begins where its successor does and is
  // passed over.
  const auto after = std::upper_bound(resource_begin.begin(), resource_begin.end(), task.value());
  return ResourceId(static_cast<std::uint32_t>(after - resource_begin.begin() - 1));
}

std::int32_t Program::rank_count() const {
  std::int32_t ranks = 0;
  for (const Resource& resource : resources) ranks = std::max(ranks, resource.rank + 1);
  return ranks;
}

std::string Program::describe(TaskId task) const {
  const Resource& resource = resources[resource_of(task)];
  std::string text =
      "rank " + std::to_string(resource.rank) + " " + resource.name + " " + labels[label[task]].name;
  if (micro_batch[task] >= 0) text += std::to_string(micro_batch[task]);
  return text;
}

}  // namespace stagecraft
