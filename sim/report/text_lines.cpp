#include "sim/report/text_lines.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/utf8.hpp"

namespace stagecraft {

std::string headed_line(std::string_view head, std::string_view text) {
  return fmt::format("{:<16} {}\n", head, text);
}

std::string wrapped_lines(std::string_view head, std::string_view text, std::string_view between) {
  std::string out;
  while (utf8_count(text) > kTextWidth) {
    const std::size_t end = text.substr(0, kTextWidth + 1).rfind(between);
    if (end == std::string_view::npos || end == 0) break;
    out += headed_line(out.empty() ? head : "", text.substr(0, end + between.size() - 1));
    text.remove_prefix(end + between.size());
  }
  return out + headed_line(out.empty() ? head : "", text);
}

std::string hanging_lines(std::string_view head, std::string text) {
  std::string out;
  while (text.size() > kTextWidth) {
    const std::size_t blank = text.rfind(' ', kTextWidth);
    if (blank == std::string::npos || text.find_first_not_of(' ') > blank) break;
    out += headed_line(std::exchange(head, ""), std::string_view(text).substr(0, blank));
    text = "  " + text.substr(blank + 1);
  }
  return out + headed_line(head, text);
}

double share_of(Duration part, Duration whole) {
  return whole > Duration::zero() ? to_seconds(part) / to_seconds(whole) : 0;
}

}  // namespace stagecraft
