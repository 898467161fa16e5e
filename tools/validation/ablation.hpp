// What each modelled effect is worth: the mean error of every set with one effect taken away.
#pragma once

#include <string>
#include <vector>

#include "sim/accuracy/statistics.hpp"
#include "tools/validation/score.hpp"
#include "tools/validation/score_data.hpp"

namespace stagecraft {

struct AblationRow {
  std::string effect, note;
  std::vector<ErrorSummary> sets;  // in the order of the sets; rows that cannot run so are left out
};

// The first row is of nothing taken away. Sets without a scored row are empty.
[[nodiscard]] std::vector<AblationRow> ablate(const std::vector<PublishedSet>& sets, const ScoreData& data,
                                              Library& library);

// A cell in bold lost more than half a point; "(n rows)" where not all of a set's rows can run so.
[[nodiscard]] std::string ablation_page(const std::vector<AblationRow>& rows,
                                        const std::vector<PublishedSet>& sets, const ScoreData& data);

}  // namespace stagecraft
