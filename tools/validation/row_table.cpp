#include "tools/validation/row_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace stagecraft {
namespace {

// What they begin with, up to a '_'; empty of none.
std::string shared_begin(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::string begin = names.front();
  for (const std::string& name : names)
    begin.resize(static_cast<std::size_t>(std::ranges::mismatch(begin, name).in1 - begin.begin()));
  return begin.substr(0, begin.rfind('_') + 1);
}

}  // namespace

void RowTable::add(std::string name, std::vector<std::string> of_name) {
  names.push_back(std::move(name));
  figures.push_back(std::move(of_name));
}

std::string RowTable::str() const {
  const auto is_long = [&](const std::string& name) { return name.size() > longest_name; };
  const std::string begin = std::ranges::any_of(names, is_long) ? shared_begin(names) : "";
  const bool in_head = !begin.empty() && begin.size() < longest_name;
  std::vector<Align> columns = {Align::kLeft};
  columns.insert(columns.end(), aligns.begin(), aligns.end());
  TextTable table(columns);
  const auto add_row = [&](const std::string& first, const std::vector<std::string>& rest) {
    std::vector<std::string> cells = {first};
    cells.insert(cells.end(), rest.begin(), rest.end());
    table.row(std::move(cells));
  };
  add_row(in_head ? begin + "…" : what, head);
  std::vector<std::string> ends;
  for (std::size_t i = 0; i < names.size(); ++i) {
    ends.push_back(names[i].substr(begin.size()));
    add_row(is_long(ends.back()) ? "" : ends.back(), figures[i]);
  }
  const std::string text = table.str(2);
  const std::vector<std::string_view> lines = split(text, '\n');
  std::string out = begin.empty() || in_head ? "" : fmt::format("  {}s of {}…\n", what, begin);
  out += fmt::format("{}\n", lines.front());
  for (std::size_t i = 0; i < ends.size(); ++i)
    out += fmt::format("{}{}\n", is_long(ends[i]) ? "  " + ends[i] + "\n" : "", lines[i + 1]);
  return out;
}

}  // namespace stagecraft
