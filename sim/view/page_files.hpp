// The files of sim/view/page, as they were when the program was built (cmake/embed_page.cmake).
#pragma once

#include <span>
#include <string_view>

namespace stagecraft {

[[nodiscard]] std::string_view page_style();
// The scripts in the order in which a page runs them.
[[nodiscard]] std::span<const std::string_view> page_scripts();

}  // namespace stagecraft
