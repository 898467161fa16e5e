// Choices by the names of an enumeration.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml.hpp"

namespace stagecraft {

[[nodiscard]] inline std::vector<std::string> choices(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

// The value whose name stands at `key`, by the order of `names`; `fallback` where none does.
template <class Enum>
Enum choose(YamlMap& map, std::string_view key, std::span<const std::string_view> names, Enum fallback) {
  return static_cast<Enum>(map.choice(key, choices(names), static_cast<std::size_t>(fallback)));
}

}  // namespace stagecraft
