#include "tools/validation/ablation.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "sim/accuracy/constants.hpp"
#include "tools/validation/render.hpp"

namespace stagecraft {
namespace {

void change_constants(Scenario& scenario, const Ablation& ablation) {
  for (const auto& [name, value] : ablation.constants) find_constant(name)->set(scenario, value);
}

AblationRow without(const Ablation& ablation, const std::vector<PublishedSet>& sets, Library& library) {
  AblationRow row{.effect = ablation.effect, .note = ablation.note, .sets = {}};
  for (const PublishedSet& set : sets) {
    const SetScore score =
        score_set(set, load_rows(set, library, ablation.set),
                  {.change = [&](Scenario& scenario) { change_constants(scenario, ablation); }});
    row.sets.push_back(score.summary());
  }
  return row;
}

std::string error_cell(const ErrorSummary& summary, const ErrorSummary& base) {
  if (summary.rows == 0) return "–";
  constexpr double kMatters = 0.005;
  std::string text = fmt::format("{:.1f}", 100 * summary.mean_absolute);
  if (summary.mean_absolute - base.mean_absolute > kMatters) text = "**" + text + "**";
  if (summary.rows < base.rows)
    text += fmt::format(" ({})", counted(static_cast<std::int64_t>(summary.rows), "row"));
  return text;
}

}  // namespace

std::vector<AblationRow> ablate(const std::vector<PublishedSet>& sets, const ScoreData& data,
                                Library& library) {
  std::vector<AblationRow> rows = {
      without({.effect = "nothing", .set = {}, .constants = {}, .note = {}}, sets, library)};
  for (const Ablation& ablation : data.ablations) rows.push_back(without(ablation, sets, library));
  return rows;
}

std::string ablation_page(const std::vector<AblationRow>& rows, const std::vector<PublishedSet>& sets,
                          const ScoreData& data) {
  std::vector<std::string> head = {"taken away"};
  for (const PublishedSet& set : sets) head.push_back(set.name);
  std::string out =
      "\n## Ablation\n\nMAPE in % with one effect taken away and nothing fitted again; in bold what costs a "
      "set more than half a point. A set can gain\nwhere two errors cancel. What is changed is in "
      "`calibrate/validation/scoring/ablations.yaml`.\n\n" +
      markdown_head(head);
  for (const AblationRow& row : rows) {
    std::vector<std::string> cells = {row.note.empty() ? row.effect : row.effect + " (" + row.note + ")"};
    for (std::size_t i = 0; i < row.sets.size(); ++i)
      cells.push_back(error_cell(row.sets[i], rows.front().sets[i]));
    out += markdown_row(cells);
  }
  if (!data.not_ablated.empty()) out += "\nNo value takes away: " + join(data.not_ablated, "; ") + ".\n";
  return out;
}

}  // namespace stagecraft
