// Lines of YAML that our reader reads back to the same values.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"

namespace stagecraft {

// Lines `key: value`, indented by open sections.
class Emitter {
 public:
  void field(std::string_view key, std::string_view value) {
    indent();
    text_ += fmt::format("{}: {}\n", key, value);
  }
  void number(std::string_view key, std::int64_t value) { field(key, std::to_string(value)); }
  void real(std::string_view key, double value) { field(key, fmt::format("{}", value)); }
  void flag(std::string_view key, bool value) { field(key, value ? "true" : "false"); }
  void text(std::string_view key, std::string_view value) {
    field(key, JsonWriter().value(value).str());  // double quotes of JSON are double quotes of YAML
  }
  void open(std::string_view key) {
    indent();
    text_ += fmt::format("{}:\n", key);
    ++depth_;
  }
  void close() { --depth_; }
  void item() {  // the next field begins an item of a list
    dash_ = true;
    ++depth_;
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void indent() {
    const int depth = std::exchange(dash_, false) ? depth_ - 1 : -1;
    text_.append(static_cast<std::size_t>(2 * (depth < 0 ? depth_ : depth)), ' ');
    if (depth >= 0) text_ += "- ";
  }
  std::string text_;
  int depth_ = 0;
  bool dash_ = false;
};

// Quantities as text that parses to the same bits.
[[nodiscard]] std::string quantity(Bandwidth value);
[[nodiscard]] std::string quantity(Bytes value);
[[nodiscard]] std::string quantity(Duration value);

template <class List, class Print>
std::string list_of(const List& list, Print print) {
  std::string text = "[";
  for (const auto& item : list) text += (text.size() > 1 ? ", " : "") + print(item);
  return text + "]";
}

template <class T>
std::string quantities(const std::vector<T>& list) {
  return list_of(list, [](T item) { return quantity(item); });
}

template <class Enum>
std::string_view word(Enum value, std::span<const std::string_view> names) {
  return names[static_cast<std::size_t>(value)];
}

}  // namespace stagecraft
