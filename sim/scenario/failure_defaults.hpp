// Defaults of `failures:`: scenarios/failures/defaults.yaml.
//
// Each default in use is recorded with its range and source, so that a report can state the basis of its
// answer.
#pragma once

#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

class FailureDefaults {
 public:
  // Mistakes of the file go to `diagnostics`, once. Both references are kept.
  FailureDefaults(Library& library, Diagnostics& diagnostics, std::vector<AssumedInput>& assumed);

  // The value of entry `name` for the key at `path`.
  [[nodiscard]] double number(const std::string& path, const char* name);
  [[nodiscard]] Duration duration(const std::string& path, const char* name);
  [[nodiscard]] Bandwidth bandwidth(const std::string& path, const char* name);
  [[nodiscard]] std::string text(const std::string& path, const char* name);
  [[nodiscard]] std::vector<double> numbers(const std::string& path, const char* name);
  // A default that is no single value.
  [[nodiscard]] const YamlNode* node(const std::string& path, const char* name);

 private:
  template <class Read>
  auto read(const std::string& path, const char* name, Read read_value);

  const YamlNode* tree_;
  Diagnostics& diagnostics_;
  std::vector<AssumedInput>& assumed_;
};

// A mapping of the scenario whose missing keys have defaults. `name`: of the entry in the defaults, where it
// is not the key.
class DefaultedMap {
 public:
  DefaultedMap(YamlMap& map, FailureDefaults& defaults) : map_(map), defaults_(defaults) {}

  double number(const char* key, Limits<double> limits, const char* name = nullptr);
  std::int64_t integer(const char* key, Limits<std::int64_t> limits, const char* name = nullptr);
  Duration duration(const char* key, const char* name = nullptr);
  Bandwidth bandwidth(const char* key, const char* name = nullptr);

  [[nodiscard]] YamlMap& map() const { return map_; }
  [[nodiscard]] FailureDefaults& defaults() const { return defaults_; }

 private:
  YamlMap& map_;
  FailureDefaults& defaults_;
};

}  // namespace stagecraft
