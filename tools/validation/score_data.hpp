// What scoring knows beside the sets (calibrate/validation/scoring/): other tools' figures, the constants
// that were fitted on whole iterations, what an ablation switches off, kinds of jobs, and sets with a bias. And what that says
// of a set's score.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "tools/validation/score.hpp"

namespace stagecraft {

struct FittedConstant {
  std::string name;  // of sim/accuracy/constants.hpp
  double low = 0, high = 0;
  bool site = false;              // of one fabric; no part of the profile
  std::optional<double> without;  // what a fabric has of which nothing is known; else the middle of the range
  std::vector<std::string> fitted_on;

  [[nodiscard]] bool is_fitted_on(std::string_view set) const {
    return std::ranges::find(fitted_on, set) != fitted_on.end();
  }
};

// One effect taken away, by changing values alone.
struct Ablation {
  std::string effect;
  std::vector<std::string> set;             // keys of the scenario, as of --set
  std::map<std::string, double> constants;  // of sim/accuracy/constants.hpp
  std::string note;
};

// A profile without rows of its own takes another's residuals, `wider` times.
struct Kin {
  std::string profile, of;
  double wider = 1;
};

// Sets of jobs that are alike: in software, hardware and models.
struct JobKind {
  std::string title;
  std::vector<std::string> sets;

  [[nodiscard]] bool has(std::string_view set) const { return std::ranges::find(sets, set) != sets.end(); }
};

struct ScoreData {
  std::map<std::string, std::vector<PeerScore>> peers;           // by set
  std::map<std::string, std::vector<FittedConstant>> constants;  // by profile
  std::vector<Kin> kin;
  std::vector<Ablation> ablations;
  std::vector<std::string> not_ablated;  // effects that no value switches off, with the reason
  std::vector<JobKind> kinds;            // in the order of their table; no set is of two
  std::vector<std::string> biased;       // sets whose bias a report tells: intervals are not fitted on them

  [[nodiscard]] bool is_biased(std::string_view set) const {
    return std::ranges::find(biased, set) != biased.end();
  }
};

// The overrides of the ablation "names of what ran", which make a job one that names nothing; empty without it.
[[nodiscard]] std::vector<std::string> overrides_that_unname(const ScoreData& data);

// Mistakes go to `diagnostics`.
[[nodiscard]] ScoreData load_score_data(const DataDirectory& data, Diagnostics& diagnostics);

// The peers of one set: those of the rows, then those that are only printed.
[[nodiscard]] std::vector<PeerScore> peers_of(const SetScore& score, const ScoreData& data);

// Constants that were fitted on whole iterations: of its profile, and of its site. A profile for which none are
// listed has those of its base, which nobody names here: then sets on which any were fitted are not held out.
struct FittedCount {
  int profile = 0, site = 0;
  bool of_its_base = false;  // not counted
  bool on_this_set = false;  // some of them
};
[[nodiscard]] FittedCount fitted_constants_of(const SetScore& score, const ScoreData& data);

}  // namespace stagecraft
