// Lines of a text report: a head of at most 16 columns, then text, in 80 columns together.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/units.hpp"

namespace stagecraft {

inline constexpr std::size_t kTextWidth = 80 - 17;  // of what follows the head

[[nodiscard]] std::string headed_line(std::string_view head, std::string_view text);

// Broken behind `between` where a line would pass the width: between words, or between the items of a list.
[[nodiscard]] std::string wrapped_lines(std::string_view head, std::string_view text,
                                        std::string_view between = " ");

// Broken at blanks; what follows the first line is indented by two columns.
[[nodiscard]] std::string hanging_lines(std::string_view head, std::string text);

// part / whole; 0 of nothing.
[[nodiscard]] double share_of(Duration part, Duration whole);

}  // namespace stagecraft
