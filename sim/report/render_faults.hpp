// The faults section of a report.
#pragma once

#include <string>

#include "base/json.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {

// The `faults` object, as one value.
void write_faults(JsonWriter& json, const Report& report);

// Lines about the faults: what happened, their cost, or the ranks that stall and since when; all ranks where
// `verbose`. Empty without faults.
[[nodiscard]] std::string fault_lines(const Report& report, bool verbose);

}  // namespace stagecraft
