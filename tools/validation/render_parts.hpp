// What the texts, pages and JSON of this folder share: figures in words, rows of Markdown, skipped rows.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "tools/validation/score.hpp"

namespace stagecraft {

[[nodiscard]] std::string signed_percent(double share);  // "+1.2 %"
// "MAPE 6.1 %, bias +1.2 %, median 4.8 %"
[[nodiscard]] std::string errors_text(const ErrorSummary& summary);

[[nodiscard]] std::string markdown_row(const std::vector<std::string>& cells);
[[nodiscard]] std::string markdown_head(const std::vector<std::string>& cells);  // with the line below it

// `"skipped": [{"id", "reason"}, …]`, inside an open object.
void write_skipped(const std::vector<SkippedRow>& rows, JsonWriter& json);

}  // namespace stagecraft
