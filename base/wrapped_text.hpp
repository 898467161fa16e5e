// Sentences on lines of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stagecraft {

inline constexpr std::size_t kTerminalWidth = 80;

// `head` and the text, broken between words where a line passes 80 columns, a number never from its unit;
// each further line begins with `indent`. Every line ends with '\n'.
[[nodiscard]] std::string wrapped_text(std::string_view head, std::string_view indent, std::string_view text);

}  // namespace stagecraft
