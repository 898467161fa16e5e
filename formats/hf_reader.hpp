// The keys of a Hugging Face configuration, one by one: several names for one number, null for "not given".
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

// A value and the key that gave it.
template <class T>
struct HfValue {
  T value = {};
  std::string key = {};
  SourceLocation where = {};
};

// Every getter marks its keys as known. A value of the wrong kind is reported once and then counts as absent.
class HfReader {
 public:
  // `path` is that of the mapping, "" for the whole file.
  HfReader(const YamlNode& config, std::string path, Diagnostics& diagnostics);

  // The first of `keys` that is there and not null. Reports another of them that says something else.
  const YamlEntry* first(std::span<const std::string_view> keys);
  const YamlEntry* first(std::initializer_list<std::string_view> keys) {
    return first(std::span(keys.begin(), keys.size()));
  }
  [[nodiscard]] bool is_null(std::string_view key) const;  // there, and null

  std::optional<HfValue<std::int64_t>> integer(std::initializer_list<std::string_view> keys,
                                               std::int64_t min = 1);
  // Reports an absent number as well.
  std::optional<HfValue<std::int64_t>> required(std::initializer_list<std::string_view> keys,
                                                std::int64_t min = 1);
  std::optional<HfValue<bool>> flag(std::initializer_list<std::string_view> keys);
  std::optional<HfValue<bool>> flag(std::string_view key) { return flag({key}); }
  std::optional<HfValue<double>> share(std::string_view key);  // of [0, 1]
  std::optional<HfValue<std::string>> text(std::initializer_list<std::string_view> keys);
  std::optional<HfValue<std::vector<std::int64_t>>> integers(std::string_view key);
  std::optional<HfValue<std::vector<std::string>>> texts(std::string_view key);

  // Reports at the value of `key`, or at the mapping when absent.
  void error(std::string_view key, std::string code, std::string message, std::string hint = {});
  void warning(std::string_view key, std::string code, std::string message, std::string hint = {});
  [[nodiscard]] std::string path_of(std::string_view key) const;

  [[nodiscard]] const YamlNode& config() const { return config_; }
  [[nodiscard]] Diagnostics& diagnostics() const { return diagnostics_; }
  void mark(std::string_view key) { known_.emplace(key); }
  [[nodiscard]] bool is_known(std::string_view key) const { return known_.contains(key); }
  [[nodiscard]] const std::set<std::string, std::less<>>& known() const { return known_; }

 private:
  template <class T, class Read>
  std::optional<HfValue<T>> read(const YamlEntry* entry, Read read_value);
  void refuse_other_value(const YamlEntry& found, const YamlEntry& other);
  void report_missing(std::initializer_list<std::string_view> keys);

  const YamlNode& config_;
  std::string path_;
  Diagnostics& diagnostics_;
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> wrong_;  // reported: not a second time
};

}  // namespace stagecraft
