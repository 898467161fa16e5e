// What scoring knows beside the sets (calibrate/validation/scoring/): other tools' figures, the constants
// that were fitted on whole iterations, and what an ablation switches off.
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

struct ScoreData {
  std::map<std::string, std::vector<PeerScore>> peers;           // by set
  std::map<std::string, std::vector<FittedConstant>> constants;  // by profile
  std::vector<Kin> kin;
  std::vector<Ablation> ablations;
  std::vector<std::string> not_ablated;  // effects that no value switches off, with the reason
};

// Mistakes go to `diagnostics`.
[[nodiscard]] ScoreData load_score_data(const DataDirectory& data, Diagnostics& diagnostics);

}  // namespace stagecraft
