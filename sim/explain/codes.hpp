// What the codes of diagnostics mean, for whoever meets one in a log or in JSON.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace stagecraft {

struct CodeMeaning {
  std::string_view code;     // "not-divisible"
  std::string_view meaning;  // in a sentence, and the way out in another
};

[[nodiscard]] std::span<const CodeMeaning> code_meanings();  // ascending by code
[[nodiscard]] std::optional<CodeMeaning> meaning_of(std::string_view code);

}  // namespace stagecraft
