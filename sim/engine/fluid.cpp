#include "sim/engine/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stagecraft {
namespace {

constexpr double kShareUnits = 4294967296.0;  // 2^32 for a whole device
constexpr double kMostNanoseconds = 9e18;     // what 63 bits hold

}  // namespace

FluidTasks::FluidTasks(RunState& state, const RunOptions& options)
    : state_(&state),
      network_(state.program.links, options.idle_network),
      usage_(state.program.links.size()),
      flows_(state.program.flows, state.program.task_count()),
      loads_(state.program.loads, state.program.task_count()) {
  find_devices(state.program);
}

// One device per rank that has both loads and resources that yield.
void FluidTasks::find_devices(const Program& program) {
  std::vector<std::int32_t> loaded, ranks;
  for (const DeviceLoad& load : program.loads)
    loaded.push_back(program.resources[program.resource_of(load.task)].rank);
  std::vector<std::int32_t> sorted = loaded;
  std::sort(sorted.begin(), sorted.end());
  for (const Resource& resource : program.resources)
    if (resource.yields && std::binary_search(sorted.begin(), sorted.end(), resource.rank))
      ranks.push_back(resource.rank);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  devices_.resize(ranks.size());

  const auto device_of_rank = [&](std::int32_t rank) {
    const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
    return at != ranks.end() && *at == rank ? static_cast<std::uint32_t>(at - ranks.begin()) : kNone;
  };
  for (const Resource& resource : program.resources)
    device_of_.push_back(resource.yields ? device_of_rank(resource.rank) : kNone);
  for (const std::int32_t rank : loaded) device_of_load_.push_back(device_of_rank(rank));
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
  Moving moving{.task = task, .label = program.label[task], .uses = {}, .bottleneck = {}};
  moving.device = device_of_[state_->tasks[task].resource];
  const std::optional<std::uint32_t> index = flows_.find(task);
  if (!index) return moving;
  const Flow& flow = program.flows[*index];
  if (flow.transfer == Duration::zero()) return moving;
  moving.uses = program.uses_of(flow.route);
  if (moving.uses.empty()) return moving;
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
  if (phase == Phase::kTransfer && !enter_links(id, now)) return;  // settle() tells its speed
  predict(id);
}

bool FluidTasks::enter_links(TransferId id, Duration now) {
  const Moving& moving = moving_[id];
  for (const LinkUse& use : moving.uses) usage_.enter(use.link, moving.label, now);
  return network_.insert(id, moving.uses, moving.rate * moving.reach);
}

void FluidTasks::leave_links(TransferId id, Duration now) {
  const Moving& moving = moving_[id];
  network_.remove(id);
  for (const LinkUse& use : moving.uses) usage_.leave(use.link, moving.label, now);
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
  if (moving.phase == Phase::kTransfer) leave_links(id, now);
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
  const std::uint32_t device = device_of_load_[load];
  if (device == kNone) return;
  devices_[device].taken += sign * std::llround(state_->program.loads[load].share * kShareUnits);
  if (devices_[device].is_touched) return;
  devices_[device].is_touched = true;
  touched_devices_.push_back(device);
}

void FluidTasks::apply_device(Device& device, Duration now) {
  const double speed = std::max(kSlowest, 1 - static_cast<double>(device.taken) / kShareUnits);
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

// Books what was done since the last change.
void FluidTasks::flush(Moving& moving, Duration now) {
  const auto passed = static_cast<double>((now - moving.since).count());
  moving.since = now;
  if (passed == 0) return;
  moving.left = std::max(0.0, moving.left - passed * moving.speed);
  if (moving.bottleneck) usage_.lose(*moving.bottleneck, passed * (1 - moving.speed / moving.reach));
}

void FluidTasks::change_speed(TransferId id, double speed, Duration now) {
  flush(moving_[id], now);
  moving_[id].speed = speed;
  predict(id);
}

// At full speed `left` is a whole number, so that the end is exact.
void FluidTasks::predict(TransferId id) {
  Moving& moving = moving_[id];
  const double time = moving.left / moving.speed;
  SC_CHECK(time < kMostNanoseconds - static_cast<double>(moving.since.count()), "a task takes centuries");
  moving.end = moving.since + Duration(static_cast<std::int64_t>(time + 0.5));
  if (moving.event <= moving.end) return;  // it is corrected when that event comes up
  moving.event = moving.end;
  events_.push(moving.end, id);
}

void FluidTasks::report(Timeline& timeline) && {
  const Program& program = state_->program;
  for (const Flow& flow : program.flows) {
    const double bytes = flow.rate.count() * to_seconds(flow.transfer);
    for (const LinkUse& use : program.uses_of(flow.route)) usage_.carry(use.link, use.flows * bytes);
  }
  timeline.links = usage_.links();
  timeline.meetings = std::move(usage_).meetings();
}

}  // namespace stagecraft
