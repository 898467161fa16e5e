// What each modelled effect is worth: the mean error of every set with one effect taken away.
#pragma once

#include <string>
#include <vector>

#include "tools/validation/score.hpp"
#include "tools/validation/score_data.hpp"

namespace stagecraft {

// Mean absolute errors of a set with and without an effect, over the rows that can run without it.
struct SetLoss {
  std::string set;
  std::size_t rows = 0;
  double with = 0, without = 0;

  [[nodiscard]] double lost() const { return without - with; }
};

struct AblationRow {
  std::string effect, note;
  std::vector<SetLoss> sets;  // those of which a row can run without the effect, in their order
};

[[nodiscard]] std::vector<AblationRow> ablate(const std::vector<PublishedSet>& sets, const ScoreData& data,
                                              Library& library);

// A table: the error over all rows with and without each effect, how many sets lose more than half a point, and
// those that lose most.
[[nodiscard]] std::string ablation_page(const std::vector<AblationRow>& rows, const ScoreData& data);

}  // namespace stagecraft
