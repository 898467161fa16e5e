// The rows of a published set, or sets, for people: their names and figures, within 80 columns.
//
//   What all names begin with, up to a '_', is said once where one of them is long. A name that still leaves
//   no room for its figures has a line of its own, above them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace stagecraft {

struct RowTable {
  std::size_t longest_name = 0;  // that stands beside its figures
  std::vector<Align> aligns;     // of the figures
  std::vector<std::string> head;
  std::string what = "row";  // what the names are of: the head of their column
  std::vector<std::string> names = {};
  std::vector<std::vector<std::string>> figures = {};  // of each name

  void add(std::string name, std::vector<std::string> of_name);
  // Every line is indented by two.
  [[nodiscard]] std::string str() const;
};

}  // namespace stagecraft
