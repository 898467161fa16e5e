#include "tools/validation/pooled_scores.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "calibrate/samples/statistics.hpp"

namespace stagecraft {
namespace {

// Counts the rows of a set where they belong.
void add_errors(const SetScore& score, const ScoreData& data, ErrorsByFit& errors) {
  if (score.rows.empty()) return;
  PooledErrors& pooled = fitted_constants_of(score, data).on_this_set ? errors.fitted : errors.held_out;
  for (const ScoredRow& row : score.rows) {
    pooled.rows.push_back(row.error());
    pooled.covered += row.covered() ? 1 : 0;
  }
  ++pooled.sets;
}

}  // namespace

double PooledErrors::coverage() const {
  return rows.empty() ? 0 : static_cast<double>(covered) / static_cast<double>(rows.size());
}

ErrorsByFit errors_by_fit(const std::vector<SetScore>& scores, const ScoreData& data) {
  ErrorsByFit errors;
  for (const SetScore& score : scores) add_errors(score, data, errors);
  return errors;
}

std::vector<KindScore> scores_by_kind(const std::vector<SetScore>& scores, const ScoreData& data) {
  const auto has_rows = [](const SetScore& score) { return !score.rows.empty(); };
  if (std::ranges::count_if(scores, has_rows) < 2) return {};
  std::vector<KindScore> out;
  for (const JobKind& kind : data.kinds) {
    KindScore of_kind{.title = kind.title, .errors = {}};
    for (const SetScore& score : scores)
      if (kind.has(score.name)) add_errors(score, data, of_kind.errors);
    if (of_kind.rows() > 0) out.push_back(std::move(of_kind));
  }
  return out;
}

PooledIntervals pool_intervals(const std::vector<SetScore>& scores) {
  std::vector<double> widths;
  double inside = 0, left_inside = 0, rows = 0;
  std::map<std::string, std::vector<ResidualRow>> by_profile;
  int source = 0;
  for (const SetScore& score : scores) {
    for (const ScoredRow& row : score.rows) {
      inside += row.covered() ? 1 : 0;
      widths.push_back(row.relative_width());
      ++rows;
    }
    for (const ResidualRow& row : residual_rows(score, source)) by_profile[score.profile].push_back(row);
    ++source;
  }
  if (rows == 0) return {};
  double left_width = 0;
  for (const auto& [profile, of_profile] : by_profile) {
    const Coverage left = coverage_left_out(of_profile, assumed_residuals());
    const double weight = static_cast<double>(of_profile.size()) / rows;
    left_inside += left.share * weight;
    left_width += left.median_width * weight;
  }
  return {.now = {.share = inside / rows, .median_width = median(widths)},
          .left_out = {.share = left_inside, .median_width = left_width}};
}

}  // namespace stagecraft
