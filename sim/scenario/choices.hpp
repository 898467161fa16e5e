// The names of an enumeration in the form that YamlMap::choice reads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

[[nodiscard]] inline std::vector<std::string> choices(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

}  // namespace stagecraft
