// Values of the command line, and values put into a tree as --set does, but from a tree of their own.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/yaml.hpp"

namespace stagecraft {

// YAML text of an option of the command line. It has no lines: `option` is the place of every value in it, and
// of its mistakes, which are reported at `path`.
[[nodiscard]] std::optional<YamlNode> parse_option(std::string_view text, const SourceLocation& option,
                                                   const std::string& path, Diagnostics& diagnostics);

// Does what apply_override of base/yaml.hpp does, for a value that is read already: it keeps its places, and
// mistakes in the path are reported where it stands. A null takes the key away.
void apply_override(YamlNode& root, const std::string& path, const YamlNode& value, Diagnostics& diagnostics);

}  // namespace stagecraft
