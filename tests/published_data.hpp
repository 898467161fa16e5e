// The published tables in calibrate/published/data, as they are written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/yaml.hpp"

namespace stagecraft::published {

inline YamlNode table(const std::string& name) {
  Diagnostics diagnostics;
  std::optional<YamlNode> node =
      load_yaml_file(STAGECRAFT_SOURCE_DIR "/calibrate/published/data/" + name + ".yaml", diagnostics);
  SC_CHECK(node.has_value(), "a published table cannot be read");
  return *std::move(node);
}

inline const YamlNode& at(const YamlNode& node, std::string_view key) {
  const YamlNode* found = node.find(key);
  SC_CHECK(found != nullptr, "a published table lacks the key " + std::string(key));
  return *found;
}

inline double number(const YamlNode& node) {
  return parse_number(node.text).value();
}

inline std::int64_t count(const YamlNode& node) {
  return parse_integer(node.text).value();
}

}  // namespace stagecraft::published
