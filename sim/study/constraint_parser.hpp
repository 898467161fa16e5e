// The text of a constraint as terms.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/study/constraint.hpp"

namespace stagecraft {

struct ConstraintTerms {
  std::vector<std::string> names = {};       // each once
  std::vector<Constraint::Term> terms = {};  // parts before the whole: the last is the expression
  std::string mistake = {};                  // empty, or why the text is no expression
};

[[nodiscard]] ConstraintTerms parse_constraint(std::string_view text);

}  // namespace stagecraft
