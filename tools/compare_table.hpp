// Variants side by side, as a table for people and as lines of JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/compare.hpp"

namespace stagecraft {

struct Comparison {
  std::vector<std::string> paths;  // that vary
  std::vector<Variant> variants;
  std::vector<Outcome> outcomes;  // of each variant

  // Iteration time over that of the first; nothing where either cannot run or the first takes no time.
  [[nodiscard]] std::optional<double> relative_time(std::size_t variant) const;
};

// A row for each variant and what is best; those that cannot run are rows, with the reason below.
[[nodiscard]] std::string render_text(const Comparison& comparison);

// One document, without its line end: that of `run --json`, or of its errors, with the scenario, the varied
// values and the time relative to the first variant (null where there is none).
[[nodiscard]] std::string render_json(const Comparison& comparison, std::size_t variant);

}  // namespace stagecraft
