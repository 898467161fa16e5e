// What `validate` prints: a set for people, as JSON, and all of them as the page docs/validation.md.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tools/validation/pooled_scores.hpp"
#include "tools/validation/score.hpp"
#include "tools/validation/score_data.hpp"

namespace stagecraft {

struct RenderOptions {
  bool quiet = false;
  bool attribute = false;
};
void print_set_text(const SetScore& score, const ScoreData& data, RenderOptions options, std::ostream& out);
[[nodiscard]] std::string set_json(const SetScore& score, const ScoreData& data, RenderOptions options);
// A line for each set, in place of all that print_set_text says of it.
void print_sets_text(const std::vector<SetScore>& scores, const ScoreData& data, std::ostream& out);
void print_pooled_text(const PooledIntervals& pooled, const ErrorsByFit& errors, std::ostream& out);
[[nodiscard]] std::string pooled_json(const PooledIntervals& pooled, const ErrorsByFit& errors,
                                      const std::vector<KindScore>& kinds);

// The page, without ablation and leave-out tables.
[[nodiscard]] std::string validation_page(const std::vector<SetScore>& scores, const ScoreData& data);

}  // namespace stagecraft
