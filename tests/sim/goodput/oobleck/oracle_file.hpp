// The planner's oracles: rows of calibrate/published/data, read for the tests.
#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml.hpp"

namespace stagecraft {

inline YamlNode oracle_rows(std::string_view file, std::string_view key) {
  Diagnostics diagnostics;
  auto document = load_yaml_file(
      std::string(STAGECRAFT_SOURCE_DIR) + "/calibrate/published/data/" + std::string(file), diagnostics);
  if (!document || !document->find(key) || document->find(key)->items.empty()) {
    ADD_FAILURE() << file << " has no rows of " << key;
    return {};
  }
  return *document->find(key);
}

inline int to_int(const YamlNode& node) {
  int value = 0;
  const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
  EXPECT_EQ(error, std::errc{}) << node.text;
  EXPECT_EQ(end, node.text.data() + node.text.size()) << node.text;
  return value;
}
inline int integer(const YamlNode& row, std::string_view key) {
  const YamlNode* node = row.find(key);
  if (node) return to_int(*node);
  ADD_FAILURE() << "no " << key;
  return 0;
}
inline std::vector<int> integers(const YamlNode& list) {
  std::vector<int> out;
  for (const YamlNode& item : list.items) out.push_back(to_int(item));
  return out;
}

}  // namespace stagecraft
