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
  std::size_t longest_name = 0;  // beside the figures
  std::vector<Align> aligns;     // of the figures
  std::vector<std::string> head;
  std::vector<std::string> names = {};
  std::vector<std::vector<std::string>> figures = {};  // of each name
  std::string what = "row";                            // the names are of; the head of their column

  // Every line is indented by two.
  [[nodiscard]] std::string str() const;
};

}  // namespace stagecraft
