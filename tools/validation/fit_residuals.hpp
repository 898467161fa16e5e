// The section `residuals:` of every profile, from the rows that were scored with it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tools/validation/score.hpp"
#include "tools/validation/score_data.hpp"

namespace stagecraft {

struct ProfileResiduals {
  std::string profile;
  std::size_t rows = 0;  // of its own; 0: carried over from its kin
  std::string of;        // that kin
  ResidualModel residuals;
  Coverage now, left_out;
};

// What all profiles share: the spread of jobs that name nothing of what ran.
struct UnnamedSpread {
  std::size_t rows = 0;
  Coverage named, unnamed;  // of these rows with the intervals of jobs that name it, and with their own
  Sourced<double> value;
};

struct ResidualFit {
  std::vector<ProfileResiduals> profiles;
  std::array<UnnamedSpread, kUnnamedNames.size()> spreads;
};

// First a fit on the rows of all profiles, which is the prior of each; then each on its own rows. A profile
// without rows has those of its kin, wider (calibrate/validation/scoring/kin.yaml). `unnamed`: the same sets
// without the names of what ran.
[[nodiscard]] ResidualFit fit_residuals(const std::vector<SetScore>& scores,
                                        const std::vector<SetScore>& unnamed, const ScoreData& data);

// The text of a profile's file with its residuals in place of those that it had.
[[nodiscard]] std::string with_residuals(const std::string& profile_text, const ResidualModel& residuals);

[[nodiscard]] std::string residuals_text(const ResidualFit& fit);
// One document ("stagecraft.residuals/1"): shares, each with its provenance.
[[nodiscard]] std::string residuals_json(const ProfileResiduals& profile);

}  // namespace stagecraft
