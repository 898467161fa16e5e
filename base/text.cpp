#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "base/utf8.hpp"

namespace stagecraft {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

struct Scale {
  double factor;  // in the base unit
  double limit;   // rounded values from here on take the next scale
  const char* unit;
};

enum class Zeros { kKeep, kDrop };

// Three significant digits: 1.25, 12.5, 125; what is above 999 keeps its whole part.
std::string three_digits(double value, Zeros zeros) {
  int decimals = 0;
  if (value < 99.95) decimals = 1;
  if (value < 9.995) decimals = 2;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (zeros == Zeros::kDrop && decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

std::string scaled(double value, std::span<const Scale> scales, Zeros zeros) {
  const std::string sign = value < 0 ? "-" : "";
  const double size = std::abs(value);
  const auto fits = [&](const Scale& scale) { return std::round(size / scale.factor) < scale.limit; };
  auto scale = std::ranges::find_if(scales, fits);
  if (scale == scales.end()) --scale;
  return fmt::format("{}{} {}", sign, three_digits(size / scale->factor, zeros), scale->unit);
}

constexpr double kMinute = 60e9, kHour = 3600e9, kDay = 86400e9;  // in nanoseconds
constexpr auto kAlways = std::numeric_limits<double>::infinity();

constexpr std::array<Scale, 7> kTimes{{{1, 1000, "ns"},
                                       {1e3, 1000, "us"},
                                       {1e6, 1000, "ms"},
                                       {1e9, 1000, "s"},
                                       {kMinute, 120, "min"},
                                       {kHour, 48, "h"},
                                       {kDay, kAlways, "days"}}};

constexpr std::array<Scale, 6> kBinary{{{1, 1024, "B"},
                                        {0x1p10, 1024, "KiB"},
                                        {0x1p20, 1024, "MiB"},
                                        {0x1p30, 1024, "GiB"},
                                        {0x1p40, 1024, "TiB"},
                                        {0x1p50, kAlways, "PiB"}}};

constexpr std::array<Scale, 6> kBandwidths{{{1, 1000, "B/s"},
                                            {1e3, 1000, "kB/s"},
                                            {1e6, 1000, "MB/s"},
                                            {1e9, 1000, "GB/s"},
                                            {1e12, 1000, "TB/s"},
                                            {1e15, kAlways, "PB/s"}}};

constexpr std::array<Scale, 7> kFlopRates{{{1, 1000, "FLOP/s"},
                                           {1e3, 1000, "kFLOP/s"},
                                           {1e6, 1000, "MFLOP/s"},
                                           {1e9, 1000, "GFLOP/s"},
                                           {1e12, 1000, "TFLOP/s"},
                                           {1e15, 1000, "PFLOP/s"},
                                           {1e18, kAlways, "EFLOP/s"}}};

constexpr std::array<Scale, 8> kFlops{{{1, 1000, "FLOP"},
                                       {1e3, 1000, "kFLOP"},
                                       {1e6, 1000, "MFLOP"},
                                       {1e9, 1000, "GFLOP"},
                                       {1e12, 1000, "TFLOP"},
                                       {1e15, 1000, "PFLOP"},
                                       {1e18, 1000, "EFLOP"},
                                       {1e21, kAlways, "ZFLOP"}}};

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest_name(std::string_view wanted, std::span<const std::string> names) {
  const std::size_t allowed = wanted.size() <= 3 ? 1 : 2;
  std::size_t best = allowed + 1;
  std::optional<std::string> nearest;
  for (const std::string& name : names) {
    // The distance is at least the difference of the lengths: a megabyte of rubbish costs nothing here.
    if (std::max(name.size(), wanted.size()) - std::min(name.size(), wanted.size()) > allowed) continue;
    const std::size_t distance = edit_distance(wanted, name);
    if (distance >= best) continue;
    best = distance;
    nearest = name;
  }
  return nearest;
}

namespace {

constexpr std::size_t kMostLonger = 3;

bool is_word_break(std::string_view name, std::size_t at) {
  return at >= name.size() || std::string_view("-_.").find(name[at]) != std::string_view::npos;
}

// Is `words` some whole words of `name`?
bool has_words(std::string_view name, std::string_view words) {
  for (std::size_t at = name.find(words); at != std::string_view::npos; at = name.find(words, at + 1))
    if ((at == 0 || is_word_break(name, at - 1)) && is_word_break(name, at + words.size())) return true;
  return false;
}

// Names with `wanted` among their words: dgx-a100-40gb for dgx-a100, dgx-h100 for h100.
std::vector<std::string> longer_names(std::string_view wanted, std::span<const std::string> names) {
  std::vector<std::string> longer;
  for (const std::string& name : names) {
    if (name.size() > wanted.size() && !wanted.empty() && has_words(name, wanted))
      longer.push_back(in_quotes(name));
  }
  return longer;
}

}  // namespace

std::string suggest(std::string_view wanted, std::span<const std::string> names, std::size_t list_up_to) {
  const std::vector<std::string> longer = longer_names(wanted, names);
  if (!longer.empty() && longer.size() <= kMostLonger)
    return fmt::format("did you mean {}?", join(longer, " or "));
  if (const auto nearest = nearest_name(wanted, names))
    return fmt::format("did you mean {}?", in_quotes(*nearest));
  if (names.empty() || names.size() > list_up_to) return {};
  return (names.size() == 1 ? "only " : "one of ") + join(names, ", ");
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::size_t end = 0;
  for (std::size_t shown = 0; shown < kLongest && end < text.size(); ++shown)
    end += std::max<std::size_t>(utf8_length(text.substr(end)), 1);
  return fmt::format("'{}{}'", text.substr(0, end), end < text.size() ? "…" : "");
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

namespace {

// Of a valid character with this many bytes.
std::uint32_t code_point(std::string_view character) {
  if (character.size() == 1) return static_cast<unsigned char>(character[0]);
  std::uint32_t code = static_cast<unsigned char>(character[0]) & (0x7fu >> character.size());
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

// Controls beyond ASCII (a terminal takes U+009B for an escape), and what turns the direction of the text around
// it.   source  Unicode Standard Annex 9, table 4
bool acts_unseen(std::uint32_t code) {
  return (code >= 0x80 && code <= 0x9f) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const auto byte = static_cast<unsigned char>(character[0]);
    if (byte == '\n')
      result += "\\n";
    else if (byte < 0x20 || byte == 0x7f)
      result += fmt::format("\\x{:02x}", byte);
    else if (length > 1 && acts_unseen(code_point(character)))
      result += fmt::format("\\u{:04x}", code_point(character));
    else
      result += character;
    text.remove_prefix(character.size());
  }
  return result;
}

std::string markdown_cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(std::span<const std::string> items, std::string_view separator) {
  return fmt::format("{}", fmt::join(items.begin(), items.end(), separator));
}

std::vector<std::string> to_strings(std::span<const std::string_view> texts) {
  return {texts.begin(), texts.end()};
}

std::string human(Duration time) {
  if (time == Duration::zero()) return "0 s";
  // Whole nanoseconds have no decimals to show.
  if (std::abs(time.count()) < 1000) return fmt::format("{} ns", time.count());
  return scaled(static_cast<double>(time.count()), kTimes, Zeros::kKeep);
}

std::string human(Bytes bytes) {
  if (bytes > Bytes(-1024) && bytes < Bytes(1024)) return fmt::format("{} B", bytes.count());
  return scaled(static_cast<double>(bytes.count()), kBinary, Zeros::kKeep);
}

std::string human(Bandwidth rate) {
  return scaled(rate.count(), kBandwidths, Zeros::kDrop);
}
std::string human(FlopRate rate) {
  return scaled(rate.count(), kFlopRates, Zeros::kDrop);
}
std::string human(Flops work) {
  return scaled(work.count(), kFlops, Zeros::kDrop);
}

std::string percent(double share, int decimals) {
  return fmt::format("{:.{}f} %", share * 100, decimals);
}

std::string counted(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}", n, plural(n, noun));
}

std::string counted_thousands(std::int64_t n, std::string_view noun) {
  return with_thousands(n) + " " + plural(n, noun);
}

std::string plural(std::int64_t n, std::string_view noun) {
  return fmt::format("{}{}", noun, n == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

std::string with_thousands(std::int64_t n) {
  std::string digits = fmt::format("{}", n);
  const std::size_t first = n < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string mean_count(double n) {
  constexpr double kThreeDigits = 999.5;
  return n < kThreeDigits ? fmt::format("{:.3g}", n) : with_thousands(std::llround(n));
}

std::string four_digits(double n) {
  constexpr double kFourDigits = 9'999.5, kMost = 1e15;
  return n >= kFourDigits && n < kMost ? with_thousands(std::llround(n)) : fmt::format("{:.4g}", n);
}

void TextTable::row(std::vector<std::string> cells) {
  SC_CHECK(cells.size() == columns_.size(), "a row of a table needs one cell per column");
  rows_.push_back(std::move(cells));
}

std::string TextTable::str(int indent) const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& cells : rows_)
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], utf8_count(cells[i]));

  std::string text;
  for (const auto& cells : rows_) {
    std::string line(static_cast<std::size_t>(std::max(indent, 0)), ' ');
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - utf8_count(cells[i]), ' ');
      if (i > 0) line += "  ";
      line += columns_[i] == Align::kRight ? padding + cells[i] : cells[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace stagecraft
