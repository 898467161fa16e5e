// Predictions beside measurements: rows, and what a set of them says.
//
//   error   predicted / measured - 1, in seconds per iteration; throughput is inverted first.
//   ranks   of GPU-seconds per token, within one model on one number of GPUs (and within one model): whoever
//           chooses a layout needs the order, and across models the order is easy.
//   ratios  of two rows that differ in nothing but how the backward is scheduled, or in nothing but what is
//           recomputed: what both have wrong cancels.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/profile/residuals.hpp"
#include "sim/accuracy/attribution.hpp"
#include "sim/accuracy/null_model.hpp"
#include "sim/accuracy/residual_fit.hpp"
#include "sim/accuracy/statistics.hpp"
#include "sim/scenario/library.hpp"
#include "tools/validation/published.hpp"

namespace stagecraft {

struct ScoredRow {
  std::string id, model;
  int gpus = 0;
  std::map<std::string, std::string> keys;  // of the row, as text
  double predicted = 0, measured = 0;       // seconds per iteration
  std::array<double, 2> interval{};         // 90 %, seconds
  FamilyShares shares{};                    // of the predicted time
  WhatRan ran = WhatRan::kNamed;            // as the scenario says
  double tokens = 0;                        // per iteration
  NullRow null;
  std::map<std::string, double> peers;  // other tools' seconds
  std::vector<double> causes;           // shares by cause_names(), empty unless asked for

  [[nodiscard]] double error() const { return predicted / measured - 1; }
  [[nodiscard]] bool covered() const { return interval[0] <= measured && measured <= interval[1]; }
  [[nodiscard]] double relative_width() const { return (interval[1] - interval[0]) / predicted; }
  [[nodiscard]] double gpu_seconds_per_token(double seconds) const { return seconds * gpus / tokens; }
};

struct SkippedRow {
  std::string id, reason;
};

struct RankCorrelation {
  std::string model;
  int gpus = 0;  // 0: any number
  std::size_t rows = 0;
  double correlation = 0;
};

struct RatioScore {
  std::string_view kind;  // "schedule", "recompute"
  std::string first, second;
  double predicted = 0, measured = 0;  // second over first
  [[nodiscard]] double error() const { return predicted / measured - 1; }
};

// What another tool reaches on a set: computed from rows that print its seconds, or as its authors print it.
struct PeerScore {
  std::string tool;
  std::size_t rows = 0;  // 0: as printed, on the whole of its set
  double mean_absolute = 0;
  std::string remark;
};

struct SetScore {
  std::string name, title, origin, licence;
  std::vector<std::string> assumed, known;    // as in PublishedSet
  std::string profile;                        // of its rows
  std::vector<std::string> profile_hashes{};  // of each scored row
  std::vector<ScoredRow> rows;
  std::vector<SkippedRow> skipped;

  [[nodiscard]] std::vector<double> errors() const;
  [[nodiscard]] ErrorSummary summary() const { return summarise(errors()); }
  [[nodiscard]] std::vector<RankCorrelation> ranks(bool by_gpus) const;  // groups of three rows and more
  [[nodiscard]] std::vector<RatioScore> ratios() const;
  [[nodiscard]] NullModel null_model(bool with_bubble) const;
  [[nodiscard]] std::vector<PeerScore> peers() const;  // from the rows
  [[nodiscard]] double coverage() const;               // share of rows inside their interval
  [[nodiscard]] double median_width() const;
};

// Mean of the groups, each counting as its rows; nullopt of none.
[[nodiscard]] std::optional<double> mean_rank(const std::vector<RankCorrelation>& groups);

// A row ready to be simulated as often as anybody likes.
struct LoadedRow {
  const PublishedRow* row = nullptr;
  std::optional<Scenario> scenario;
  std::string refused;  // why there is no scenario
};
// `overrides`: as of --set, on each row.
[[nodiscard]] std::vector<LoadedRow> load_rows(const PublishedSet& set, Library& library,
                                               const std::vector<std::string>& overrides = {});
struct ScoreOptions {
  // Of each scenario before it is simulated: what an ablation tries.
  std::function<void(Scenario&)> change = {};
  bool causes = false;  // fill in ScoredRow::causes
};
[[nodiscard]] SetScore score_set(const PublishedSet& set, const std::vector<LoadedRow>& rows,
                                 const ScoreOptions& options = {});

// The families that errors are attributed to: kernels in place of compute as a whole.
[[nodiscard]] std::vector<std::string_view> cause_names();
[[nodiscard]] Attribution attribute_errors(const SetScore& score);
[[nodiscard]] std::vector<ResidualRow> residual_rows(const SetScore& score, int source);

}  // namespace stagecraft
