// Tasks that others can slow down: those with a flow, by who shares their links, and those that yield, by the
// loads on their device.
//
// Such a task has two phases: first its own time (latency, or all of a task without a flow), then its
// transfer. Each phase is an amount of work that runs at some speed, 1 when nothing slows it. Speeds change
// at instants only, all changes of one instant together, so the end of a phase is predicted whenever its
// speed changes. A prediction that turns out too early is corrected when it comes up; one that is too late is
// superseded by an earlier one.
//
// A device, one for each resource that can be slowed, runs its tasks at 1 - loads of their speed, times the
// speed that the program gives the resource at the time. It stands still beside loads of all of it. A transfer
// of a slowed task demands proportionally less of its links.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/event_queue.hpp"
#include "sim/engine/max_min.hpp"
#include "sim/engine/network_usage.hpp"
#include "sim/engine/run_state.hpp"
#include "sim/engine/task_subset.hpp"

namespace stagecraft {

class FluidTasks {
 public:
  // What loads leave of a device, where it is less than this, is nothing.
  static constexpr double kLeastSpeed = 0.001;
  // The speed of a device beside one load.
  [[nodiscard]] static double speed_beside(double share);

  FluidTasks(RunState& state, const RunOptions& options);

  // Can anything in the program slow a task?
  [[nodiscard]] static bool are_in(const Program& program) {
    return !program.flows.empty() || !program.loads.empty() || !program.speed_changes.empty();
  }

  // Prefetches the data that begin() will soon read.
  void prefetch(TaskId task) const {
    if (const std::optional<std::uint32_t> flow = flows_.find(task)) {
      __builtin_prefetch(&state_->program.flows[*flow]);
      __builtin_prefetch(&state_->program.label[task]);
    }
  }
  // The task starts. false: its time is fixed, it is none of ours (but its load is noted).
  [[nodiscard]] bool begin(TaskId task, Duration now);
  // A task of any kind has ended: its load is gone.
  void ended(TaskId task);

  // Finds the speeds that hold from `now` on. To be called when nothing more starts or ends at `now`.
  void settle(Duration now);

  // Valid after settle().
  [[nodiscard]] std::optional<Duration> next_event() const;
  // Ends the tasks that end at `now`, which is not after next_event().
  void advance(Duration now, Instant& instant);

  // Does a task stand still because its resource does?
  [[nodiscard]] bool stand_still() const;

  // Reports link usage until `now`; tasks in transfer leave their links.
  void report(Timeline& timeline, Duration now) &&;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr Duration kNever = Duration::max();
  enum class Phase : std::uint8_t { kGone, kOwnTime, kTransfer };

  // State of a running task, with a copy of the fields of the program that it needs until its end: the
  // program itself is large and cold in the cache.
  struct Moving {
    TaskId task;
    NetworkUsage::Crossing by;
    std::span<const LinkUse> uses;  // empty: no flow
    Duration transfer{};
    double rate = 0;  // rate of a unit flow at full speed
    std::uint32_t device = kNone;
    std::uint32_t device_place = 0;  // in the device's list
    Phase phase = Phase::kGone;
    std::optional<LinkId> bottleneck;
    Duration since{};  // up to here progress is known
    Duration end{};    // predicted end of the phase
    Duration event{};  // the earliest valid one in the queue, or kNever
    double left = 0;   // nanoseconds of the phase at full speed
    double speed = 1;
    double reach = 1;  // the speed that the device allows
  };
  struct Device {
    std::int64_t taken = 0;  // share taken by loads, in units of 2^-32: the sum is independent of its order
    double own = 1;          // speed set by the program
    double speed = 1;
    bool is_touched = false;
    std::vector<TransferId> tasks;
  };
  // Devices that yield to the loads of a rank lie together.
  struct DeviceRange {
    std::uint32_t first = 0, end = 0;
  };

  void find_devices(const Program& program);
  [[nodiscard]] static std::vector<ResourceId> slowed_resources(const Program& program);
  [[nodiscard]] Moving moving_of(TaskId task) const;
  void join_device(TransferId id);
  void leave_device(TransferId id);
  [[nodiscard]] TransferId take();
  void give_back(TransferId id);

  void begin_phase(TransferId id, Phase phase, Duration now);
  void end_phase(TransferId id, Duration now, Instant& instant);
  void finish(TransferId id, Duration now, Instant& instant);
  [[nodiscard]] bool enter_links(TransferId id, Duration now);
  void leave_links(TransferId id, Duration now);

  void change_load(std::uint32_t load, int sign);
  void touch(std::uint32_t device);
  void change_speeds(Duration now);
  void change_links(Duration now);
  void apply_device(Device& device, Duration now);
  void change_speed(TransferId id, double speed, Duration now);
  void flush(Moving& moving, Duration now);
  void carry(const Moving& moving, double nanoseconds);
  void predict(TransferId id);

  RunState* state_;
  MaxMin network_;
  NetworkUsage usage_;
  RadixHeap<TransferId> events_;
  std::vector<TransferId> due_;  // scratch of advance()

  TaskSubset flows_;
  TaskSubset loads_;
  IdVector<ResourceId, std::uint32_t> device_of_;  // kNone where nothing ever slows the resource down
  std::vector<DeviceRange> yield_to_;              // by load
  std::vector<Device> devices_;
  std::size_t next_speed_ = 0, next_link_ = 0;  // next pending changes of the program
  std::vector<std::uint32_t> touched_devices_;

  IdVector<TransferId, Moving> moving_;
  std::vector<TransferId> spare_;
};

}  // namespace stagecraft
