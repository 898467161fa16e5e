// Why a result is not what its user wants. The same words in a row of a sweep and in the JSON of `run`.
#pragma once

#include <span>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/json.hpp"
#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Empty, or one error. Code out-of-memory: the heaviest stage does not fit.
[[nodiscard]] std::vector<Diagnostic> too_large(const MemoryLedger& memory);
// An error (code assertion-missed) for each `assert` that does not hold, in the order of the scenario.
[[nodiscard]] std::vector<Diagnostic> missed_assertions(const Scenario& scenario, const Report& report);
// Empty, or one error. Code never-ends: a node died in the iteration.
[[nodiscard]] std::vector<Diagnostic> never_ends(const Report& report);

// `"reasons": [{"code", "path", "message", "hint"}, ...]` of the errors among them, inside an open object.
void write_reasons(JsonWriter& json, std::span<const Diagnostic> reasons);

}  // namespace stagecraft
