// What several scored sets say together: their errors, by whether a fit has seen them and by kind of job, and what
// their intervals promise.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/accuracy/residual_fit.hpp"
#include "tools/validation/score.hpp"
#include "tools/validation/score_data.hpp"

namespace stagecraft {

// The errors of all rows of some sets.
struct PooledErrors {
  std::size_t sets = 0;
  std::size_t covered = 0;  // rows inside their interval
  std::vector<double> rows = {};

  [[nodiscard]] double coverage() const;  // share of rows inside their interval; 0 of no rows
};

// Of the sets on which constants of their profile were fitted, and of those that no fit has seen.
struct ErrorsByFit {
  PooledErrors fitted, held_out;
};
[[nodiscard]] ErrorsByFit errors_by_fit(const std::vector<SetScore>& scores, const ScoreData& data);

// The same of one kind of jobs.
struct KindScore {
  std::string title;
  ErrorsByFit errors;

  [[nodiscard]] std::size_t sets() const { return errors.fitted.sets + errors.held_out.sets; }
  [[nodiscard]] std::size_t rows() const { return errors.fitted.rows.size() + errors.held_out.rows.size(); }
};
// In the order of the kinds, without those of which no row is scored. A set that is of no kind is in none, and a
// set alone in no table: its own figures say the same.
[[nodiscard]] std::vector<KindScore> scores_by_kind(const std::vector<SetScore>& scores,
                                                    const ScoreData& data);

struct PooledIntervals {
  Coverage now;       // with the profiles as they are
  Coverage left_out;  // each set by residuals fitted on the other sets of its profile
};
[[nodiscard]] PooledIntervals pool_intervals(const std::vector<SetScore>& scores);

}  // namespace stagecraft
