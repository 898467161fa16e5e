// What is measured within a budget, and in which order.
//
// The most valuable first, since a run may be interrupted at any time and the file must then hold what
// matters most. What is in the file already is not measured again: that is all there is to resuming.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

struct Candidate {
  std::string key;     // sample_key() of the point
  double value = 0;    // what the point is worth
  double seconds = 0;  // what measuring it costs, estimated
};

enum class Fate { kPlanned, kMeasured, kFailedBefore, kOverBudget };

struct PlannedWork {
  std::size_t candidate = 0;  // index into the candidates
  Fate fate = Fate::kPlanned;
};

struct KnownWork {
  std::set<std::string> measured;
  std::set<std::string> failed;  // they took the process down with them: not tried again by themselves
};

// Every candidate once, most valuable first (ties: as listed). A key that stands twice is planned once. An
// item that does not fit into what is left of the budget is passed over and cheaper ones behind it still get
// their chance. No budget: everything fits.
[[nodiscard]] std::vector<PlannedWork> plan_work(std::span<const Candidate> candidates,
                                                 const KnownWork& known,
                                                 std::optional<double> budget_seconds);

// "8m", "90s", "1h30m", "45" (seconds). Empty: not such a duration, or zero.
[[nodiscard]] std::optional<double> parse_budget(std::string_view text);

}  // namespace stagecraft
