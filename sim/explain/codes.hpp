// Meanings of the codes of diagnostics.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace stagecraft {

struct CodeMeaning {
  std::string_view code;     // "not-divisible"
  std::string_view meaning;  // one sentence, and a second one with the remedy
};

[[nodiscard]] std::span<const CodeMeaning> code_meanings();  // ascending by code
[[nodiscard]] std::optional<CodeMeaning> meaning_of(std::string_view code);

}  // namespace stagecraft
