// Words and numbers for people: nearest names, human quantities, tables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

// Damerau-Levenshtein distance (optimal string alignment), case-insensitive.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The name closest to `wanted`, if any lies within 2 edits (1 for words of up to 3 letters); the first on a
// tie.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view wanted,
                                                      std::span<const std::string> names);

// "did you mean 'x'?", or else "one of a, b, c" when there are at most `list_up_to` names, or else empty. Up to
// three names that begin with all of `wanted` and a separator (-, _ or .) come before nearer ones.
[[nodiscard]] std::string suggest(std::string_view wanted, std::span<const std::string> names,
                                  std::size_t list_up_to = 12);

// 0 to 9, whatever the locale.
[[nodiscard]] constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// 'text' in single quotes, cut after 60 characters: what a user wrote, repeated in a message.
[[nodiscard]] std::string in_quotes(std::string_view text);

// As a word of a shell's command line: in single quotes where it has characters that a shell reads.
[[nodiscard]] std::string shell_quoted(std::string_view word);

// Control characters as \n or \x1b, marks of direction as \u202e: keys and values of the user may hold line
// breaks, escape sequences and text in another order, and none may reach a terminal.
[[nodiscard]] std::string printable(std::string_view text);

// The text in a cell of a table in Markdown: a '|' would end the cell.
[[nodiscard]] std::string markdown_cell(std::string_view text);

// The text without any of `blanks` at either end.
[[nodiscard]] std::string_view trimmed(std::string_view text, std::string_view blanks = " \t");

// The parts between separators: one more than there are separators, and any may be empty.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
[[nodiscard]] std::string join(std::span<const std::string> items, std::string_view separator);
[[nodiscard]] std::vector<std::string> to_strings(std::span<const std::string_view> texts);

// A regular noun: "1 micro-batch", "8 micro-batches".
[[nodiscard]] std::string counted(std::int64_t n, std::string_view noun);
[[nodiscard]] std::string counted_thousands(std::int64_t n, std::string_view noun);  // "1,024 GPUs"
[[nodiscard]] std::string plural(std::int64_t n, std::string_view noun);             // "GPUs", and "GPU" of 1

// 3 to 4 significant digits with a unit that fits: "10.0 s", "314 ms", "1.25 us", "72.4 GiB", "312 TFLOP/s",
// "50 GB/s".
[[nodiscard]] std::string human(Duration time);
[[nodiscard]] std::string human(Bytes bytes);  // binary units
[[nodiscard]] std::string human(Bandwidth rate);
[[nodiscard]] std::string human(FlopRate rate);
[[nodiscard]] std::string human(Flops work);
[[nodiscard]] std::string percent(double share, int decimals = 1);  // 0.375 -> "37.5 %"
[[nodiscard]] std::string with_thousands(std::int64_t n);           // 314573 -> "314,573"
// A mean of counts: three digits, and all of a whole number that has more: "0.25", "12.3", "1,083,210".
[[nodiscard]] std::string mean_count(double n);
// Four digits, and all of a whole number that has more: "0.3333", "1234", "16,078".
[[nodiscard]] std::string four_digits(double n);

// Columns that line up, by display width in UTF-8 code points. Cells of a column marked kRight are
// right-aligned.
enum class Align { kLeft, kRight };
class TextTable {
 public:
  explicit TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}
  void row(std::vector<std::string> cells);             // throws InternalError on a wrong number of cells
  [[nodiscard]] std::string str(int indent = 0) const;  // every line ends with '\n', no trailing blanks

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace stagecraft
