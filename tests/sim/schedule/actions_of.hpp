// A line of passes as an order's text has them: "0F0 0F1 1B0".
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "sim/schedule/notation.hpp"

namespace stagecraft {

inline std::vector<Action> actions_of(const std::string& line) {
  std::vector<Action> actions;
  std::istringstream in(line);
  for (std::string word; in >> word;) {
    const auto parsed = parse_word(word);
    if (parsed)
      actions.insert(actions.end(), parsed->begin(), parsed->end());
    else
      ADD_FAILURE() << word << " is no pass";
  }
  return actions;
}

}  // namespace stagecraft
