// A value put into a tree, as --set does, but from a tree of its own.
#pragma once

#include <string>

#include "base/yaml.hpp"

namespace stagecraft {

// Does what apply_override of base/yaml.hpp does, for a value that is read already: it keeps its places, and
// mistakes in the path are reported where it stands. A null takes the key away.
void apply_override(YamlNode& root, const std::string& path, const YamlNode& value, Diagnostics& diagnostics);

}  // namespace stagecraft
