// Goodput of variants side by side: a table, and where one number varies a chart with the crossing points.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/report/goodput_report.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/study/compare.hpp"

namespace stagecraft {

struct GoodputOutcome {
  std::optional<GoodputReport> report = {};  // absent when it cannot run
  std::vector<Diagnostic> diagnostics = {};
  std::optional<Scenario> scenario = {};  // absent when it did not load
};

struct GoodputComparison {
  std::vector<std::string> paths;  // that vary
  std::vector<Variant> variants;
  std::vector<GoodputOutcome> outcomes;  // of each variant
};

// The name of each variant: its file where there are several, and the varied values.
[[nodiscard]] std::vector<std::string> names_of(const GoodputComparison& comparison);

[[nodiscard]] std::string render_text(const GoodputComparison& comparison);
// The chart alone, as an SVG document; empty unless the values of some path are all numbers.
[[nodiscard]] std::string render_svg(const GoodputComparison& comparison);

}  // namespace stagecraft
