#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "tools/validation/kind_table.hpp"
#include "tools/validation/render.hpp"
#include "tools/validation/render_parts.hpp"

namespace stagecraft {
namespace {

// The source prints `|` in no name; a cell with one would break its row.
std::string cell(std::string text) {
  std::ranges::replace(text, '|', '/');
  return text;
}

std::string rank_cell(const std::vector<RankCorrelation>& groups) {
  const auto rank = mean_rank(groups);
  return rank ? fmt::format("{:.2f}", *rank) : "–";
}

std::string peer_cell(const SetScore& score, const ScoreData& data) {
  std::string text;
  for (const PeerScore& peer : peers_of(score, data))
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", peer.tool, percent(peer.mean_absolute));
  return text.empty() ? "–" : text;
}

std::string overview(const std::vector<SetScore>& scores, const ScoreData& data) {
  std::string out = markdown_head({"set", "rows", "MAPE", "bias", "median", "worst", "rank", "null model",
                                   "+ bubble", "others", "inside 90 %", "width", "constants"});
  for (const SetScore& score : scores) {
    if (score.rows.empty()) continue;
    const ErrorSummary summary = score.summary();
    out += markdown_row({fmt::format("[{0}](#{0})", score.name), std::to_string(summary.rows),
                         "**" + percent(summary.mean_absolute) + "**", signed_percent(summary.bias),
                         percent(summary.median_absolute), signed_percent(score.rows[summary.worst].error()),
                         rank_cell(score.ranks(true)),
                         percent(summarise(score.null_model(false).errors).mean_absolute),
                         percent(summarise(score.null_model(true).errors).mean_absolute),
                         peer_cell(score, data), percent(score.coverage(), 0), percent(score.median_width()),
                         fitted_constants_of(score, data).on_this_set ? "fitted" : "held out"});
  }
  return out;
}

std::string kinds_section(const std::vector<KindScore>& kinds) {
  if (kinds.empty()) return {};
  return "\n## Kinds of jobs\n\n"
         "Of the held-out rows of each kind: mean error, bias, median error, and the share inside their "
         "interval. Then the rows of its\nother sets, on which constants were fitted. Each set is of one "
         "kind; one with dense models and mixtures of experts is what most\nof its rows are.\n\n" +
         kind_table_markdown(kinds);
}

std::string ratio_table(const std::vector<SetScore>& scores) {
  std::string rows;
  for (const SetScore& score : scores) {
    for (const RatioScore& ratio : score.ratios())
      rows += markdown_row({std::string(ratio.kind), ratio.second, ratio.first,
                            fmt::format("{:.3f}", ratio.predicted), fmt::format("{:.3f}", ratio.measured),
                            signed_percent(ratio.error())});
  }
  return markdown_head({"differ in", "row", "over row", "predicted", "measured", "error"}) + rows;
}

std::string constants_table(const ScoreData& data) {
  std::string out = markdown_head({"profile", "constants fitted on whole iterations", "of sites"});
  for (const auto& [profile, constants] : data.constants) {
    std::vector<std::string> own, sites;
    for (const FittedConstant& constant : constants) (constant.site ? sites : own).push_back(constant.name);
    out += markdown_row({profile, fmt::format("{}: {}", own.size(), join(own, ", ")),
                         sites.empty() ? "–" : join(sites, ", ")});
  }
  return out;
}

std::string peers_table(const std::vector<SetScore>& scores, const ScoreData& data) {
  std::string out = markdown_head({"set", "tool", "MAPE", "rows", "remark"});
  for (const SetScore& score : scores) {
    for (const PeerScore& peer : peers_of(score, data))
      out += markdown_row({score.name, peer.tool, percent(peer.mean_absolute),
                           peer.rows > 0 ? std::to_string(peer.rows) : "as published", cell(peer.remark)});
  }
  return out;
}

std::string attribution_table(const std::vector<SetScore>& scores) {
  std::vector<std::string> head = {"set"};
  for (const std::string_view name : cause_names()) head.emplace_back(name);
  head.insert(head.end(), {"explained", "left"});
  std::string out = markdown_head(head);
  for (const SetScore& score : scores) {
    const Attribution attribution = attribute_errors(score);
    if (attribution.families.empty()) continue;
    std::vector<std::string> cells = {score.name};
    for (const FamilyBlame& family : attribution.families)
      cells.push_back(family.mean_share < 5e-4
                          ? "–"
                          : fmt::format("{:+.0f} ± {:.0f}", 100 * family.delta, 100 * family.standard_error));
    cells.push_back(percent(attribution.explained, 0));
    cells.push_back(percent(attribution.left));
    out += markdown_row(cells);
  }
  return out;
}

std::string set_section(const SetScore& score) {
  std::string out =
      fmt::format("\n### {}\n\n{}. {}{}. Profile {}.\n\n", score.name, score.title, score.origin,
                  score.licence.empty() ? "" : ", " + score.licence, score.profile);
  out += markdown_head({"row", "predicted, s", "measured, s", "error", "90 %, s"});
  for (const ScoredRow& row : score.rows)
    out += markdown_row({row.id, fmt::format("{:.3f}", row.predicted), fmt::format("{:.3f}", row.measured),
                         signed_percent(row.error()),
                         fmt::format("{:.3f} to {:.3f}{}", row.interval[0], row.interval[1],
                                     row.covered() ? "" : " (outside)")});
  for (const SkippedRow& row : score.skipped)
    out += fmt::format("\nSkipped: {}: {}\n", row.id, cell(row.reason));
  const auto add = [&](const char* what, const std::vector<std::string>& keys) {
    std::vector<std::string> cells;
    for (const std::string& key : keys) cells.push_back(cell(key));
    if (!cells.empty()) out += "\n" + std::string(what) + ": " + join(cells, "; ") + "\n";
  };
  add("The source does not print", score.assumed);
  add("Known beside the file", score.known);
  return out;
}

}  // namespace

std::string validation_page(const std::vector<SetScore>& scores, const ScoreData& data) {
  const PooledIntervals pooled = pool_intervals(scores);
  std::string out =
      "# Predicted against measured\n\nWritten by `tools/validation-page`; a test compares it with what the "
      "program says. Errors are predicted / measured - 1 in\nseconds per iteration; what they teach is in "
      "[accuracy.md](accuracy.md). Held out: rows of sets on which no "
      "constant of their profile was\n[fitted](#what-was-fitted). Intervals: 90 %, from the residuals of the "
      "profile.\n";
  out += kinds_section(scores_by_kind(scores, data));
  out +=
      "\n## Sets\n\nRank: Spearman's correlation of GPU-seconds per token within one model on one number of "
      "GPUs. Null model: all hardware FLOPs at one\nrate, the median fit on the very rows scored. Others: "
      "figures that their authors published, or the seconds that the rows print.\n\n" +
      overview(scores, data);
  out += fmt::format(
      "\nAll rows together: {} of the measurements lie inside their 90 % interval, whose median width is {} "
      "of the prediction. With each\nset's interval made from the residuals of the other sets of its "
      "profile: {} and {}.\n",
      percent(pooled.now.share), percent(pooled.now.median_width), percent(pooled.left_out.share),
      percent(pooled.left_out.median_width));
  out += "\n## Ratios\n\nOf two rows that differ in nothing else: what both have wrong cancels.\n\n" +
         ratio_table(scores);
  out += "\n## What was fitted\n\n" + constants_table(data);
  out += "\n## Others\n\n" + peers_table(scores, data);
  out +=
      "\n## Where errors come from\n\nBy how much longer each family of operations really takes than "
      "predicted, in %, with its standard error (ridge regression of the\nrows' errors on their shares of "
      "time; prior 0 ± 30); last, what this explains of the squared errors and what is left a row.\n\n" +
      attribution_table(scores);
  out += "\n## Rows\n";
  for (const SetScore& score : scores) out += set_section(score);
  return out;
}

}  // namespace stagecraft
