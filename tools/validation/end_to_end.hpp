// The named constants of each profile fitted again on whole iterations of the sources that determined them,
// each left out once: from the constants in use, which have seen its rows, and from the middles of the
// plausible ranges, which have not.
#pragma once

#include <string>
#include <vector>

#include "sim/accuracy/end_to_end_fit.hpp"
#include "tools/validation/score.hpp"
#include "tools/validation/score_data.hpp"

namespace stagecraft {

// The constants of one profile, fitted.
struct ProfileFit {
  std::string profile;
  std::vector<FittedConstant> constants;
  std::vector<double> before;  // values of the constants as they are
  std::vector<std::string> sources;
  std::vector<std::size_t> rows;  // of each source
  EndToEndFit fit;
  std::vector<FitWithout> blind;  // as fit.sources, from starts that saw no row; empty of one source alone
};

// Of each profile that has constants in `data` and rows in `sets`.
[[nodiscard]] std::vector<ProfileFit> fit_constants(const std::vector<PublishedSet>& sets,
                                                    const ScoreData& data, Library& library);

[[nodiscard]] std::string end_to_end_text(const std::vector<ProfileFit>& fits);
[[nodiscard]] std::string end_to_end_page(const std::vector<ProfileFit>& fits);
[[nodiscard]] std::string end_to_end_json(const ProfileFit& fit);

}  // namespace stagecraft
