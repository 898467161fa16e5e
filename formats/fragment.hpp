// A scenario fragment: the values that an importer read from a file, as readable YAML.
//
// Every value has a trailing comment with its source. The closing comments list assumptions, ignored
// settings, and values that `stagecraft check` still misses.
//
//   model:
//     layers: 61  # num_hidden_layers
//
// Keys and comments may repeat text of an untrusted file. Line breaks, control characters and bytes that are
// no UTF-8 never reach the output (a '?' replaces each), and a text is quoted unless it is a plain word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml.hpp"

namespace stagecraft {

// `key: value  # comment`; where `value` is a mapping, its entries.
struct FragmentEntry {
  std::string key = {};
  YamlNode value = {};                      // a scalar or a list of scalars; ignored when there are entries
  std::string comment = {};                 // "num_hidden_layers"
  std::vector<FragmentEntry> entries = {};  // of a mapping
};

using Entries = std::vector<FragmentEntry>;

struct Fragment {
  std::vector<std::string> head = {};  // comment lines at the top
  std::vector<FragmentEntry> entries = {};
  std::vector<std::string> assumed = {};  // one line each
  std::vector<std::string> ignored = {};  // one line each: and why that changes neither time nor memory
  std::vector<std::string> missing = {};  // YAML lines to uncomment and fill in
};

// Scalars that stand at `where` in the file they were read from.
[[nodiscard]] YamlNode fragment_text(std::string_view text, const SourceLocation& where = {});
[[nodiscard]] YamlNode fragment_number(std::int64_t number, const SourceLocation& where = {});
[[nodiscard]] YamlNode fragment_flag(bool flag, const SourceLocation& where = {});
[[nodiscard]] YamlNode fragment_numbers(const std::vector<std::int64_t>& numbers,
                                        const SourceLocation& where);

// The tree that parsing `entries` would give, at the places of their values.
[[nodiscard]] YamlNode to_tree(const std::vector<FragmentEntry>& entries, const SourceLocation& where);

// The text; ends with a line break.
[[nodiscard]] std::string to_yaml(const Fragment& fragment);

// "671.0 B", "124.4 M": a count of parameters for people, one decimal.
[[nodiscard]] std::string human_count(std::int64_t count);

}  // namespace stagecraft
