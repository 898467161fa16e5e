#include "tools/validation/render_parts.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace stagecraft {

std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", share * 100);
}

std::string errors_text(const ErrorSummary& summary) {
  return fmt::format("MAPE {}, bias {}, median {}", percent(summary.mean_absolute),
                     signed_percent(summary.bias), percent(summary.median_absolute));
}

std::string markdown_row(const std::vector<std::string>& cells) {
  return "| " + join(cells, " | ") + " |\n";
}

std::string markdown_head(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (std::size_t i = 0; i < cells.size(); ++i) line += "---|";
  return markdown_row(cells) + line + "\n";
}

void write_skipped(const std::vector<SkippedRow>& rows, JsonWriter& json) {
  json.key("skipped").begin_array();
  for (const SkippedRow& row : rows)
    json.begin_object().field("id", row.id).field("reason", row.reason).end_object();
  json.end_array();
}

}  // namespace stagecraft
