// Rows of calibrate/published/data/resilience_analytic_oracles.yaml, read for the tests.
#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml.hpp"

namespace stagecraft::oracles {

inline std::vector<YamlNode> rows(std::string_view key) {
  Diagnostics diagnostics;
  const std::string file =
      std::string(STAGECRAFT_SOURCE_DIR) + "/calibrate/published/data/resilience_analytic_oracles.yaml";
  const auto document = load_yaml_file(file, diagnostics);
  if (!document || !document->find(key) || document->find(key)->items.empty()) {
    ADD_FAILURE() << file << " has no rows of " << key;
    return {};
  }
  return document->find(key)->items;
}

inline const std::string& text(const YamlNode& row, std::string_view key) {
  static const std::string none;
  const YamlNode* node = row.find(key);
  if (node) return node->text;
  ADD_FAILURE() << "no " << key;
  return none;
}

inline double number(const YamlNode& row, std::string_view key) {
  const std::string& digits = text(row, key);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  EXPECT_TRUE(error == std::errc{} && end == digits.data() + digits.size()) << key << ": " << digits;
  return value;
}
inline int integer(const YamlNode& row, std::string_view key) {
  return static_cast<int>(number(row, key));
}

// Expects a value to 1e-8, or to half a unit of the last digit that the file gives where it gives fewer.
inline void expect_number(const YamlNode& row, std::string_view key, double value) {
  const std::string& digits = text(row, key);
  const std::size_t point = digits.find('.');
  const double unit =
      point == std::string::npos ? 0 : std::pow(10.0, -static_cast<double>(digits.size() - point - 1));
  const double expected = number(row, key);
  EXPECT_NEAR(value, expected, 0.5001 * unit + 1e-8 * std::abs(expected))
      << "line " << row.where.line << ", " << key;
}

}  // namespace stagecraft::oracles
