// What readers ask of mappings: the reference of a file format, told by the reader itself.
//
// A survey that hangs on the Diagnostics of a document is told of each key that a YamlMap is asked for: what
// it may hold, within which limits, and what holds when it is absent. Nobody writes that down a second time:
// docs/scenario.md and the JSON Schemas are made from surveys of documents that visit every branch of the
// loader (tools/reference/).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

// One thing that a key may hold.
struct KeyForm {
  enum class Kind {
    kInteger,
    kNumber,
    kBoolean,
    kText,
    kChoice,
    kDuration,
    kBytes,
    kBandwidth,
    kFlopRate,
    kMap,   // keys of its own
    kMaps,  // a list of such
    kAny    // what the caller reads by hand
  };
  Kind kind = Kind::kAny;
  bool list = false;  // a list of them as well
  std::optional<double> min = {};
  std::optional<double> max = {};
  std::vector<std::string> words = {};  // of a choice

  friend bool operator==(const KeyForm&, const KeyForm&) = default;
};

// One key, under one value of the key that says which others count (`kind: weibull`; "" where none does).
struct SurveyedKey {
  std::vector<KeyForm> forms = {};  // each once, in the order of asking; empty: nobody asked what it holds
  std::set<std::string> fallbacks = {};  // what holds when it is absent, as a user would write it
  bool asked_without_fallback = false;
  bool seen_absent = false;  // of a mapping that was there and read to its end
};

// Paths are dotted; items of a list stand as "[]" ("cluster.nodes[].node") and keys that are numbers as
// "<n>".
class KeySurvey {
 public:
  // `document` is the file whose root is surveyed; mappings of other files count where they stand for a key
  // of it.
  explicit KeySurvey(std::string document) : document_(std::move(document)) {}

  struct Entry {
    std::string path = {};
    std::map<std::string, SurveyedKey> by_choice = {};  // "kind: weibull" -> what is known there
  };
  // The keys in the order in which they were first asked for.
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

  // A mapping without a path is the root of a document: of this one?
  [[nodiscard]] bool is_root(const std::string& file) const { return file == document_; }

  // Told by YamlMap. `map` is the path of the mapping as messages write it.
  void enter(const std::string& map);
  void ask(const std::string& map, std::string_view key);
  void read(const std::string& map, std::string_view key, KeyForm form,
            const std::optional<std::string>& fallback);
  void choose(const std::string& map, std::string_view key, const std::string& word);
  void absent(const std::string& map, std::string_view key);

 private:
  SurveyedKey* find(const std::string& map, std::string_view key);

  std::string document_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> index_;
  std::map<std::string, std::string> choices_;  // of each mapping, by its path as messages write it
};

}  // namespace stagecraft
