#include "sim/engine/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stagecraft {
namespace {

constexpr double kShareUnits = 4294967296.0;  // 2^32 for a whole device
constexpr double kMostNanoseconds = 9e18;     // close to the range of 63 bits
constexpr double kNanosecondsPerSecond = 1e9;

std::int64_t units_of(double share) {
  return std::llround(share * kShareUnits);
}

double speed_of(std::int64_t taken) {
  const double left = 1 - static_cast<double>(taken) / kShareUnits;
  return left < FluidTasks::kLeastSpeed ? 0 : left;
}

}  // namespace

double FluidTasks::speed_beside(double share) {
  return speed_of(units_of(share));
}

FluidTasks::FluidTasks(RunState& state, const RunOptions& options)
    : state_(&state),
      network_(state.program.links, options.idle_network),
      usage_(state.program),
      flows_(state.program.flows, state.program.task_count()),
      loads_(state.program.loads, state.program.task_count()) {
  find_devices(state.program);
}

// The resources that yield to some load or change their speed: by rank, in each rank those that yield first.
std::vector<ResourceId> FluidTasks::slowed_resources(const Program& program) {
  IdVector<ResourceId, bool> changes(program.resources.size());
  for (const SpeedChange& change : program.speed_changes) changes[change.resource] = true;
  std::vector<std::int32_t> loaded;
  for (const DeviceLoad& load : program.loads)
    loaded.push_back(program.resources[program.resource_of(load.task)].rank);
  std::sort(loaded.begin(), loaded.end());
  std::vector<ResourceId> slowed;
  for (std::uint32_t i = 0; i < program.resources.size(); ++i) {
    const Resource& resource = program.resources[ResourceId(i)];
    if (changes[ResourceId(i)] ||
        (resource.yields && std::binary_search(loaded.begin(), loaded.end(), resource.rank)))
      slowed.emplace_back(i);
  }
  std::stable_sort(slowed.begin(), slowed.end(), [&](ResourceId a, ResourceId b) {
    const Resource &x = program.resources[a], &y = program.resources[b];
    return std::pair(x.rank, !x.yields) < std::pair(y.rank, !y.yields);
  });
  return slowed;
}

void FluidTasks::find_devices(const Program& program) {
  const std::vector<ResourceId> slowed = slowed_resources(program);
  devices_.resize(slowed.size());
  for (std::size_t i = 0; i < program.resources.size(); ++i) device_of_.push_back(kNone);
  for (std::uint32_t i = 0; i < slowed.size(); ++i) device_of_[slowed[i]] = i;
  for (const DeviceLoad& load : program.loads) {
    const std::int32_t rank = program.resources[program.resource_of(load.task)].rank;
    const auto first = std::partition_point(slowed.begin(), slowed.end(),
                                            [&](ResourceId id) { return program.resources[id].rank < rank; });
    const auto end = std::partition_point(first, slowed.end(), [&](ResourceId id) {
      return program.resources[id].rank == rank && program.resources[id].yields;
    });
    yield_to_.push_back({static_cast<std::uint32_t>(first - slowed.begin()),
                         static_cast<std::uint32_t>(end - slowed.begin())});
  }
}

TransferId FluidTasks::take() {
  if (spare_.empty()) return moving_.push_back({});
  const TransferId id = spare_.back();
  spare_.pop_back();
  return id;
}

void FluidTasks::give_back(TransferId id) {
  moving_[id].phase = Phase::kGone;
  spare_.push_back(id);
}

FluidTasks::Moving FluidTasks::moving_of(TaskId task) const {
  const Program& program = state_->program;
  Moving moving{.task = task, .by = {}, .uses = {}, .bottleneck = {}};
  moving.device = device_of_[state_->tasks[task].resource];
  const std::optional<std::uint32_t> index = flows_.find(task);
  if (!index) return moving;
  const Flow& flow = program.flows[*index];
  if (flow.transfer == Duration::zero()) return moving;
  moving.uses = program.uses_of(flow.route);
  if (moving.uses.empty()) return moving;
  moving.by = usage_.crossing_of(program, task, state_->tasks[task].resource);
  moving.transfer = flow.transfer;
  moving.rate = flow.rate.count();
  return moving;
}

bool FluidTasks::begin(TaskId task, Duration now) {
  if (const std::optional<std::uint32_t> load = loads_.find(task)) change_load(*load, 1);
  const Moving moving = moving_of(task);
  TaskState& state = state_->tasks[task];
  if (state.duration == Duration::zero() || (moving.uses.empty() && moving.device == kNone)) return false;
  state.start = now;
  const TransferId id = take();
  moving_[id] = moving;
  if (moving.device != kNone) join_device(id);
  begin_phase(id, moving.transfer < state.duration ? Phase::kOwnTime : Phase::kTransfer, now);
  return true;
}

void FluidTasks::join_device(TransferId id) {
  Moving& moving = moving_[id];
  Device& device = devices_[moving.device];
  moving.device_place = static_cast<std::uint32_t>(device.tasks.size());
  moving.reach = device.speed;
  device.tasks.push_back(id);
}

void FluidTasks::leave_device(TransferId id) {
  const Moving& moving = moving_[id];
  std::vector<TransferId>& tasks = devices_[moving.device].tasks;
  tasks[moving.device_place] = tasks.back();
  moving_[tasks.back()].device_place = moving.device_place;
  tasks.pop_back();
}

void FluidTasks::begin_phase(TransferId id, Phase phase, Duration now) {
  Moving& moving = moving_[id];
  const Duration work =
      phase == Phase::kTransfer ? moving.transfer : state_->tasks[moving.task].duration - moving.transfer;
  moving.phase = phase;
  moving.since = now;
  moving.event = kNever;
  moving.left = static_cast<double>(work.count());
  moving.speed = moving.reach;
  if (phase == Phase::kTransfer && !enter_links(id, now)) return;  // settle() sets its speed
  predict(id);
}

bool FluidTasks::enter_links(TransferId id, Duration now) {
  const Moving& moving = moving_[id];
  for (const LinkUse& use : moving.uses) usage_.enter(use.link, moving.by, now);
  return network_.insert(id, moving.uses, moving.rate * moving.reach);
}

void FluidTasks::leave_links(TransferId id, Duration now) {
  const Moving& moving = moving_[id];
  network_.remove(id);
  for (const LinkUse& use : moving.uses) usage_.leave(use.link, moving.by, now);
}

void FluidTasks::end_phase(TransferId id, Duration now, Instant& instant) {
  if (moving_[id].phase == Phase::kOwnTime && !moving_[id].uses.empty())
    begin_phase(id, Phase::kTransfer, now);
  else
    finish(id, now, instant);
}

void FluidTasks::finish(TransferId id, Duration now, Instant& instant) {
  Moving& moving = moving_[id];
  flush(moving, now);
  if (moving.phase == Phase::kTransfer) {
    carry(moving, static_cast<double>(moving.transfer.count()));
    leave_links(id, now);
  }
  if (moving.device != kNone) leave_device(id);
  TaskState& state = state_->tasks[moving.task];
  state.duration = now - state.start;
  instant.ended.push_back(moving.task);
  give_back(id);
}

void FluidTasks::advance(Duration now, Instant& instant) {
  events_.pop_at(now, due_);
  for (const TransferId id : due_) state_->prefetch(moving_[id].task);
  for (const TransferId id : due_) {
    Moving& moving = moving_[id];
    if (moving.phase == Phase::kGone || moving.event != now) continue;  // superseded
    moving.event = kNever;
    if (moving.end == now)
      end_phase(id, now, instant);
    else
      predict(id);
  }
  due_.clear();
}

void FluidTasks::ended(TaskId task) {
  if (const std::optional<std::uint32_t> load = loads_.find(task)) change_load(*load, -1);
}

void FluidTasks::change_load(std::uint32_t load, int sign) {
  for (std::uint32_t device = yield_to_[load].first; device < yield_to_[load].end; ++device) {
    devices_[device].taken += sign * units_of(state_->program.loads[load].share);
    touch(device);
  }
}

void FluidTasks::touch(std::uint32_t device) {
  if (devices_[device].is_touched) return;
  devices_[device].is_touched = true;
  touched_devices_.push_back(device);
}

void FluidTasks::change_speeds(Duration now) {
  const std::vector<SpeedChange>& changes = state_->program.speed_changes;
  for (; next_speed_ < changes.size() && changes[next_speed_].time <= now; ++next_speed_) {
    const std::uint32_t device = device_of_[changes[next_speed_].resource];
    devices_[device].own = changes[next_speed_].speed;
    touch(device);
  }
}

void FluidTasks::change_links(Duration now) {
  const std::vector<LinkChange>& changes = state_->program.link_changes;
  for (; next_link_ < changes.size() && changes[next_link_].time <= now; ++next_link_)
    network_.set_capacity(changes[next_link_].link, changes[next_link_].capacity);
}

void FluidTasks::apply_device(Device& device, Duration now) {
  const double speed = device.own * speed_of(device.taken);
  if (speed == device.speed) return;
  device.speed = speed;
  for (const TransferId id : device.tasks) {
    Moving& moving = moving_[id];
    flush(moving, now);
    moving.reach = speed;
    if (moving.phase == Phase::kOwnTime)
      change_speed(id, speed, now);
    else
      network_.set_cap(id, moving.rate * speed);
  }
}

void FluidTasks::settle(Duration now) {
  change_links(now);  // before devices: a transfer that a link sets free may get another cap, not the reverse
  change_speeds(now);
  for (const std::uint32_t device : touched_devices_) {
    devices_[device].is_touched = false;
    apply_device(devices_[device], now);
  }
  touched_devices_.clear();
  network_.solve();
  for (const TransferId id : network_.changed()) {
    Moving& moving = moving_[id];
    flush(moving, now);
    moving.bottleneck = network_.bottleneck(id);
    change_speed(id, network_.rate(id) / moving.rate, now);
  }
  for (const LinkId link : network_.touched()) usage_.set_full(link, network_.is_full(link), now);
}

// Accounts for the work done since the last change.
void FluidTasks::flush(Moving& moving, Duration now) {
  const auto passed = static_cast<double>((now - moving.since).count());
  moving.since = now;
  if (passed == 0) return;
  moving.left = std::max(0.0, moving.left - passed * moving.speed);
  if (!moving.bottleneck || moving.reach <= 0) return;
  const double flows = std::ranges::find(moving.uses, *moving.bottleneck, &LinkUse::link)->flows;
  usage_.lose(*moving.bottleneck, flows * passed * (1 - moving.speed / moving.reach));
}

void FluidTasks::change_speed(TransferId id, double speed, Duration now) {
  flush(moving_[id], now);
  moving_[id].speed = speed;
  predict(id);
}

// At full speed `left` is a whole number, so that the end is exact.
void FluidTasks::predict(TransferId id) {
  Moving& moving = moving_[id];
  if (moving.speed == 0) {  // an event in the queue is corrected when it comes up
    moving.end = kNever;
    return;
  }
  const double time = moving.left / moving.speed;
  SC_CHECK(time < kMostNanoseconds - static_cast<double>(moving.since.count()), "a task takes centuries");
  moving.end = moving.since + Duration(static_cast<std::int64_t>(time + 0.5));
  if (moving.event <= moving.end) return;  // it is corrected when that event comes up
  moving.event = moving.end;
  events_.push(moving.end, id);
}

// Nanoseconds at full speed.
void FluidTasks::carry(const Moving& moving, double nanoseconds) {
  const double bytes = moving.rate * (nanoseconds / kNanosecondsPerSecond);
  for (const LinkUse& use : moving.uses) usage_.carry(use.link, use.flows * bytes);
}

std::optional<Duration> FluidTasks::next_event() const {
  std::optional<Duration> next = events_.next();
  const auto at = [&](Duration time) { next = next ? std::min(*next, time) : time; };
  const Program& program = state_->program;
  if (next_speed_ < program.speed_changes.size()) at(program.speed_changes[next_speed_].time);
  if (next_link_ < program.link_changes.size()) at(program.link_changes[next_link_].time);
  return next;
}

bool FluidTasks::stand_still() const {
  return std::any_of(moving_.begin(), moving_.end(), [&](const Moving& moving) {
    return moving.phase != Phase::kGone && moving.device != kNone && devices_[moving.device].own == 0;
  });
}

void FluidTasks::report(Timeline& timeline, Duration now) && {
  settle(now);
  for (std::uint32_t i = 0; i < moving_.size(); ++i) {
    Moving& moving = moving_[TransferId(i)];
    if (moving.phase != Phase::kTransfer) continue;
    flush(moving, now);
    carry(moving, static_cast<double>(moving.transfer.count()) - moving.left);
    leave_links(TransferId(i), now);
    moving.phase = Phase::kGone;
  }
  settle(now);
  timeline.links = usage_.links();
  timeline.meetings = std::move(usage_).meetings();
}

}  // namespace stagecraft
