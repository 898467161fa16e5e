#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/wrapped_text.hpp"
#include "tools/validation/render.hpp"
#include "tools/validation/render_parts.hpp"
#include "tools/validation/row_table.hpp"

namespace stagecraft {
namespace {

void print_sentence(const std::string& text, std::ostream& out) {
  out << wrapped_text("  ", "    ", text);
}

// Four digits, and all before the point: "0.132", "24.49", "147.1", "1017".
std::string seconds(double time) {
  return fmt::format("{:.{}f}", time, time < 10 ? 3 : time < 100 ? 2 : time < 1'000 ? 1 : 0);
}

void print_rows(const SetScore& score, std::ostream& out) {
  RowTable table{.longest_name = 28,
                 .aligns = {Align::kRight, Align::kRight, Align::kRight, Align::kRight},
                 .head = {"predicted", "measured", "error", "90 %, in s"}};
  for (const ScoredRow& row : score.rows)
    table.add(row.id, {seconds(row.predicted), seconds(row.measured),
                       signed_percent(row.error()) + (row.covered() ? "  " : " *"),
                       fmt::format("{} to {}", seconds(row.interval[0]), seconds(row.interval[1]))});
  out << table.str();
  for (const SkippedRow& row : score.skipped)
    print_sentence(fmt::format("{} skipped: {}", row.id, row.reason), out);
}

std::string peers_text(const SetScore& score, const ScoreData& data) {
  std::string text;
  for (const PeerScore& peer : peers_of(score, data))
    text += fmt::format(", {} {}{}", peer.tool, percent(peer.mean_absolute),
                        peer.rows > 0 ? " on " + counted(static_cast<std::int64_t>(peer.rows), "row") : "");
  return text;
}

void print_comparison(const SetScore& score, const ScoreData& data, std::ostream& out) {
  const NullModel null = score.null_model(false), bubble = score.null_model(true);
  if (null.rate > 0)
    print_sentence(fmt::format("null model: all FLOPs at {:.0f} TFLOP/s {}, with the bubble {}{}",
                               null.rate / 1e12, percent(summarise(null.errors).mean_absolute),
                               percent(summarise(bubble.errors).mean_absolute), peers_text(score, data)),
                   out);
  const std::vector<RankCorrelation> by_gpus = score.ranks(true), by_model = score.ranks(false);
  if (const auto rank = mean_rank(by_model))
    out << fmt::format(
        "  rank correlation within a model {:.2f}{}\n", *rank,
        by_gpus.empty() ? "" : fmt::format(", and number of GPUs {:.2f}", *mean_rank(by_gpus)));
  out << fmt::format("  90 % intervals: {} of the rows inside (* outside), median width {}\n",
                     percent(score.coverage(), 0), percent(score.median_width()));
  const FittedCount fitted = fitted_constants_of(score, data);
  print_sentence(
      fmt::format("profile {}: {} fitted on whole iterations{}, {}", score.profile,
                  fitted.of_its_base ? "constants of its base were" : counted(fitted.profile, "constant"),
                  fitted.site > 0 ? fmt::format(", {} more of this site", fitted.site) : "",
                  fitted.on_this_set ? "some on these rows" : "none on these rows (held out)"),
      out);
}

void print_ratios(const SetScore& score, std::ostream& out) {
  for (const RatioScore& ratio : score.ratios())
    print_sentence(fmt::format("ratio by {}: {} over {}: {:.3f} predicted, {:.3f} measured, {}", ratio.kind,
                               ratio.second, ratio.first, ratio.predicted, ratio.measured,
                               signed_percent(ratio.error())),
                   out);
}

void print_attribution(const SetScore& score, std::ostream& out) {
  const Attribution attribution = attribute_errors(score);
  if (attribution.families.empty()) {
    out << "  too few rows to say where errors come from\n";
    return;
  }
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.row({"family", "of the time", "takes longer by", "standard error", "of the error"});
  const std::vector<std::string_view> names = cause_names();
  std::vector<std::size_t> order(names.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::size_t i) { return attribution.families[i].contribution; });
  for (const std::size_t i : order) {
    const FamilyBlame& family = attribution.families[i];
    if (family.mean_share < 5e-4) continue;
    table.row({std::string(names[i]), percent(family.mean_share), signed_percent(family.delta),
               percent(family.standard_error), percent(family.contribution)});
  }
  out << table.str(2)
      << fmt::format("  explained: {} of the squared errors; {} is left a row\n",
                     percent(attribution.explained, 0), percent(attribution.left));
}

// Rows, MAPE, bias, median, worst, and whether constants were fitted on them.
std::vector<std::string> set_figures(const SetScore& score, const ScoreData& data) {
  if (score.rows.empty()) return {"0", "–", "–", "–", "–", ""};
  const ErrorSummary summary = score.summary();
  return {std::to_string(summary.rows),
          percent(summary.mean_absolute),
          signed_percent(summary.bias),
          percent(summary.median_absolute),
          signed_percent(score.rows[summary.worst].error()),
          fitted_constants_of(score, data).on_this_set ? "fitted" : "held out"};
}

}  // namespace

void print_set_text(const SetScore& score, const ScoreData& data, RenderOptions options, std::ostream& out) {
  out << wrapped_text(score.name + "   ", "  ", score.title);
  if (!options.quiet && !score.origin.empty())
    out << wrapped_text("  ", "  ", score.origin + (score.licence.empty() ? "" : ", " + score.licence));
  if (!options.quiet) print_rows(score, out);
  if (score.rows.empty()) {
    out << "  no row could be scored\n\n";
    return;
  }
  const ErrorSummary summary = score.summary();
  const ScoredRow& worst = score.rows[summary.worst];
  print_sentence(fmt::format("{}: {}, worst {} ({})", counted(static_cast<std::int64_t>(summary.rows), "row"),
                             errors_text(summary), worst.id, signed_percent(worst.error())),
                 out);
  print_comparison(score, data, out);
  print_ratios(score, out);
  if (options.attribute) print_attribution(score, out);
  if (!options.quiet && !score.assumed.empty())
    out << wrapped_text("  the source does not print: ", "    ", join(score.assumed, ", "));
  if (!options.quiet && !score.known.empty())
    out << wrapped_text("  known beside the file: ", "    ", join(score.known, ", "));
  out << '\n';
}

void print_sets_text(const std::vector<SetScore>& scores, const ScoreData& data, std::ostream& out) {
  if (scores.empty()) return;
  RowTable table{
      .longest_name = 28,
      .aligns = {Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kLeft},
      .head = {"rows", "MAPE", "bias", "median", "worst", ""},
      .what = "set"};
  for (const SetScore& score : scores) table.add(score.name, set_figures(score, data));
  out << table.str() << '\n';
}

void print_pooled_text(const PooledIntervals& pooled, const ErrorsByFit& errors, std::ostream& out) {
  for (const auto& [name, some] :
       {std::pair{"constants fitted on them", &errors.fitted}, {"held out", &errors.held_out}}) {
    if (some->rows.empty()) continue;
    out << wrapped_text(fmt::format("{}: ", name), "  ",
                        fmt::format("{}, {}: {}", counted(static_cast<std::int64_t>(some->sets), "set"),
                                    counted(static_cast<std::int64_t>(some->rows.size()), "row"),
                                    errors_text(summarise(some->rows))));
  }
  out << wrapped_text("90 % intervals of all rows: ", "  ",
                      fmt::format("{} inside, median width {}; by residuals of the other sets {}, {}",
                                  percent(pooled.now.share), percent(pooled.now.median_width),
                                  percent(pooled.left_out.share), percent(pooled.left_out.median_width)));
}

}  // namespace stagecraft
