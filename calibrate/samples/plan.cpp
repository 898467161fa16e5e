#include "calibrate/samples/plan.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace stagecraft {

std::vector<PlannedWork> plan_work(std::span<const Candidate> candidates, const KnownWork& known,
                                   std::optional<double> budget_seconds) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return candidates[a].value > candidates[b].value; });

  std::vector<PlannedWork> plan;
  std::set<std::string> listed;
  double spent = 0;
  for (const std::size_t i : order) {
    const Candidate& candidate = candidates[i];
    if (!listed.insert(candidate.key).second) continue;
    Fate fate = Fate::kPlanned;
    if (known.measured.contains(candidate.key))
      fate = Fate::kMeasured;
    else if (known.failed.contains(candidate.key))
      fate = Fate::kFailedBefore;
    else if (budget_seconds.has_value() && spent + candidate.seconds > *budget_seconds)
      fate = Fate::kOverBudget;
    else
      spent += candidate.seconds;
    plan.push_back({i, fate});
  }
  return plan;
}

std::optional<double> parse_budget(std::string_view text) {
  constexpr std::string_view kUnits = "hms";  // in this order, each at most once
  constexpr double kSeconds[] = {3600, 60, 1};
  double total = 0;
  std::size_t next_unit = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    double amount = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), amount, std::chars_format::fixed);
    if (error != std::errc() || !(amount >= 0)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::size_t unit = text.empty() ? kUnits.size() - 1 : kUnits.find(text.front());
    if (unit == std::string_view::npos || unit < next_unit) return std::nullopt;
    total += amount * kSeconds[unit];
    next_unit = unit + 1;
    if (!text.empty()) text.remove_prefix(1);
  }
  return total > 0 && total < 1e9 ? std::optional(total) : std::nullopt;
}

}  // namespace stagecraft
