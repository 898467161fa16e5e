// The text of a stranger's file before anybody reads it: UTF-8 without surprises, and where an offset stands.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"

namespace stagecraft {

// The text without its byte-order mark. UTF-16, bytes that are no UTF-8 and control characters other than
// tabs, line ends and the escape character (of terminal codes) are reported where they stand: nullopt.
[[nodiscard]] std::optional<std::string_view> checked_text(std::string_view text, const std::string& name,
                                                           Diagnostics& diagnostics);

// Lines and columns (in bytes, from 1) of offsets into one text, which must outlive it.
class TextPlaces {
 public:
  TextPlaces(std::string_view text, std::string name);

  // An offset beyond the end stands at the end.
  [[nodiscard]] SourceLocation at(std::size_t offset) const;

 private:
  std::string name_;
  std::size_t size_;
  std::vector<std::size_t> line_starts_;
};

// The lines of a text, without their ends (LF or CRLF).
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

// Does the text contain one of the words?
[[nodiscard]] bool contains_any(std::string_view text, std::initializer_list<std::string_view> words);

// ASCII letters in lower case.
[[nodiscard]] std::string lower_case(std::string_view text);

}  // namespace stagecraft
