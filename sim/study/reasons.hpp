// Why a result is not what its user wants. The same words in a row of a sweep and in the JSON of `run`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/json.hpp"
#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// An error (code assertion-missed) for each `assert` that does not hold, in the order of the scenario. It
// prints the figure so that what is printed does not hold either: "17.007 s is not <= 17.004 s".
[[nodiscard]] std::vector<Diagnostic> missed_assertions(const Scenario& scenario, const Report& report);

// All of them, as errors: the heaviest stage does not fit (code out-of-memory; where it `must_fit`), asserts
// are missed, a node died in the iteration (never-ends). Empty where nothing is wrong.
[[nodiscard]] std::vector<Diagnostic> reasons_against(const Scenario& scenario, const Report& report,
                                                      bool must_fit);

// An error of an iteration in which a node died: it has no time.
[[nodiscard]] Diagnostic never_ends(const Scenario& scenario);

// `"reasons": [{"code", "path", "message", "hint"}, ...]` of the errors among them, inside an open object.
void write_reasons(JsonWriter& json, std::span<const Diagnostic> reasons);

}  // namespace stagecraft
