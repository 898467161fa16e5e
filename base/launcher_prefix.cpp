#include "base/launcher_prefix.hpp"

#include <cstddef>

#include "base/text.hpp"

namespace stagecraft {

std::string_view without_launcher_prefix(std::string_view line) {
  for (bool again = true; again;) {
    again = false;
    const std::string_view text = trimmed(line, " \t\r");
    if (text.starts_with('[')) {
      const std::size_t close = text.find(']');
      if (close == std::string_view::npos) return line;
      std::size_t end = close + 1;
      if (const std::size_t tag = text.find(">:", close);
          tag != std::string_view::npos && text[close + 1] == '<')
        end = tag + 2;
      line = text.substr(end);
      if (line.starts_with(':')) line.remove_prefix(1);
      again = true;
    } else if (const std::size_t digits = text.find_first_not_of("0123456789");
               digits != std::string_view::npos && digits > 0 && text[digits] == ':') {
      line = text.substr(digits + 1);
      again = true;
    }
  }
  return line;
}

}  // namespace stagecraft
