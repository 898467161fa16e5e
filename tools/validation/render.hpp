// What `validate` prints: a set for people, as JSON, and all of them as the page docs/validation.md.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tools/validation/score.hpp"
#include "tools/validation/score_data.hpp"

namespace stagecraft {

// All sets together: what intervals promise.
struct PooledIntervals {
  Coverage now;       // with the profiles as they are
  Coverage left_out;  // each set by residuals fitted on the other sets of its profile
};
[[nodiscard]] PooledIntervals pool_intervals(const std::vector<SetScore>& scores);

// Errors of the sets on which constants of their profile were fitted, and of those that no fit has seen.
struct SomeErrors {
  std::size_t sets = 0;
  std::vector<double> rows = {};
};
struct ErrorsByFit {
  SomeErrors fitted, held_out;
};
[[nodiscard]] ErrorsByFit errors_by_fit(const std::vector<SetScore>& scores, const ScoreData& data);

struct RenderOptions {
  bool quiet = false;
  bool attribute = false;
};
void print_set_text(const SetScore& score, const ScoreData& data, RenderOptions options, std::ostream& out);
[[nodiscard]] std::string set_json(const SetScore& score, const ScoreData& data, RenderOptions options);
void print_pooled_text(const PooledIntervals& pooled, const ErrorsByFit& errors, std::ostream& out);
[[nodiscard]] std::string pooled_json(const PooledIntervals& pooled, const ErrorsByFit& errors);

// The page, without ablation and leave-out tables.
[[nodiscard]] std::string validation_page(const std::vector<SetScore>& scores, const ScoreData& data);

// The peers of one set: those of the rows, then those that are only printed.
[[nodiscard]] std::vector<PeerScore> peers_of(const SetScore& score, const ScoreData& data);
// Constants that were fitted on whole iterations: of its profile, and of its site.
struct FittedCount {
  int profile = 0, site = 0;
  bool on_this_set = false;  // some of them
};
[[nodiscard]] FittedCount fitted_constants_of(const SetScore& score, const ScoreData& data);

[[nodiscard]] std::string signed_percent(double share);  // "+1.2 %"
[[nodiscard]] std::string markdown_row(const std::vector<std::string>& cells);
[[nodiscard]] std::string markdown_head(const std::vector<std::string>& cells);  // with the line below it

}  // namespace stagecraft
