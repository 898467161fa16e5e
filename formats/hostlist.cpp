#include "formats/hostlist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.hpp"

namespace stagecraft {

namespace {

constexpr std::size_t kMostDigits = 9;
constexpr std::size_t kMostLetters = 255;  // of a name: brackets multiply them

struct Range {
  std::int64_t first = 0, last = 0;
  int width = 0;
};

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kMostDigits &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::int64_t value_of(std::string_view digits) {
  std::int64_t value = 0;
  for (const char digit : digits) value = 10 * value + (digit - '0');
  return value;
}

class Expander {
 public:
  explicit Expander(std::size_t most) : most_(most) {}

  HostlistResult expand(std::string_view text) {
    while (result_.mistake.empty()) {
      const std::size_t end = end_of_item(text);
      item(trimmed(text.substr(0, end)));
      if (end >= text.size()) break;
      text.remove_prefix(end + 1);
    }
    if (!result_.mistake.empty()) result_.names.clear();
    return std::move(result_);
  }

 private:
  bool fail(std::string mistake) {
    if (result_.mistake.empty()) result_.mistake = std::move(mistake);
    return false;
  }

  // Where the next comma outside brackets stands.
  static std::size_t end_of_item(std::string_view text) {
    bool inside = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '[') inside = true;
      if (text[i] == ']') inside = false;
      if (text[i] == ',' && !inside) return i;
    }
    return text.size();
  }

  void item(std::string_view text) {
    if (text.empty()) {
      fail("a name is empty");
      return;
    }
    std::vector<std::string> names = {""};
    while (!text.empty()) {
      const std::size_t open = std::min(text.find('['), text.size());
      const std::string_view plain = text.substr(0, open);
      if (plain.find_first_of("] \t") != std::string_view::npos) {
        fail(fmt::format("{} is no name", in_quotes(plain)));
        return;
      }
      if (names.front().size() + plain.size() > kMostLetters) {
        fail(fmt::format("a name has more than {} letters", kMostLetters));
        return;
      }
      for (std::string& name : names) name += plain;
      text.remove_prefix(open);
      if (text.empty()) break;
      const std::size_t close = text.find(']');
      if (close == std::string_view::npos) {
        fail("'[' is not closed");
        return;
      }
      if (!multiply(names, text.substr(1, close - 1))) return;
      text.remove_prefix(close + 1);
    }
    if (result_.names.size() + names.size() > most_) {
      fail(fmt::format("more than {} names", most_));
      return;
    }
    result_.names.insert(result_.names.end(), names.begin(), names.end());
  }

  bool multiply(std::vector<std::string>& names, std::string_view group) {
    std::vector<Range> ranges;
    std::int64_t numbers = 0;
    for (const std::string_view part : split(group, ',')) {
      const std::size_t dash = part.find('-');
      const std::string_view first = trimmed(part.substr(0, dash));
      const std::string_view last = dash == std::string_view::npos ? first : trimmed(part.substr(dash + 1));
      if (!is_number(first) || !is_number(last) || value_of(first) > value_of(last))
        return fail(fmt::format("{} is no range of numbers", in_quotes(part)));
      ranges.push_back(
          {.first = value_of(first), .last = value_of(last), .width = static_cast<int>(first.size())});
      numbers += ranges.back().last - ranges.back().first + 1;
    }
    if (static_cast<std::size_t>(numbers) > most_ / names.size())
      return fail(fmt::format("more than {} names", most_));
    std::vector<std::string> product;
    for (const std::string& name : names)
      for (const Range& range : ranges)
        for (std::int64_t i = range.first; i <= range.last; ++i)
          product.push_back(fmt::format("{}{:0{}}", name, i, range.width));
    names = std::move(product);
    return true;
  }

  std::size_t most_;
  HostlistResult result_;
};

}  // namespace

HostlistResult expand_hostlist(std::string_view text, std::size_t most) {
  return Expander(most).expand(text);
}

}  // namespace stagecraft
