// Errors by kind of job, for people and for pages: the sets and rows of each kind, what its held-out rows say,
// and how many rows constants were fitted on, with their error.
#pragma once

#include <string>
#include <vector>

#include "tools/validation/pooled_scores.hpp"

namespace stagecraft {

// Both are empty of no kinds.
[[nodiscard]] std::string kind_table_text(const std::vector<KindScore>& kinds);      // below a sentence
[[nodiscard]] std::string kind_table_markdown(const std::vector<KindScore>& kinds);  // the table alone

}  // namespace stagecraft
