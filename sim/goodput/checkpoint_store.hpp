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
#include "sim/goodput/job.hpp"
#include "sim/goodput/machines.hpp"

namespace stagecraft {

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
  };

  // keep_all: of the checkpoints in storage.
  CheckpointStore(const std::optional<Checkpointing>& how, bool keep_all) : how_(how), keep_all_(keep_all) {}

  void written(const Progress& progress);  // to storage, whole
  [[nodiscard]] Progress in_storage() const { return stored_.empty() ? Progress{} : stored_.back(); }

  // Training begins on these nodes; what they hold is copied between them by then.
  void begin(const Progress& progress, const std::vector<int>& nodes, const Machines& machines);
  // `steps` steps have ended, the last `steps - 1` of which took `step` each; `now` is the progress after
  // them.
  void trained(const Progress& now, std::int64_t steps, std::int64_t samples_per_step, Duration step);

  // Where the job would go back to: the least time to load and to train again, from memory before storage.
  // `not_after`: a snapshot of that time or before. The start, with nothing to load, where there is none.
  [[nodiscard]] Source source(const Machines& machines, std::optional<Duration> not_after) const;
  // The job went back. What was written after `not_after` is void; what storage has beyond `to` counts as
  // `to`, since the job cannot go forward to it.
  void went_back(const Progress& to, std::optional<Duration> not_after);

 private:
  [[nodiscard]] bool memory_survives(const Machines& machines) const;

  std::optional<Checkpointing> how_;
  bool keep_all_;
  std::vector<Progress> stored_;
  // In memory: nodes of the plan with their lives when training began.
  std::vector<int> nodes_, lives_;
  std::int64_t copied_steps_ = 0;  // since training began
  Progress usable_, travelling_;
};

}  // namespace stagecraft
