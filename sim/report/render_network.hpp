// The network section of a report.
#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {

// The `network` object, as one value.
void write_network(JsonWriter& json, const Report& report);

// A head of at most 16 columns and a text, broken at blanks where a line would pass 80 columns.
[[nodiscard]] std::string headed_lines(std::string_view head, std::string text);

// Lines of at most 80 columns: what sharing costs, the five links that hold up most and who met there;
// `verbose`: all of them. Empty where the network is closed-form.
[[nodiscard]] std::string network_lines(const Report& report, bool verbose);

}  // namespace stagecraft
