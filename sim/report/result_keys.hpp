// The result of a run, as keys of a caller's JSON document.
#pragma once

#include "base/json.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {

// The keys of `run --json` behind `scenario`, into an open object. In brief: without the ledger of each
// stage, the critical path, the links and the shapes.
enum class ResultDetail { kBrief, kWhole };
void write_result(JsonWriter& json, const Report& report, ResultDetail detail);

}  // namespace stagecraft
