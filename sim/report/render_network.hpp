// The network section of a report.
#pragma once

#include <string>

#include "base/json.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {

// The `network` object, as one value.
void write_network(JsonWriter& json, const Report& report);

// Lines of at most 80 columns: the cost of sharing, the five links with the largest delays, and the flows
// that met there; all of them where `verbose`. Empty where the network is closed-form.
[[nodiscard]] std::string network_lines(const Report& report, bool verbose);

}  // namespace stagecraft
