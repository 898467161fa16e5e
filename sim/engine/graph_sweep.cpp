#include "sim/engine/graph_sweep.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.hpp"
#include "sim/engine/fluid.hpp"

namespace stagecraft {

// Puts the tasks of a program in order; gives up where a promise of GraphSweep does not hold.
class GraphSweep::Ordering {
 public:
  explicit Ordering(const Program& program)
      : program_(program),
        resource_(program.task_count()),
        before_begin_(program.task_count() + 1),
        step_(program.task_count()) {}

  [[nodiscard]] bool into(GraphSweep& sweep) {
    if (!program_.flows.empty() || !program_.link_changes.empty() || !program_.speed_changes.empty() ||
        !program_.loops.empty())
      return false;
    note_predecessors();
    if (!find_devices(sweep)) return false;
    sweep.labels_ = static_cast<std::uint32_t>(program_.labels.size());
    return order(sweep);
  }

 private:
  [[nodiscard]] bool is_stream(std::size_t r) const {
    return program_.resources[ResourceId(static_cast<std::uint32_t>(r))].kind == ResourceKind::kStream;
  }

  // Counts become ends, and filling from the back turns ends into begins.
  void note_predecessors() {
    for_each_edge([&](std::uint32_t, std::uint32_t after) { ++before_begin_[after]; });
    std::partial_sum(before_begin_.begin(), before_begin_.end(), before_begin_.begin());
    before_.resize(before_begin_.back());
    for_each_edge(
        [&](std::uint32_t before, std::uint32_t after) { before_[--before_begin_[after]] = before; });
  }

  [[nodiscard]] std::span<const std::uint32_t> before(std::uint32_t task) const {
    return std::span(before_).subspan(before_begin_[task], before_begin_[task + 1] - before_begin_[task]);
  }

  template <class Visit>
  void for_each_edge(Visit visit) {
    for (std::size_t r = 0; r < program_.resources.size(); ++r)
      for (std::uint32_t i = program_.resource_begin[r]; i < program_.resource_begin[r + 1]; ++i) {
        resource_[i] = static_cast<std::uint32_t>(r);
        if (is_stream(r) && i > program_.resource_begin[r]) visit(i - 1, i);
      }
    for (std::uint32_t i = 0; i < program_.task_count(); ++i)
      for (const TaskId after : program_.successors_of(TaskId(i))) visit(i, after.value());
  }

  // By rank: the stream with loads, and the stream that yields to them.
  struct Pair {
    std::uint32_t loads = kNone, yields = kNone;
  };

  bool find_devices(GraphSweep& sweep) {
    device_of_.assign(program_.resources.size(), kNone);
    speed_.assign(program_.task_count(), kNone);
    std::map<std::int32_t, Pair> ranks;
    for (const DeviceLoad& load : program_.loads) {
      const std::uint32_t r = resource_[load.task.index()];
      if (!is_stream(r)) return false;
      Pair& pair = ranks[program_.resources[ResourceId(r)].rank];
      if (pair.loads != kNone && pair.loads != r) return false;
      pair.loads = r;
      speed_[load.task.index()] = number_of(FluidTasks::speed_beside(load.share), sweep.speeds_);
    }
    for (std::uint32_t r = 0; r < program_.resources.size(); ++r) {
      const Resource& resource = program_.resources[ResourceId(r)];
      const auto known = ranks.find(resource.rank);
      if (!resource.yields || known == ranks.end()) continue;
      if (known->second.yields != kNone || !is_stream(r)) return false;
      known->second.yields = r;
    }
    for (const auto& [rank, pair] : ranks) {
      if (pair.yields == kNone) continue;  // no stream is slowed
      if (!is_local(pair)) return false;
      device_of_[pair.loads] = device_of_[pair.yields] = static_cast<std::uint32_t>(sweep.devices_.size());
      sweep.devices_.emplace_back();
      yields_.push_back(pair.yields);
    }
    return true;
  }

  [[nodiscard]] static std::uint32_t number_of(double speed, std::vector<double>& speeds) {
    const auto known = std::ranges::find(speeds, speed);
    const auto number = static_cast<std::uint32_t>(known - speeds.begin());
    if (known == speeds.end()) speeds.push_back(speed);
    return number;
  }

  // Up to its last load, does the stream wait only for tasks of the yielding stream?
  [[nodiscard]] bool is_local(const Pair& pair) const {
    std::uint32_t last = program_.resource_begin[pair.loads];
    for (std::uint32_t i = last; i < program_.resource_begin[pair.loads + 1]; ++i)
      if (speed_[i] != kNone) last = i;
    for (std::uint32_t i = program_.resource_begin[pair.loads]; i <= last; ++i)
      for (const std::uint32_t task : before(i))
        if (resource_[task] != pair.loads && resource_[task] != pair.yields) return false;
    return true;
  }

  // Orders the tasks. Of the tasks that may come next, those of streams with loads go first, so the loads
  // that a yielding task meets are known before it. False where there is a cycle.
  bool order(GraphSweep& sweep) {
    std::vector<std::uint32_t> missing(program_.task_count()), first, other;
    const auto open = [&](std::uint32_t task) {
      const std::uint32_t device = device_of_[resource_[task]];
      (device != kNone && yields_[device] != resource_[task] ? first : other).push_back(task);
    };
    for (std::uint32_t i = 0; i < program_.task_count(); ++i) {
      missing[i] = static_cast<std::uint32_t>(before(i).size());
      if (missing[i] == 0) open(i);
    }
    std::size_t count = 0;
    for (; !first.empty() || !other.empty(); ++count) {
      std::vector<std::uint32_t>& from = first.empty() ? other : first;
      const std::uint32_t task = from.back();
      from.pop_back();
      add(task, sweep);
      const auto settle = [&](std::uint32_t after) {
        if (--missing[after] == 0) open(after);
      };
      for (const TaskId after : program_.successors_of(TaskId(task))) settle(after.value());
      const std::uint32_t r = resource_[task];
      if (is_stream(r) && task + 1 < program_.resource_begin[r + 1]) settle(task + 1);
    }
    return count == program_.task_count();
  }

  // Adds a task; more than two predecessors are joined by steps of zero time.
  void add(std::uint32_t task, GraphSweep& sweep) {
    const auto push = [&](Step step) {
      SC_CHECK(sweep.steps_.size() + 1 < UINT32_MAX, "steps are 32 bits wide");
      sweep.steps_.push_back(step);
      return static_cast<std::uint32_t>(sweep.steps_.size());
    };
    Step step{.label = program_.label[TaskId(task)].value()};
    std::uint32_t* free = &step.first;
    for (const std::uint32_t waited : before(task)) {
      if (free == nullptr)
        step = {.label = step.label,
                .first = push({.label = sweep.labels_, .first = step.first, .second = step.second}),
                .second = step_[waited]};
      else
        *free = step_[waited];
      free = free == &step.first ? &step.second : nullptr;
    }
    const std::uint32_t device = device_of_[resource_[task]];
    const bool yields = device != kNone && yields_[device] == resource_[task];
    if (yields || speed_[task] != kNone) step.device = device;
    step.load = speed_[task];
    step_[task] = push(step);
  }

  const Program& program_;
  std::vector<std::uint32_t> resource_;  // [task]
  // By task: its predecessors, with the task before it on its stream. Offsets, and the lists.
  std::vector<std::uint32_t> before_begin_, before_;
  std::vector<std::uint32_t> step_;       // [task], once it is in order
  std::vector<std::uint32_t> speed_;      // [task], by number; kNone: no load
  std::vector<std::uint32_t> device_of_;  // [resource], of both streams of a pair
  std::vector<std::uint32_t> yields_;     // [device], a resource
};

std::optional<GraphSweep> GraphSweep::of(const Program& program) {
  GraphSweep sweep;
  if (!Ordering(program).into(sweep)) return std::nullopt;
  return sweep;
}

std::vector<Duration> GraphSweep::times_of(const Program& program) {
  std::vector<Duration> times(program.labels.size());
  for (std::uint32_t i = 0; i < program.task_count(); ++i)
    times[program.label[TaskId(i)].index()] = program.duration[TaskId(i)];
  return times;
}

// Books work, and predicts the end anew, whenever the speed changes before that end, as FluidTasks does.
Duration GraphSweep::slowed(Device& device, Duration start, Duration time) {
  while (device.next < device.loads.size() && device.loads[device.next].end <= start) ++device.next;
  if (time == Duration::zero()) return start;
  auto left = static_cast<double>(time.count());
  bool beside = device.next < device.loads.size() && device.loads[device.next].start <= start;
  for (std::size_t load = device.next;;) {
    const double speed = beside ? device.loads[load].speed : 1;
    const auto end = [&] { return start + Duration(static_cast<std::int64_t>(left / speed + 0.5)); };
    if (load == device.loads.size()) return end();
    const Duration change = beside ? device.loads[load].end : device.loads[load].start;
    if (speed > 0 && change >= end()) return end();
    left = std::max(0.0, left - static_cast<double>((change - start).count()) * speed);
    start = change;
    load += beside ? 1 : 0;
    beside = !beside || (load < device.loads.size() && device.loads[load].start == start);
  }
}

void GraphSweep::add_load(Device& device, const Load& load) {
  if (load.start == load.end) return;
  const bool is_ahead = device.next < device.loads.size();  // the last load has not been passed
  if (is_ahead && device.loads.back().end == load.start && device.loads.back().speed == load.speed)
    device.loads.back().end = load.end;
  else
    device.loads.push_back(load);
}

Duration GraphSweep::makespan(std::span<const Duration> times) {
  SC_CHECK(times.size() == labels_, "one time a label");
  times_.assign(times.begin(), times.end());
  times_.push_back(Duration::zero());
  ends_.resize(steps_.size() + 1);
  for (Device& device : devices_) device = {};
  Duration last{};
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    const Duration start = std::max(ends_[step.first], ends_[step.second]), time = times_[step.label];
    Duration end = start + time;
    if (step.load != kNone && step.device != kNone)
      add_load(devices_[step.device], {.start = start, .end = end, .speed = speeds_[step.load]});
    else if (step.device != kNone)
      end = slowed(devices_[step.device], start, time);
    ends_[i + 1] = end;
    last = std::max(last, end);
  }
  return last;
}

}  // namespace stagecraft
