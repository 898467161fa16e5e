#include "formats/fragment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.hpp"
#include "formats/input_text.hpp"

namespace stagecraft {

namespace {

// Text repeated in a comment must not end it, and bytes that are no UTF-8 must not make the file unreadable.
std::string on_one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (length == 0 || byte < 0x20 || byte == 0x7f)
      line += '?';
    else
      line += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return line;
}

// Does every YAML reader take the word as a plain text?
bool is_plain_word(std::string_view text) {
  constexpr std::array<std::string_view, 10> kMeanMore{"true", "false", "null", "yes", "no",
                                                       "on",   "off",   "y",    "n",   "nan"};
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto plain = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  const std::string lower = lower_case(text);
  return !text.empty() && letter(text.front()) && std::ranges::all_of(text, plain) &&
         std::ranges::find(kMeanMore, lower) == kMeanMore.end();
}

std::string in_double_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : on_one_line(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string scalar(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kNull) return "null";
  return node.quoted ? in_double_quotes(node.text) : node.text;
}

std::string value(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kSequence) return scalar(node);
  std::string list;
  for (const YamlNode& item : node.items) {
    if (!list.empty()) list += ", ";
    list += scalar(item);
  }
  return fmt::format("[{}]", list);
}

void write(const std::vector<FragmentEntry>& entries, int indent, std::string& out) {
  for (const FragmentEntry& entry : entries) {
    const std::string key = is_plain_word(entry.key) ? entry.key : in_double_quotes(entry.key);
    out += fmt::format("{:{}}{}:", "", indent, key);
    if (entry.entries.empty()) out += ' ' + value(entry.value);
    if (!entry.comment.empty()) out += "  # " + on_one_line(entry.comment);
    out += '\n';
    write(entry.entries, indent + 2, out);
  }
}

void write_notes(std::string_view title, const std::vector<std::string>& lines, std::string& out) {
  if (lines.empty()) return;
  out += fmt::format("#\n# {}:\n", title);
  for (const std::string& line : lines) out += fmt::format("#   {}\n", on_one_line(line));
}

}  // namespace

YamlNode fragment_text(std::string_view text, const SourceLocation& where) {
  YamlNode node = yaml_scalar(std::string(text), where);
  node.quoted = !is_plain_word(text);
  return node;
}

YamlNode fragment_number(std::int64_t number, const SourceLocation& where) {
  return yaml_scalar(fmt::format("{}", number), where);
}

YamlNode fragment_flag(bool flag, const SourceLocation& where) {
  return yaml_scalar(flag ? "true" : "false", where);
}

YamlNode fragment_numbers(const std::vector<std::int64_t>& numbers, const SourceLocation& where) {
  YamlNode list;
  list.kind = YamlNode::Kind::kSequence;
  list.where = where;
  for (const std::int64_t number : numbers) list.items.push_back(fragment_number(number, where));
  return list;
}

YamlNode to_tree(const std::vector<FragmentEntry>& entries, const SourceLocation& where) {
  YamlNode map;
  map.kind = YamlNode::Kind::kMap;
  map.where = where;
  for (const FragmentEntry& entry : entries) {
    YamlNode value = entry.entries.empty() ? entry.value : to_tree(entry.entries, entry.value.where);
    const SourceLocation at = value.where;
    map.entries.push_back({.key = entry.key, .where = at, .value = std::move(value)});
  }
  return map;
}

std::string to_yaml(const Fragment& fragment) {
  std::string out;
  for (const std::string& line : fragment.head) out += fmt::format("# {}\n", on_one_line(line));
  write(fragment.entries, 0, out);
  write_notes("Assumed", fragment.assumed, out);
  write_notes("Left aside, since it changes neither time nor memory", fragment.ignored, out);
  write_notes("Missing before this is a scenario", fragment.missing, out);
  return out;
}

std::string human_count(std::int64_t count) {
  constexpr std::array<std::pair<double, const char*>, 4> kUnits{
      {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}}};
  const auto number = static_cast<double>(count);
  for (const auto& [size, unit] : kUnits)
    if (number >= 0.99995 * size) return fmt::format("{:.1f} {}", number / size, unit);
  return fmt::format("{}", count);
}

}  // namespace stagecraft
