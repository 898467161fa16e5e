#include "base/wrapped_text.hpp"

#include "base/utf8.hpp"

namespace stagecraft {
namespace {

// Where the last blank stands at which a line of so many columns may end; npos where there is none.
std::size_t last_break(std::string_view text, std::size_t columns) {
  std::size_t end = std::string_view::npos;
  for (std::size_t at = text.find(' '); at != std::string_view::npos; at = text.find(' ', at + 1)) {
    if (utf8_count(text.substr(0, at)) > columns) break;
    const bool unit_follows = at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9';
    if (!unit_follows) end = at;
  }
  return end;
}

}  // namespace

std::string wrapped_text(std::string_view head, std::string_view indent, std::string_view text) {
  std::string out, before(head);
  while (utf8_count(before) + utf8_count(text) > kTerminalWidth) {
    const std::size_t end = last_break(text, kTerminalWidth - utf8_count(before));
    if (end == std::string_view::npos) break;
    out.append(before).append(text.substr(0, end)).append("\n");
    text.remove_prefix(end + 1);
    before = indent;
  }
  return out.append(before).append(text).append("\n");
}

}  // namespace stagecraft
