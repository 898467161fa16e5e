#include "tools/commands/sweep_mistakes.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/check.hpp"
#include "base/yaml.hpp"
#include "sim/study/row_columns.hpp"

namespace stagecraft {
namespace {

// Codes of base/yaml.hpp for a value that is none of its kind, whatever else the scenario says.
bool says_unreadable(const std::string& code) {
  static constexpr std::array<std::string_view, 10> kCodes{
      "bad-boolean", "bad-number",         "bad-quantity", "negative-quantity", "no-unit",
      "no-value",    "quantity-too-large", "unknown-name", "unknown-unit",      "wrong-kind"};
  return std::ranges::find(kCodes, code) != kCodes.end();
}

// The axis that varies `path`, a part of it, or a mapping that contains it.
const SweepAxis* axis_of(const SweepSpec& spec, const std::string& path) {
  const auto within = [](const std::string& part, const std::string& whole) {
    return part == whole || part.starts_with(whole + ".");
  };
  for (const SweepAxis& axis : spec.axes)
    for (const std::string& varied : axis.paths)
      if (within(path, varied) || within(varied, path)) return &axis;
  return nullptr;
}

std::string text_of(const YamlNode& reason, std::string_view key) {
  const YamlNode* node = reason.find(key);
  return node != nullptr ? node->text : std::string();
}

}  // namespace

std::vector<Diagnostic> mistakes_of(const SweepSpec& spec, const std::string& first_row, bool all_unknown) {
  Diagnostics unreadable, mistakes;
  const std::optional<RowDocument> row = read_row(first_row, {}, unreadable);
  const YamlNode* reasons = row ? row->at("reasons") : nullptr;
  SC_CHECK(reasons != nullptr, "a row that is refused says why");
  for (const YamlNode& reason : reasons->items) {
    const std::string code = text_of(reason, "code"), path = text_of(reason, "path");
    const bool unknown = code == "unknown-key";
    const SweepAxis* axis = axis_of(spec, path);
    if (unknown ? !all_unknown : axis != nullptr || !says_unreadable(code)) continue;
    mistakes.error({.code = code,
                    .where = axis != nullptr ? axis->where : SourceLocation{.file = spec.base.source},
                    .path = axis != nullptr ? "vary." + path : path,
                    .message = text_of(reason, "message") + (unknown ? " of any point" : ", in every point"),
                    .hint = text_of(reason, "hint")});
  }
  return mistakes.sorted();
}

}  // namespace stagecraft
