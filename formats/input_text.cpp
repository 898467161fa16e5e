#include "formats/input_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.hpp"

namespace stagecraft {

namespace {

bool is_utf16(std::string_view text) {
  return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\x1b') || byte == 0x7f;
}

}  // namespace

std::optional<std::string_view> checked_text(std::string_view text, const std::string& name,
                                             Diagnostics& diagnostics) {
  const auto refuse = [&](std::size_t offset, std::string message) {
    diagnostics.error({.code = "not-text",
                       .where = TextPlaces(text, name).at(offset),
                       .message = std::move(message),
                       .hint = "save the file as UTF-8 text"});
    return std::nullopt;
  };
  if (is_utf16(text)) return refuse(0, "is UTF-16, not UTF-8");
  text = without_byte_order_mark(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at, 4));
    if (length == 0)
      return refuse(at, fmt::format("byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(text[at])));
    if (is_control(text[at]))
      return refuse(
          at, fmt::format("byte 0x{:02x} is a control character", static_cast<unsigned char>(text[at])));
    at += length;
  }
  return text;
}

TextPlaces::TextPlaces(std::string_view text, std::string name)
    : name_(std::move(name)), size_(text.size()), line_starts_{0} {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    line_starts_.push_back(at + 1);
}

SourceLocation TextPlaces::at(std::size_t offset) const {
  offset = std::min(offset, size_);
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return {.file = name_,
          .line = static_cast<int>(after - line_starts_.begin()),
          .column = static_cast<int>(offset - *(after - 1)) + 1};
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

}  // namespace stagecraft
