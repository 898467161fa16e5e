// YAML in, read strictly.
//
// A text becomes a YamlNode tree of our own: plain values with places, no handle into a parser. What the
// parser would let through is refused here: duplicate keys, several documents, merge keys, alias bombs (a
// tree over kMaxYamlNodes nodes), nesting deeper than kMaxYamlDepth, files over kMaxYamlFileBytes, tags,
// binary rubbish, directories. On top, YamlMap reads a mapping key by key and remembers what was asked for:
// what nobody asked for is an error with the nearest known name.
//
// Readers never throw on a user's mistake: they report to the Diagnostics of the document and return the
// fallback (or a harmless value of the right kind), so that all mistakes of a file come out at once. The
// caller throws at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/key_survey.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace stagecraft {

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  std::string text = {};                          // of a scalar, as written and unquoted
  bool quoted = false;                            // "8" is text, 8 is a number
  SourceLocation where = {};                      // of the value; of the alias where one stands
  std::optional<SourceLocation> defined_at = {};  // of the anchored value, when an alias stands at `where`
  std::vector<YamlNode> items = {};               // of a sequence
  std::vector<YamlEntry> entries;                 // of a mapping, in the order of the file, keys unique

  // nullptr when this is no mapping or has no such key.
  [[nodiscard]] const YamlNode* find(std::string_view key) const;
  [[nodiscard]] YamlNode* find(std::string_view key);
};

struct YamlEntry {
  std::string key = {};
  SourceLocation where = {};  // of the key
  YamlNode value = {};
};

// As if `text` were written, unquoted, at `where`.
[[nodiscard]] YamlNode yaml_scalar(std::string text, const SourceLocation& where = {});

inline constexpr std::size_t kMaxYamlFileBytes = 64u << 20;
inline constexpr std::size_t kMaxYamlNodes = 1'000'000;
inline constexpr int kMaxYamlDepth = 64;

// Parse one document. On any mistake: reports to `diagnostics` and returns nullopt. `name` is used in places
// only.
[[nodiscard]] std::optional<YamlNode> parse_yaml(std::string_view text, const std::string& name,
                                                 Diagnostics& diagnostics);
// The same, but a tree in which keys are given twice or values have tags is returned beside their errors, so that
// its reader can say what else is wrong.
[[nodiscard]] std::optional<YamlNode> parse_flawed_yaml(std::string_view text, const std::string& name,
                                                        Diagnostics& diagnostics);
// Parses a file; "-" reads standard input. A file that is missing, unreadable, too large or a directory gives
// a located message and nullopt.
[[nodiscard]] std::optional<YamlNode> load_yaml_file(const std::filesystem::path& file,
                                                     Diagnostics& diagnostics);

namespace detail {
[[nodiscard]] Diagnostic yaml_too_large(const std::string& name);
}

// Put `value` (YAML text, for instance "4" or "[1, 2]") at a dotted path of `root`, creating mappings on the
// way; "null" takes the key away. `assignment` is "parallelism.tensor=4"; its places name "--set
// parallelism.tensor=4" as the file. Reports what cannot be read ("no '='", "training.precision is no
// mapping"); whether the key exists is for the reader of the tree to say.
void apply_override(YamlNode& root, const std::string& assignment, Diagnostics& diagnostics);

// "did you mean 'training.recompute'?": the paths that end in what the field calls `key`, in any case. Empty where
// there are none, or too many to help.
[[nodiscard]] std::string places_of_key(std::string_view key, std::span<const std::string> paths);

// What a number must satisfy. `fallback` absent = the key is required.
template <class T>
struct Limits {
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
  std::optional<T> fallback = {};
};

// Reads the entries of one mapping. Every getter marks its key as known. Call finish() once at the end.
class YamlMap {
 public:
  // `node` may be null (section absent): all fallbacks apply, required keys are reported at `where`.
  // Reports and behaves as empty when node is no mapping. `path` is the dotted path of this mapping, "" for
  // the root.
  YamlMap(const YamlNode* node, std::string path, SourceLocation where, Diagnostics& diagnostics,
          Origins* origins = nullptr);

  [[nodiscard]] bool present() const { return node_ != nullptr; }
  [[nodiscard]] bool has(std::string_view key);             // marks the key as known
  [[nodiscard]] const YamlNode* get(std::string_view key);  // marks as known; nullptr when absent
  [[nodiscard]] YamlMap map(
      std::string_view key);  // sub-mapping, empty when absent; shares diagnostics and origins

  std::int64_t integer(std::string_view key, Limits<std::int64_t> limits = {});
  double number(std::string_view key, Limits<double> limits = {});  // bare: counts and shares
  bool boolean(std::string_view key, std::optional<bool> fallback = {});
  std::string text(std::string_view key, std::optional<std::string> fallback = {});
  std::string name(std::string_view key, std::string fallback);  // printable(): outputs show it as it is
  // One of `names`; returns its index. An unknown word is reported with the nearest name.
  std::size_t choice(std::string_view key, std::span<const std::string> names,
                     std::optional<std::size_t> fallback = {});
  // The value of an enumeration, by the order of `names`.
  template <class Enum>
  Enum choose(std::string_view key, std::span<const std::string_view> names) {
    return static_cast<Enum>(choice(key, to_strings(names)));
  }
  template <class Enum>
  Enum choose(std::string_view key, std::span<const std::string_view> names, Enum fallback) {
    return static_cast<Enum>(choice(key, to_strings(names), static_cast<std::size_t>(fallback)));
  }

  // Quantities with units: "1 ms", "16 MiB", "900 GB/s", "200 Gb/s", "312 TFLOP/s". A bare number is an
  // error, except 0.
  Duration duration(std::string_view key, std::optional<Duration> fallback = {});
  Bytes bytes(std::string_view key, std::optional<Bytes> fallback = {});
  Bandwidth bandwidth(std::string_view key, std::optional<Bandwidth> fallback = {});
  FlopRate flop_rate(std::string_view key, std::optional<FlopRate> fallback = {});

  // A list, or one value standing for a list of one; empty when the key is absent and there is no fallback.
  std::vector<std::int64_t> integers(std::string_view key, Limits<std::int64_t> limits = {});
  std::vector<double> numbers(std::string_view key, Limits<double> limits = {});
  std::vector<std::string> texts(std::string_view key);
  std::vector<Duration> durations(std::string_view key);
  std::vector<Bytes> byte_sizes(std::string_view key);

  void finish();                           // reports every key that nobody asked for
  [[nodiscard]] bool has_unasked() const;  // keys that finish() would report

  // Tells a survey what a key may hold that the caller reads from get() by hand.
  void accepts(std::string_view key, KeyForm form);

  // Reports what the caller's own checks find, at the value of `key` (at the mapping when absent).
  void error(std::string_view key, std::string code, std::string message, std::string hint = {});
  void warning(std::string_view key, std::string code, std::string message, std::string hint = {});

  [[nodiscard]] std::string path_of(std::string_view key) const;
  [[nodiscard]] SourceLocation where_of(std::string_view key) const;
  [[nodiscard]] const SourceLocation& where() const { return where_; }
  [[nodiscard]] Diagnostics& diagnostics() const { return *diagnostics_; }

 private:
  template <class T, class Read>
  T read(std::string_view key, const std::optional<T>& fallback, T harmless, Read read_value);
  [[nodiscard]] bool is_known(std::string_view key) const;
  std::size_t read_choice(std::string_view key, std::span<const std::string> names,
                          std::optional<std::size_t> fallback);
  template <class T, class Read>
  std::vector<T> read_list(std::string_view key, const std::optional<T>& fallback, Read read_item);
  void report(Severity severity, std::string_view key, Diagnostic diagnostic);
  template <class T>
  void note(std::string_view key, KeyForm form, const std::optional<T>& fallback);

  const YamlNode* node_;
  bool refused_ = false;  // was no mapping: that is said once, and not again for each key it lacks
  std::string path_;
  SourceLocation where_;
  Diagnostics* diagnostics_;
  Origins* origins_;
  KeySurvey* survey_ = nullptr;  // of a mapping that is there
  std::vector<std::string> known_;
};

// Units in text, for the command line as well. nullopt when it is not a quantity of this kind.
// Numbers: decimal, `_` allowed between digits, `1e3` allowed; no hexadecimal, no octal, no nan, no inf.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);  // also 8.0 and 1e3
[[nodiscard]] std::optional<Duration> parse_duration(std::string_view text);     // ns us µs ms s min h days
[[nodiscard]] std::optional<Bytes> parse_bytes(std::string_view text);  // B kB KB MB GB TB KiB MiB GiB TiB
[[nodiscard]] std::optional<Bandwidth> parse_bandwidth(std::string_view text);  // (bytes or Mb Gb Tb)/s
[[nodiscard]] std::optional<FlopRate> parse_flop_rate(std::string_view text);   // GFLOP/s TFLOP/s PFLOP/s
// All four refuse what is negative; a leading zero as in 010 is refused, since YAML 1.1 reads it as eight.

}  // namespace stagecraft
