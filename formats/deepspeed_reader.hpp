// A tree of settings, read path by path: values read, values left to the trainer, and unread ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"
#include "formats/import_entries.hpp"

namespace stagecraft {

class SettingsReader {
 public:
  // Reports keys that differ in dashes and underscores only: one of the two would be without effect.
  SettingsReader(const YamlNode& root, std::string file, Diagnostics& diagnostics);

  // The value at "zero_optimization.stage"; keys may have dashes for underscores. nullptr where it is absent,
  // null or "auto". Marks it, with all that lies below, as read. Reports a section on the way to it that is none.
  const YamlNode* get(std::string_view path);
  std::optional<std::int64_t> integer(std::string_view path, std::int64_t min = 0,
                                      std::int64_t max = 1'000'000'000'000);
  std::optional<double> number(std::string_view path, double min, double max);
  std::optional<bool> flag(std::string_view path);
  bool flag(std::string_view path, bool fallback) { return flag(path).value_or(fallback); }
  std::string text(std::string_view path);  // empty where absent
  [[nodiscard]] const YamlNode& root() const { return root_; }
  [[nodiscard]] bool has(std::string_view path) const { return find(path) != nullptr; }
  [[nodiscard]] bool is_auto(std::string_view path) const;

  // The path; "default" where it is absent.
  [[nodiscard]] ImportSource source(std::string_view path) const;
  // The path; `derivation` where it is absent or "auto".
  [[nodiscard]] ImportSource source_or(std::string_view path, std::string derivation) const;
  [[nodiscard]] const std::string& file() const { return file_; }

  void error(std::string_view path, std::string code, std::string message, std::string hint = {});
  void warning(std::string_view path, std::string code, std::string message, std::string hint = {});
  void missing(Severity severity, std::string key, std::string message, std::string hint);
  void assume(std::string line) { assumed.push_back(std::move(line)); }

  // Warns about unread settings, and refuses one that is nearly the name of a setting that was asked for in
  // vain. Returns the lines of settings without effect.
  [[nodiscard]] std::vector<std::string> finish();
  // After finish(): is any key of the file one of DeepSpeed or GPT-NeoX?
  [[nodiscard]] bool knows_any() const { return known_ || !read_.empty(); }

  std::vector<std::string> assumed = {};  // for the closing comment

 private:
  [[nodiscard]] const YamlNode* find(std::string_view path) const;
  void refuse_twins(const YamlNode& map, const std::string& prefix);
  void check_sections(std::string_view path);
  // Is the section a model of pydantic, which takes "2" for 2 and "yes" for true? GPT-NeoX reads it itself.
  //   source  deepspeedai/DeepSpeed deepspeed/runtime/zero/config.py (DeepSpeedZeroConfig), config_utils.py.
  [[nodiscard]] bool is_lax(std::string_view path) const;
  [[nodiscard]] bool may_read(std::string_view path, const YamlNode& node) const;
  void visit(const YamlNode& map, const std::string& prefix);
  void leftover(const YamlEntry& entry, const std::string& path);
  void unknown(const YamlEntry& entry, const std::string& path);
  // The known path beside `path` whose last name resembles its own.
  [[nodiscard]] std::optional<std::string> near_path(std::string_view path) const;
  // Was the path, or what lies below it, asked for?
  [[nodiscard]] bool decides(std::string_view path) const;

  const YamlNode& root_;
  std::string file_;
  Diagnostics& diagnostics_;
  std::set<std::string, std::less<>> read_, asked_;
  std::vector<std::string> aside_;
  bool known_ = false;  // a key that is not read, but listed
};

// Is the configuration one of GPT-NeoX: has it layers, or pipeline stages?
[[nodiscard]] bool is_neox(const YamlNode& root);

}  // namespace stagecraft
