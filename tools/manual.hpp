// The manual, made of the table of commands: a page for man(1), and docs/commands.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stagecraft {

struct Manual {
  std::string_view form;
  std::string (*text)();
};

// man (roff, man(7)) and markdown.
[[nodiscard]] std::span<const Manual> manuals();

}  // namespace stagecraft
