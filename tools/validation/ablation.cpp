#include "tools/validation/ablation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"
#include "sim/accuracy/constants.hpp"
#include "tools/validation/render_parts.hpp"

namespace stagecraft {
namespace {

constexpr double kMatters = 0.005;
constexpr std::size_t kMostNamed = 4;

void change_constants(Scenario& scenario, const Ablation& ablation) {
  for (const auto& [name, value] : ablation.constants) find_constant(name)->set(scenario, value);
}

using ErrorsById = std::map<std::string, double>;  // absolute errors of a set's rows

ErrorsById errors_of(const SetScore& score) {
  ErrorsById errors;
  for (const ScoredRow& row : score.rows) errors.emplace(row.id, std::abs(row.error()));
  return errors;
}

SetLoss loss_of(const std::string& set, const ErrorsById& with, const ErrorsById& without) {
  SetLoss loss{.set = set};
  for (const auto& [id, error] : without) {
    const auto before = with.find(id);
    if (before == with.end()) continue;
    ++loss.rows;
    loss.with += before->second;
    loss.without += error;
  }
  const auto rows = static_cast<double>(std::max<std::size_t>(loss.rows, 1));
  loss.with /= rows;
  loss.without /= rows;
  return loss;
}

// All sets as one, each counting as its rows.
SetLoss total_of(const std::vector<SetLoss>& sets) {
  SetLoss total;
  for (const SetLoss& set : sets) {
    const auto rows = static_cast<double>(set.rows);
    total.rows += set.rows;
    total.with += rows * set.with;
    total.without += rows * set.without;
  }
  const auto rows = static_cast<double>(std::max<std::size_t>(total.rows, 1));
  total.with /= rows;
  total.without /= rows;
  return total;
}

// "dgxc_gb200 9.1 to 25.5, gpu_recipes_b200 10.6 to 33.5"
std::string most_hurt(std::vector<SetLoss> sets) {
  std::ranges::stable_sort(sets, std::greater<>(), &SetLoss::lost);
  std::vector<std::string> words;
  for (const SetLoss& set : sets) {
    if (words.size() == kMostNamed || set.lost() <= kMatters) break;
    words.push_back(fmt::format("{} {:.1f} to {:.1f}", set.set, 100 * set.with, 100 * set.without));
  }
  return words.empty() ? "–" : join(words, ", ");
}

}  // namespace

std::vector<AblationRow> ablate(const std::vector<PublishedSet>& sets, const ScoreData& data,
                                Library& library) {
  std::vector<AblationRow> rows;
  for (const Ablation& ablation : data.ablations)
    rows.push_back({.effect = ablation.effect, .note = ablation.note, .sets = {}});
  for (const PublishedSet& set : sets) {
    const ErrorsById with = errors_of(score_set(set, load_rows(set, library)));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Ablation& ablation = data.ablations[i];
      const SetScore without =
          score_set(set, load_rows(set, library, ablation.set),
                    {.change = [&](Scenario& scenario) { change_constants(scenario, ablation); }});
      const SetLoss loss = loss_of(set.name, with, errors_of(without));
      if (loss.rows > 0) rows[i].sets.push_back(loss);
    }
  }
  return rows;
}

std::string ablation_page(const std::vector<AblationRow>& rows, const ScoreData& data) {
  std::string out =
      "\n## Ablation\n\nMean errors in % with one effect taken away and nothing fitted again, over the rows "
      "that can run so. A set can gain where two errors\ncancel; sets that lose count from half a point on. "
      "What is changed is in `calibrate/validation/scoring/ablations.yaml`.\n\n" +
      markdown_head({"taken away", "rows", "with it", "without", "sets that lose", "most"});
  for (const AblationRow& row : rows) {
    const SetLoss total = total_of(row.sets);
    const auto losers = std::ranges::count_if(row.sets, [](const SetLoss& s) { return s.lost() > kMatters; });
    out += markdown_row({row.note.empty() ? row.effect : row.effect + " (" + row.note + ")",
                         std::to_string(total.rows), fmt::format("{:.1f}", 100 * total.with),
                         fmt::format("{:.1f}", 100 * total.without),
                         fmt::format("{} of {}", losers, row.sets.size()), most_hurt(row.sets)});
  }
  if (!data.not_ablated.empty()) out += "\nNo value takes away: " + join(data.not_ablated, "; ") + ".\n";
  return out;
}

}  // namespace stagecraft
