// Throughput of a job under failures: the answer of `goodput`, as plain values.
//
//   means     over the repeats; intervals are 95 % (Student's t on the repeats' values), absent of one repeat
//   buckets   seconds by what the time went to; they add up to the horizon
//   ideal     the best throughput that any number of nodes up to all of them gives without failures, and
//             without what a policy adds to each step
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sim/goodput/account.hpp"

namespace stagecraft {

// A mean with its 95 % interval; absent where there is one repeat.
struct MeanInterval {
  double mean = 0;
  std::optional<std::array<double, 2>> ci95 = {};

  friend bool operator==(const MeanInterval&, const MeanInterval&) = default;
};

// Effect of one cause of failures on a repeat, on average.
struct GoodputCause {
  std::string cause;
  double failures = 0;
  double stopped_s = 0;  // time without training that it began: from the failure to the first new step
  double undone_s = 0;   // lost time of finished and unfinished steps

  friend bool operator==(const GoodputCause&, const GoodputCause&) = default;
};

// A shape of the job, and the time of its iteration.
struct GoodputShape {
  int nodes = 0;
  std::string text;  // "dp 15 · pp 8"
  Duration iteration{};
  std::int64_t samples = 0;  // samples per iteration

  [[nodiscard]] double samples_per_s() const {
    return iteration > Duration::zero() ? static_cast<double>(samples) / to_seconds(iteration) : 0;
  }
  friend bool operator==(const GoodputShape&, const GoodputShape&) = default;
};

// Blocking and background costs of a checkpoint, and when one is written.
struct GoodputCheckpoint {
  std::string mode;  // "none", "sync", "async", "in-memory"
  Duration interval{};
  std::int64_t steps = 0;  // steps per interval
  bool never = false;      // nothing fails, and no checkpoint pays: there is no interval
  Duration block{}, persist{}, load{};
  Bytes bytes{};  // size for the whole job, given or of its state, whatever times were given; 0: unknown

  friend bool operator==(const GoodputCheckpoint&, const GoodputCheckpoint&) = default;
};

// Advice from the closed forms.
struct GoodputAdvice {
  // The exactly optimal one, in whole steps; absent without checkpoints.
  std::optional<Duration> interval = {};
  std::int64_t interval_steps = 0;
  // 99th percentile of the nodes that are down at once; absent where the job has as many
  std::optional<int> spares = {};
  std::string interval_why;
  std::string spares_how;  // "keep 2 spares"; of a policy without spares, which policies have them
  std::string spares_why;

  friend bool operator==(const GoodputAdvice&, const GoodputAdvice&) = default;
};

// An input that moves the answer: by how much if it were half or twice as large.
struct GoodputInput {
  std::string name;            // "failures.process.rate_per_node_day"
  std::string value;           // "0.0065"
  std::string source;          // "the scenario", or where a default is from
  double half = 0, twice = 0;  // relative change of samples/s: -0.02 is 2 % less

  friend bool operator==(const GoodputInput&, const GoodputInput&) = default;
};

// A line of the job's diary in one repeat.
struct GoodputEvent {
  Duration time{};
  std::string what;

  friend bool operator==(const GoodputEvent&, const GoodputEvent&) = default;
};

struct GoodputReport {
  std::string scenario;  // the path as given
  std::string name;
  std::string headline;                                     // "tp 8 · pp 8 · dp 16 · 1f1b"
  std::vector<std::pair<std::string, std::string>> varied;  // paths and values, where variants are compared
  std::string policy;                                       // "checkpoint-restart"
  std::string rules;                                        // "corrected", "published"
  int gpus = 0, nodes = 0, spares = 0;
  bool replaces = false;  // each node that it loses, at once and without end
  Duration horizon{};
  int repeats = 0;
  std::uint64_t seed = 0;

  double ideal_samples_per_s = 0;
  std::string ideal_lacks;  // "redundant forwards", which each step has besides; empty: nothing
  MeanInterval samples_per_s, fraction_of_ideal, ettr;
  double failures = 0, restarts = 0;         // per repeat
  double mean_time_to_recover_s = 0;         // 0 without failures
  double mean_time_between_failures_s = 0;   // 0 without failures
  std::array<double, kBuckets> buckets_s{};  // by Bucket
  std::vector<GoodputCause> causes;          // most time first

  Duration iteration_time{};         // of the whole job
  std::vector<GoodputShape> shapes;  // most nodes first
  GoodputCheckpoint checkpoint;
  GoodputAdvice advice;
  std::vector<GoodputInput> inputs;    // the one that moves the answer most first
  std::vector<GoodputEvent> timeline;  // of the first repeat, when asked for
  std::string plan;                    // the plan as text, when requested
  std::vector<std::string> notes;      // assumptions, and keys without effect

  friend bool operator==(const GoodputReport&, const GoodputReport&) = default;
};

struct GoodputJsonOptions {
  bool inputs = true;  // else without this key, where no input was tried
};
// The document `stagecraft.goodput/1`, on one line.
[[nodiscard]] std::string render_json(const GoodputReport& report, const GoodputJsonOptions& options = {});

struct GoodputTextOptions {
  bool verbose = false;  // all causes and shapes
  bool quiet = false;    // no notes
};
// The report for people, 80 columns.
[[nodiscard]] std::string render_text(const GoodputReport& report, const GoodputTextOptions& options = {});

}  // namespace stagecraft
