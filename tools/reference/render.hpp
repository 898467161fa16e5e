// The reference as a page and as JSON Schemas.
#pragma once

#include <string>
#include <string_view>

#include "tools/reference/survey.hpp"

namespace stagecraft {

struct References {
  Reference scenario, sweep;
};

// docs/scenario.md
[[nodiscard]] std::string render_markdown(const References& references);

// JSON Schema, draft 7 (what editors know): of scenarios, sweeps, models, nodes or fabrics ("scenario", …).
//   throws std::invalid_argument for another name.
//
// It refuses what a schema can see: unknown keys, keys of another kind, wrong types, units and ranges,
// unknown words, missing keys. What several values decide together is for `stagecraft check`.
[[nodiscard]] std::string render_schema(const References& references, std::string_view name);

}  // namespace stagecraft
