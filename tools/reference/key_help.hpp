// Help for keys that the readers cannot provide: the meaning of a key, and its default where that follows
// from other values. Kinds, units, ranges, words and constant defaults come from the readers (survey.hpp).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/reference/survey.hpp"

namespace stagecraft {

struct KeyHelp {
  std::string_view path;
  std::string_view help;
  std::string_view fallback = {};  // where the reader has no constant: "what the GPUs leave"
  std::string_view schema = {};    // JSON Schema of what is read by hand
  std::string_view holds = {};     // in the page, of what is read by hand
};

[[nodiscard]] std::span<const KeyHelp> key_help(DocumentKind kind);
// nullptr where there is none.
[[nodiscard]] const KeyHelp* find_help(DocumentKind kind, std::string_view path);

// Keys without a word of help or a default, and words about keys that there are not.
[[nodiscard]] std::vector<std::string> gaps_of(DocumentKind kind, const Reference& reference);

// Required wherever it counts; not what is required beside other keys only, which has words about it.
[[nodiscard]] bool is_required(DocumentKind kind, const ReferenceKey& key);

// The default as a reader of the reference wants it: "1", "`gelu` (family: gpt), `swiglu` (family: llama)";
// empty where there is none to name (required, or a mapping).
[[nodiscard]] std::string fallback_of(DocumentKind kind, const ReferenceKey& key);

}  // namespace stagecraft
