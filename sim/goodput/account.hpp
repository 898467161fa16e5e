// Account of a job's time: every instant of the horizon is in exactly one bucket, in integer nanoseconds.
//
//   steps   count for nothing until they are whole. When committed ones are undone, their time moves from
//           productive and degraded to lost_work.
//   source  docs/resilience.md, section 1 (accounts).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

enum class Bucket : std::uint8_t {
  kProductive,     // committed steps at the ideal rate: samples / X*
  kLostWork,       // steps cut, undone, or unfinished at the horizon
  kCheckpoint,     // training blocked by checkpoints
  kDetect,         // from a failure until the job knows
  kReconfigure,    // processes, groups, rendezvous, planning, waiting to restart
  kStateTransfer,  // loading or copying state
  kDegraded,       // committed steps: their time beyond the ideal rate
  kIdle,           // stopped: too few nodes, waiting for a spare, a repair or an announced removal
};
inline constexpr std::size_t kBuckets = 8;
// The keys of `buckets_s` in `goodput --json`, in the order of Bucket.
inline constexpr std::array<std::string_view, kBuckets> kBucketNames = {
    "productive", "lost_work", "checkpoint", "detect", "reconfigure", "state_transfer", "degraded", "idle"};

// "lost work"
[[nodiscard]] inline std::string words_of(Bucket bucket) {
  std::string words(kBucketNames[static_cast<std::size_t>(bucket)]);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

// Cost of one cause (an index in History::causes) to the job.
struct CauseAccount {
  std::int64_t failures = 0;  // failures that stopped the job
  Duration lost_work{};       // steps cut and undone
  Duration down{};  // from the failure to the next training: detect, idle, reconfigure, state_transfer

  friend bool operator==(const CauseAccount&, const CauseAccount&) = default;
};

// One stretch of the job's life, for a drawing. Work that is undone later counts as training here.
enum class Phase : std::uint8_t { kTraining, kCheckpoint, kDetect, kReconfigure, kStateTransfer, kIdle };

// The bucket of a phase. For training: the bucket if its steps are committed.
[[nodiscard]] constexpr Bucket bucket_of(Phase phase) {
  switch (phase) {
    case Phase::kTraining:
      return Bucket::kProductive;
    case Phase::kCheckpoint:
      return Bucket::kCheckpoint;
    case Phase::kDetect:
      return Bucket::kDetect;
    case Phase::kReconfigure:
      return Bucket::kReconfigure;
    case Phase::kStateTransfer:
      return Bucket::kStateTransfer;
    case Phase::kIdle:
      break;
  }
  return Bucket::kIdle;
}

struct TimelineRow {
  Phase phase = Phase::kTraining;
  Duration start{};
  Duration end{};
  int nodes = 0;             // nodes that train, or that are up while the job does not train
  std::int64_t samples = 0;  // committed at `end`
  std::int32_t cause = -1;   // index in History::causes of the failure behind a stall, -1: none
  std::int32_t node = -1;    // the failed node

  friend bool operator==(const TimelineRow&, const TimelineRow&) = default;
};

struct Account {
  std::array<Duration, kBuckets> buckets{};
  Duration horizon{};
  std::int64_t samples = 0;       // committed at the horizon
  std::int64_t steps = 0;         // committed at the horizon
  std::int64_t undone_steps = 0;  // committed once, then undone
  // Times that finished steps were undone and only a checkpoint in storage, or the start, was left.
  std::int64_t went_back = 0;
  // Incidents that stopped the job, at once or at a step end. An incident during the detection of another
  // does not count, and several behind one stop count once.
  std::int64_t failures = 0;
  std::int64_t restarts = 0;  // trainings begun after a failure
  // Time from such failures to the next training, with the waits for nodes that the job then went on without:
  // mean time to recover = recovering / restarts.
  Duration recovering{};
  std::int64_t changes = 0;           // plans made at a step end, without a failure
  std::int64_t checkpoints = 0;       // checkpoints that became usable
  std::vector<CauseAccount> causes;   // one for each of History::causes
  std::vector<TimelineRow> timeline;  // filled when requested; from 0 to the horizon without gaps

  [[nodiscard]] Duration operator[](Bucket bucket) const { return buckets[static_cast<std::size_t>(bucket)]; }
  [[nodiscard]] Duration& operator[](Bucket bucket) { return buckets[static_cast<std::size_t>(bucket)]; }
  // The horizon, exactly.
  [[nodiscard]] Duration total() const { return std::accumulate(buckets.begin(), buckets.end(), Duration{}); }

  friend bool operator==(const Account&, const Account&) = default;
};

}  // namespace stagecraft
