// Policies against each other over a rate of failures: which is ahead where, as text and as a picture.
//
//   rows       one per policy and rate, in any order; a policy that cannot run at a rate has no row there
//   crossings  between two neighbouring rates that both policies have, where the sign of their difference
//              changes; found on straight lines over the logarithm of the rate (over the rate, where one is
//              0)
#pragma once

#include <span>
#include <string>
#include <vector>

namespace stagecraft {

struct GoodputRow {
  double rate = 0;  // failures a node-day, or whatever was varied
  std::string policy;
  double samples_per_s = 0;

  friend bool operator==(const GoodputRow&, const GoodputRow&) = default;
};

// Below `rate` `before` is ahead of `after`, above it the other way round.
struct GoodputCrossing {
  double rate = 0;
  std::string before, after;
  double samples_per_s = 0;
  bool leads = false;  // no third policy is ahead of the two there

  friend bool operator==(const GoodputCrossing&, const GoodputCrossing&) = default;
};

// The crossings of the policies' lines, by rate, then by the names.
[[nodiscard]] std::vector<GoodputCrossing> crossings_of(std::span<const GoodputRow> rows);

struct GoodputChartOptions {
  std::string title;
  std::string rate_name = "failures per node-day";
  double ideal_samples_per_s = 0;  // 1 on the vertical axis; 0: the largest of the rows
  int width = 64, height = 16;     // of the plot in a terminal, in cells
};

// A plot in characters, a letter for each policy, with a legend and the crossings that matter.
[[nodiscard]] std::string chart_text(std::span<const GoodputRow> rows, const GoodputChartOptions& options);
// Draws the same plot as an SVG document.
[[nodiscard]] std::string chart_svg(std::span<const GoodputRow> rows, const GoodputChartOptions& options);

}  // namespace stagecraft
