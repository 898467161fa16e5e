// The task graph of one iteration, as data.
//
// A task takes a resource for a duration, after its predecessors. Resources are of two kinds: a stream runs
// its tasks one at a time in their order (like a CUDA stream); a link carries any number of them at once.
// Nothing here knows what a transformer or a collective is: a label is a name, a micro-batch a number, a
// category an index that the report understands.
//
// Everything is flat arrays: successors in CSR, tasks of one resource contiguous and in the order in which it
// runs them. So a TaskId is canonical, (resource, index), and an unrelated feature cannot reorder ties.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"

namespace stagecraft {

using TaskId = Id<struct TaskTag>;
using ResourceId = Id<struct ResourceTag>;
using LabelId = Id<struct LabelTag>;

enum class ResourceKind : std::uint8_t {
  kStream,  // exclusive, in program order
  kLink,    // concurrent; a task occupies it for its own duration (closed-form network)
};

struct Resource {
  ResourceKind kind = ResourceKind::kStream;
  std::int32_t rank = 0;  // the simulated rank it belongs to, for reports
  std::string name;       // "compute", "data", "send forward": for reports and dead-lock messages
};

// What a task's time consists of. `parts` add up to the task's duration; categories are the caller's own
// small integers.
struct TaskPart {
  std::int32_t category = 0;
  Duration time{};
  friend bool operator==(const TaskPart&, const TaskPart&) = default;
};

struct Label {
  std::string name;         // "F", "B", "send", "gradient all-reduce"
  std::int32_t stage = -1;  // global stage, or -1
  std::vector<TaskPart> parts;
};

// Memory that a task takes when it starts and changes when it ends (negative = frees), on the rank of its
// resource.
struct MemoryDelta {
  TaskId task;
  Bytes at_start{};
  Bytes at_end{};
};

struct Program {
  IdVector<ResourceId, Resource> resources;
  std::vector<std::uint32_t>
      resource_begin;  // size resources+1: tasks [begin[r], begin[r+1]) run on r, in this order
  IdVector<TaskId, Duration> duration;
  IdVector<TaskId, LabelId> label;
  IdVector<TaskId, std::int32_t> micro_batch;  // or -1
  std::vector<std::uint32_t> successor_begin;  // CSR, size tasks+1
  std::vector<TaskId> successors;              // explicit edges only; stream order is implied
  IdVector<LabelId, Label> labels;
  std::vector<MemoryDelta> memory;  // ascending by task

  [[nodiscard]] std::size_t task_count() const { return duration.size(); }
  [[nodiscard]] ResourceId resource_of(TaskId task) const;  // binary search
  [[nodiscard]] std::span<const TaskId> successors_of(TaskId task) const {
    const std::size_t begin = successor_begin[task.index()];
    return {successors.data() + begin, successor_begin[task.index() + 1] - begin};
  }
  // "rank 5 compute B7": for messages.
  [[nodiscard]] std::string describe(TaskId task) const;
};

// Builds a Program. Tasks may be added in any order; those of one resource run in the order in which they
// were added. Handles are valid for this builder only; build() renumbers into canonical ids. throws
// InternalError at once on a negative duration and on a resource, label or handle that it did not give out.
class ProgramBuilder {
 public:
  using Handle = Id<struct HandleTag>;

  ResourceId add_resource(Resource resource);
  LabelId add_label(Label label);
  Handle add_task(ResourceId resource, Duration duration, LabelId label, std::int32_t micro_batch = -1);
  void add_dependency(Handle before, Handle after);
  void add_memory(Handle task, Bytes at_start, Bytes at_end);
  void reserve(std::size_t tasks, std::size_t dependencies);  // spares a large program the copies of growing

  // The frozen program. The builder is spent. Cycles are found by whoever runs it.
  [[nodiscard]] Program build() &&;

 private:
  struct Edge {
    Handle before, after;
  };
  struct HandleMemory {
    Handle task;
    Bytes at_start, at_end;
  };
  IdVector<ResourceId, Resource> resources_;
  IdVector<LabelId, Label> labels_;
  std::vector<ResourceId> task_resource_;
  std::vector<Duration> task_duration_;
  std::vector<LabelId> task_label_;
  std::vector<std::int32_t> task_micro_batch_;
  std::vector<Edge> edges_;
  std::vector<HandleMemory> memory_;
};

}  // namespace stagecraft
