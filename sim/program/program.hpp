// The task graph of one iteration, as data.
//
// A task occupies a resource for a duration, after its predecessors. There are two kinds of resources. A
// stream runs its tasks one at a time in order (like a CUDA stream); a concurrent resource runs any number of
// tasks at once. Two things stretch a task beyond its duration: a flow, which shares links with other flows,
// and a load on its compute device. A link may change its capacity, and a resource its speed, at times given
// in advance. The program knows nothing of transformers or collectives: a label is a name, a micro-batch a
// number, a category an index that the report understands.
//
// Everything is flat arrays: successors in CSR, tasks of one resource contiguous and in the order in which it
// runs them. So a TaskId is canonical, (resource, index), and an unrelated feature cannot reorder ties.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"

namespace stagecraft {

using TaskId = Id<struct TaskTag>;
using ResourceId = Id<struct ResourceTag>;
using LabelId = Id<struct LabelTag>;
using LinkId = Id<struct SharedLinkTag>;
using RouteId = Id<struct RouteTag>;

enum class ResourceKind : std::uint8_t {
  kStream,      // exclusive, in program order
  kConcurrent,  // any number at once, each for its own duration
};

struct Resource {
  ResourceKind kind = ResourceKind::kStream;
  std::int32_t rank = 0;  // the simulated rank it belongs to, for reports
  std::string name;       // "compute", "data", "send forward": for reports and dead-lock messages
  bool yields = false;    // its tasks slow down while tasks with a load run on the same rank
  // Resources with the same number are copies of one. Their tasks with labels of one name and one micro-batch
  // are the same task, and do not meet on links.
  std::optional<std::int32_t> copy_of = {};
};

// Parts of a task's time, which add up to its duration. Categories are small integers defined by the caller.
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

// Memory that a task allocates at its start and changes at its end (negative = frees), on the rank of its
// resource.
struct MemoryDelta {
  TaskId task;
  Bytes at_start{};
  Bytes at_end{};
};

// One direction of a link. The flows that cross it share it max-min fair.
struct SharedLink {
  std::string name;
  Bandwidth capacity{};
};

// Number of unit flows of a task on a link: a fraction where only a share of the bytes goes this way, more
// than one where a task stands for several transfers. In (0, kMostFlows].
struct LinkUse {
  LinkId link;
  double flows = 1;
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};
inline constexpr double kMostFlows = 1e6;

// Moves bytes while its task runs. An unhindered task with a flow lasts its duration: first duration -
// transfer, its latency, which is never stretched; then it moves transfer * rate bytes per unit flow. All
// unit flows of a task run in step: at a rate of x each, link l of the route carries flows_l * x.
struct Flow {
  Duration transfer{};  // in [0, duration of the task]
  Bandwidth rate{};     // rate of an unhindered unit flow; it is never faster
  TaskId task;
  RouteId route;
};

// The task takes `share` of its rank's compute device while it runs: its communication kernels occupy
// multiprocessors, and its bytes use the memory bandwidth.
struct DeviceLoad {
  TaskId task;
  double share = 0;  // in [0, 1]
};

// From `time` on the link has this capacity: above 0, and at most the capacity in `links`, which holds until
// the first change.
struct LinkChange {
  Duration time{};
  LinkId link;
  Bandwidth capacity{};
};

// From `time` on the resource works at this speed, in [0, 1]; 1 until the first change. At 0 all its tasks
// stand still, except those of zero duration.
struct SpeedChange {
  Duration time{};
  ResourceId resource;
  double speed = 1;
};

// Tasks of the resources [first, end) repeat: they restart together when the last of them has ended, for as
// long as tasks outside of loops run. The first round begins at `start`. No edge crosses the border of a
// loop.
struct Loop {
  ResourceId first, end;
  Duration start{};
};

struct Program {
  IdVector<ResourceId, Resource> resources;
  // Size resources+1: tasks [begin[r], begin[r+1]) run on r, in this order.
  std::vector<std::uint32_t> resource_begin;
  IdVector<TaskId, Duration> duration;
  IdVector<TaskId, LabelId> label;
  IdVector<TaskId, std::int32_t> micro_batch;  // or -1
  std::vector<std::uint32_t> successor_begin;  // CSR, size tasks+1
  std::vector<TaskId> successors;              // explicit edges only; stream order is implied
  IdVector<LabelId, Label> labels;
  std::vector<MemoryDelta> memory;  // ascending by task
  IdVector<LinkId, SharedLink> links;
  std::vector<std::uint32_t> route_begin;  // CSR, size routes+1
  std::vector<LinkUse> route_uses;         // of one route ascending by link
  std::vector<Flow> flows;                 // ascending by task, at most one each
  std::vector<DeviceLoad> loads;           // ascending by task, at most one each
  std::vector<LinkChange> link_changes;    // ascending by time
  std::vector<SpeedChange> speed_changes;  // ascending by time
  std::vector<Loop> loops;                 // ascending, none within another

  [[nodiscard]] std::size_t task_count() const { return duration.size(); }
  [[nodiscard]] ResourceId resource_of(TaskId task) const;  // binary search
  // Simulated ranks: they are numbered from 0.
  [[nodiscard]] std::int32_t rank_count() const;
  [[nodiscard]] std::span<const TaskId> successors_of(TaskId task) const {
    const std::size_t begin = successor_begin[task.index()];
    return {successors.data() + begin, successor_begin[task.index() + 1] - begin};
  }
  [[nodiscard]] std::span<const LinkUse> uses_of(RouteId route) const {
    const std::size_t begin = route_begin[route.index()];
    return {route_uses.data() + begin, route_begin[route.index() + 1] - begin};
  }
  // "rank 5 compute B7": for messages.
  [[nodiscard]] std::string describe(TaskId task) const;
};

// Builds a Program. Tasks may be added in any order; those of one resource run in the order in which they
// were added. Handles are valid for this builder only; build() renumbers into canonical ids. throws
// InternalError at once on a negative duration, on a resource, label, link, route or handle that it did not
// give out, and on a flow or a load out of its range; in build() on a task with two flows or two loads, and
// on a load of a task that yields itself.
class ProgramBuilder {
 public:
  using Handle = Id<struct HandleTag>;

  ResourceId add_resource(Resource resource);
  LabelId add_label(Label label);
  Handle add_task(ResourceId resource, Duration duration, LabelId label, std::int32_t micro_batch = -1);
  void add_dependency(Handle before, Handle after);
  void add_memory(Handle task, Bytes at_start, Bytes at_end);
  // throws InternalError when the capacity is not a positive number.
  LinkId add_link(SharedLink link);
  // The links of a route may come in any order, none twice. Many tasks may share one route.
  RouteId add_route(std::vector<LinkUse> uses);
  void add_flow(Handle task, Duration transfer, Bandwidth rate, RouteId route);
  void add_load(Handle task, double share);
  // Changes must be added in the order of their times.
  void add_link_change(LinkChange change);
  void add_speed_change(SpeedChange change);
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
  struct HandleLoad {
    Handle task;
    double share;
  };
  void place_flows(Program& program, const std::vector<TaskId>& canonical);
  void place_loads(Program& program, const std::vector<TaskId>& canonical);

  IdVector<ResourceId, Resource> resources_;
  IdVector<LabelId, Label> labels_;
  std::vector<ResourceId> task_resource_;
  std::vector<Duration> task_duration_;
  std::vector<LabelId> task_label_;
  std::vector<std::int32_t> task_micro_batch_;
  std::vector<Edge> edges_;
  std::vector<HandleMemory> memory_;
  IdVector<LinkId, SharedLink> links_;
  std::vector<std::uint32_t> route_begin_{0};
  std::vector<LinkUse> route_uses_;
  std::vector<Flow> flows_;  // their tasks are still numbers of handles: spares a large program a copy
  std::vector<HandleLoad> loads_;
  std::vector<LinkChange> link_changes_;
  std::vector<SpeedChange> speed_changes_;
};

}  // namespace stagecraft
