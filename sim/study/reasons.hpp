// Reasons why a result misses its user's demands. A row of a sweep and the JSON of `run` use the same words.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/json.hpp"
#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// An error (code assertion-missed) for each `assert` that does not hold, in the order of the scenario. The
// printed figure misses the limit as well: "17.007 s is not <= 17.004 s".
[[nodiscard]] std::vector<Diagnostic> missed_assertions(const Scenario& scenario, const Report& report);

// By how much the first missed `assert` misses, as a share of its limit; 0 where none does.
[[nodiscard]] double missed_by(const Scenario& scenario, const Report& report);

// All reasons, as errors: the heaviest stage does not fit (code out-of-memory; where it `must_fit`), asserts
// are missed, a node died in the iteration (never-ends). Empty where there is none.
[[nodiscard]] std::vector<Diagnostic> reasons_against(const Scenario& scenario, const Report& report,
                                                      bool must_fit);

// An error (code no-data) where shapes of GEMMs or attention have no row of the profile near them; `run
// --strict` asks for it.
[[nodiscard]] std::optional<Diagnostic> shapes_without_data(const Scenario& scenario, const Report& report);

// An error of an iteration in which a node died: it has no time.
[[nodiscard]] Diagnostic never_ends(const Scenario& scenario);

// `"reasons": [{"code", "path", "message", "hint"}, ...]` of the errors among them, inside an open object.
void write_reasons(JsonWriter& json, std::span<const Diagnostic> reasons);

}  // namespace stagecraft
