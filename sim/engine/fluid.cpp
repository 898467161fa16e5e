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
      usage_(state.program.links.size()) {
  const Program& program = state.program;
  if (!program.flows.empty()) flow_of_ = IdVector<TaskId, std::uint32_t>(program.task_count(), kNone);
  for (std::uint32_t i = 0; i < program.flows.size(); ++i) flow_of_[program.flows[i].task] = i;
  if (!program.loads.empty()) load_of_ = IdVector<TaskId, std::uint32_t>(program.task_count(), kNone);
  for (std::uint32_t i = 0; i < program.loads.size(); ++i) load_of_[program.loads[i].task] = i;
  find_devices(program);
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

std::uint32_t FluidTasks::device_of(TaskId task) const {
  return device_of_[state_->tasks[task].resource];
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

bool FluidTasks::begin(TaskId task, Duration now) {
  if (!load_of_.empty() && load_of_[task] != kNone) change_load(load_of_[task], 1);
  const std::uint32_t device = device_of(task);
  std::uint32_t flow = flow_of_.empty() ? kNone : flow_of_[task];
  if (flow != kNone) {
    const Flow& f = state_->program.flows[flow];
    if (f.transfer == Duration::zero() || state_->program.uses_of(f.route).empty()) flow = kNone;
  }
  TaskState& state = state_->tasks[task];
  if (state.duration == Duration::zero() || (flow == kNone && device == kNone)) return false;
  state.start = now;
  const TransferId id = take();
  Moving& moving = moving_[id];
  moving = {.task = task, .flow = flow, .device = device, .bottleneck = {}};
  if (device != kNone) {
    moving.device_place = static_cast<std::uint32_t>(devices_[device].tasks.size());
    moving.reach = devices_[device].speed;
    devices_[device].tasks.push_back(id);
  }
  const bool latency = flow == kNone || state_->program.flows[flow].transfer < state.duration;
  begin_phase(id, latency ? Phase::kOwnTime : Phase::kTransfer, now);
  return true;
}

void FluidTasks::begin_phase(TransferId id, Phase phase, Duration now) {
  Moving& moving = moving_[id];
  const Duration transfer =
      moving.flow == kNone ? Duration::zero() : state_->program.flows[moving.flow].transfer;
  const Duration work = phase == Phase::kTransfer ? transfer : state_->tasks[moving.task].duration - transfer;
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
  const Program& program = state_->program;
  const Flow& flow = program.flows[moving.flow];
  const std::span<const LinkUse> uses = program.uses_of(flow.route);
  for (const LinkUse& use : uses) usage_.enter(use.link, program.label[moving.task], now);
  return network_.insert(id, uses, flow.rate.count() * moving.reach);
}

void FluidTasks::leave_links(TransferId id, Duration now) {
  const Moving& moving = moving_[id];
  const Program& program = state_->program;
  network_.remove(id);
  for (const LinkUse& use : program.uses_of(program.flows[moving.flow].route))
    usage_.leave(use.link, program.label[moving.task], now);
}

void FluidTasks::end_phase(TransferId id, Duration now, Instant& instant) {
  if (moving_[id].phase == Phase::kOwnTime && moving_[id].flow != kNone)
    begin_phase(id, Phase::kTransfer, now);
  else
    finish(id, now, instant);
}

void FluidTasks::finish(TransferId id, Duration now, Instant& instant) {
  Moving& moving = moving_[id];
  flush(moving, now);
  if (moving.phase == Phase::kTransfer) leave_links(id, now);
  if (moving.device != kNone) {
    std::vector<TransferId>& tasks = devices_[moving.device].tasks;
    tasks[moving.device_place] = tasks.back();
    moving_[tasks.back()].device_place = moving.device_place;
    tasks.pop_back();
  }
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
  if (!load_of_.empty() && load_of_[task] != kNone) change_load(load_of_[task], -1);
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
      network_.set_cap(id, state_->program.flows[moving.flow].rate.count() * speed);
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
    change_speed(id, network_.rate(id) / state_->program.flows[moving.flow].rate.count(), now);
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
