// The checkpoints a job can go back to: those in storage, and the copies in host memories.
//
//   storage   usable once written. Of a job whose results may turn out to be wrong all are kept, else the
//             last.
//   memory    a snapshot every `copy_every` steps since training began, usable when as many further steps
//             have ended: its copies travel in their idle network time. Only the newest usable one is there.
//   source    docs/resilience.md, section 4 (Gemini, SOSP 2023).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "sim/goodput/checkpointing.hpp"
#include "sim/goodput/machines.hpp"

namespace stagecraft {

// Can the state be put together from host memories, when these places of a plan are lost at once?
//
//   lost     one entry per place, in the order of the plan
//   copies   m >= 1 hosts hold each shard: groups of places 0..m-1, m..2m-1, …; if m does not divide, the
//            last m + rest places are a ring in which each copies to the next m - 1.
//   source   docs/resilience.md, section 4 (Gemini, SOSP 2023; the size of the ring is unverified).
[[nodiscard]] bool recoverable_from_memory(const std::vector<bool>& lost, int copies);

// Progress at one moment.
struct Progress {
  Duration at{};  // when
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  Duration trained{};  // the time of these steps

  friend bool operator==(const Progress&, const Progress&) = default;
};

class CheckpointStore {
 public:
  struct Source {
    Progress progress;
    Duration load{};
    bool only_storage = true;  // no copy in host memories is of use
  };

  // keep_all: of the checkpoints in storage.
  CheckpointStore(const std::optional<Checkpointing>& how, bool keep_all) : how_(how), keep_all_(keep_all) {}

  void written(const Progress& progress);  // a complete checkpoint in storage
  [[nodiscard]] Progress in_storage() const { return stored_.empty() ? Progress{} : stored_.back(); }

  // Training begins on these nodes. Their state has been copied between them by then.
  void begin(const Progress& progress, const std::vector<int>& nodes, const Machines& machines);
  // `steps` steps have ended, of which the last `steps - 1` took `step` each. `now` is the progress after
  // them.
  void trained(const Progress& now, std::int64_t steps, std::int64_t samples_per_step, Duration step);

  // The checkpoint with the least time to load and to train again; memory is preferred on ties. `not_after`:
  // only snapshots up to that time. Without a checkpoint: the start, with nothing to load.
  [[nodiscard]] Source source(const Machines& machines, std::optional<Duration> not_after) const;
  // The job went back. Checkpoints written after `not_after` are void. Storage beyond `to` counts as `to`,
  // since the job cannot go forward to it.
  void went_back(const Progress& to, std::optional<Duration> not_after);

 private:
  [[nodiscard]] bool memory_survives(const Machines& machines) const;

  std::optional<Checkpointing> how_;
  bool keep_all_;
  std::vector<Progress> stored_;  // by time, and by steps
  // In-memory checkpoints: nodes of the plan, and their lives when training began.
  std::vector<int> nodes_, lives_;
  std::int64_t copied_steps_ = 0;  // since training began
  Progress usable_, travelling_;
};

}  // namespace stagecraft
