#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <utility>

#include "base/text.hpp"
#include "base/usual_names.hpp"
#include "base/yaml.hpp"
#include "base/yaml_units.hpp"

namespace stagecraft {

namespace {

constexpr std::size_t kMaxUnknownKeys = 100;  // reported of one mapping
constexpr std::size_t kMaxPlaces = 4;         // in a hint
constexpr std::size_t kMaxKeysListed = 40;    // in one that has no better to say

// A value, its dotted path, and where mistakes in it are reported.
struct Value {
  const YamlNode& node;
  std::string path;
  Diagnostics& diagnostics;

  void error(std::string code, std::string message, std::string hint = {}) const {
    Diagnostic diagnostic{.code = std::move(code),
                          .where = node.where,
                          .path = path,
                          .message = std::move(message),
                          .hint = std::move(hint)};
    if (node.defined_at) diagnostic.notes = {{.where = *node.defined_at, .message = "value defined here"}};
    diagnostics.error(std::move(diagnostic));
  }
};

std::string joined_path(std::string_view path, std::string_view key) {
  if (path.empty() || key.empty()) return std::string(path.empty() ? key : path);
  return fmt::format("{}.{}", path, key);
}

std::string found(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return in_quotes(node.text);
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      break;
  }
  return "a mapping";
}

// The text of a single value; reports a list, a mapping or nothing.
std::optional<std::string> read_text(const Value& value, const char* expected) {
  if (value.node.kind == YamlNode::Kind::kScalar) return value.node.text;
  const bool nothing = value.node.kind == YamlNode::Kind::kNull;
  value.error(nothing ? "no-value" : "wrong-kind",
              fmt::format("expected {}, found {}", expected, found(value.node)),
              nothing ? "give it a value or remove the key" : "");
  return std::nullopt;
}

// Reads a text that must not stand in quotes.
std::optional<std::string> read_plain(const Value& value, const char* expected) {
  const auto text = read_text(value, expected);
  if (!text || !value.node.quoted) return text;
  value.error("wrong-kind", fmt::format("expected {}, found the text {}", expected, in_quotes(*text)),
              "numbers, true and false are written without quotes");
  return std::nullopt;
}

template <class T>
bool within(const Value& value, T number, const Limits<T>& limits) {
  if (number < limits.min) {
    value.error("out-of-range",
                fmt::format("{} is less than {}, the smallest allowed", value.node.text, limits.min));
  } else if (number > limits.max) {
    value.error("out-of-range",
                fmt::format("{} is more than {}, the largest allowed", value.node.text, limits.max));
  }
  return number >= limits.min && number <= limits.max;
}

std::optional<std::int64_t> read_integer(const Value& value, const Limits<std::int64_t>& limits) {
  const auto text = read_plain(value, "a whole number");
  if (!text) return std::nullopt;
  const auto number = parse_integer(*text);
  if (!number) {
    const auto real = parse_number(*text);
    const bool large = real && (*real >= 0x1p63 || *real < -0x1p63);
    value.error("bad-number", fmt::format("{} {}", in_quotes(*text),
                                          large ? "does not fit into 64 bits" : "is not a whole number"));
    return std::nullopt;
  }
  return within(value, *number, limits) ? number : std::nullopt;
}

std::optional<double> read_number(const Value& value, const Limits<double>& limits) {
  const auto text = read_plain(value, "a number");
  if (!text) return std::nullopt;
  const auto number = parse_number(*text);
  if (!number) {
    value.error("bad-number", fmt::format("{} is not a number", in_quotes(*text)));
    return std::nullopt;
  }
  return within(value, *number, limits) ? number : std::nullopt;
}

// true and false as YAML 1.2 writes them; yes, no, on and off are text there.
std::optional<bool> read_boolean(const Value& value) {
  const auto text = read_plain(value, "true or false");
  if (!text) return std::nullopt;
  if (*text == "true" || *text == "True" || *text == "TRUE") return true;
  if (*text == "false" || *text == "False" || *text == "FALSE") return false;
  value.error("bad-boolean", fmt::format("{} is neither true nor false", in_quotes(*text)),
              "write true or false");
  return std::nullopt;
}

template <class T>
std::optional<T> read_quantity(const Value& value, QuantityKind kind,
                               std::optional<T> (*parse)(std::string_view)) {
  const auto text = read_text(value, "a quantity");
  if (!text) return std::nullopt;
  const auto quantity = parse(*text);
  if (quantity) return quantity;
  QuantityMistake mistake = explain_bad_quantity(kind, *text);
  value.error(std::move(mistake.code), std::move(mistake.message), std::move(mistake.hint));
  return std::nullopt;
}

std::optional<Duration> read_duration(const Value& value) {
  return read_quantity(value, QuantityKind::kDuration, parse_duration);
}
std::optional<Bytes> read_bytes(const Value& value) {
  return read_quantity(value, QuantityKind::kBytes, parse_bytes);
}

// `path` ends in `key`, in any case.
bool ends_in(std::string_view path, std::string_view key) {
  const std::string_view end = path.substr(path.rfind('.') + 1);
  return end.size() == key.size() && edit_distance(end, key) == 0;
}

// The keys that `wrong` may have been meant as: all, but for those that its file gives beside it. Of these a slip
// of one letter may still be a leftover.
std::vector<std::string> keys_meant(const YamlEntry& wrong, const YamlNode& map,
                                    std::span<const std::string> known) {
  std::vector<std::string> keys;
  for (const std::string& key : known) {
    const YamlNode* given = map.find(key);
    if (given == nullptr || given->where.file != wrong.where.file || edit_distance(wrong.key, key) <= 1)
      keys.push_back(key);
  }
  return keys;
}

// A way out for who wrote `wrong` in a mapping of the keys `known`: what the field calls one of them, or the nearest.
std::string key_hint(const YamlEntry& entry, const YamlNode& map, std::span<const std::string> known) {
  const std::string& wrong = entry.key;
  const std::size_t colon = std::min(wrong.find(':'), wrong.size());
  if (colon < wrong.size() && std::ranges::find(known, wrong.substr(0, colon)) != known.end())
    return fmt::format("a space is missing behind the colon: {}: {}", wrong.substr(0, colon),
                       wrong.substr(colon + 1));
  const UsualName usual = key_called(wrong).value_or(UsualName{wrong, wrong});
  if (!usual.way.empty()) return std::string(usual.way);
  const std::string meant(usual.key);
  if (meant != wrong && std::ranges::find(known, meant) != known.end())
    return fmt::format("did you mean {}?", in_quotes(meant));
  const std::string nearest = suggest(wrong, keys_meant(entry, map, known), 0);
  if (!nearest.empty()) return nearest;
  if (!usual.section.empty())
    return fmt::format("did you mean {}?", in_quotes(joined_path(usual.section, meant)));
  if (known.empty() || known.size() > kMaxKeysListed) return {};
  return (known.size() == 1 ? "only " : "one of ") + join(known, ", ");
}

// A fallback, as a user would write it.
std::string as_written(const std::string& text) {
  return text;
}
std::string as_written(bool value) {
  return value ? "true" : "false";
}
std::string as_written(std::int64_t number) {
  return fmt::format("{}", number);
}
std::string as_written(double number) {
  return fmt::format("{}", number);
}
template <class Quantity>
std::string as_written(const Quantity& quantity) {
  return quantity == Quantity{} ? "0" : human(quantity);
}

template <class T>
std::optional<double> bound(T limit, T none) {
  return limit == none ? std::nullopt : std::optional(static_cast<double>(limit));
}

template <class T>
KeyForm form_of(KeyForm::Kind kind, const Limits<T>& limits, bool list = false) {
  return {.kind = kind,
          .list = list,
          .min = bound(limits.min, std::numeric_limits<T>::lowest()),
          .max = bound(limits.max, std::numeric_limits<T>::max())};
}

// 0 where the limits allow it: a caller that divides by what it required to be positive still may.
template <class T>
T harmless_value(const Limits<T>& limits) {
  return std::max(limits.min, std::min(limits.max, T{}));
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto entry = std::ranges::find(entries, key, &YamlEntry::key);
  return entry == entries.end() ? nullptr : &entry->value;
}

YamlNode* YamlNode::find(std::string_view key) {
  const auto entry = std::ranges::find(entries, key, &YamlEntry::key);
  return entry == entries.end() ? nullptr : &entry->value;
}

YamlNode yaml_scalar(std::string text, const SourceLocation& where) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = std::move(text);
  node.where = where;
  return node;
}

YamlMap::YamlMap(const YamlNode* node, std::string path, SourceLocation where, Diagnostics& diagnostics,
                 Origins* origins)
    : node_(node),
      path_(std::move(path)),
      where_(std::move(where)),
      diagnostics_(&diagnostics),
      origins_(origins) {
  if (node_ == nullptr) return;
  if (node_->kind == YamlNode::Kind::kMap) {
    KeySurvey* survey = diagnostics.survey();
    if (survey == nullptr || (path_.empty() && !survey->is_root(node_->where.file))) return;
    survey_ = survey;
    survey_->enter(path_);
    return;
  }
  const bool nothing = node_->kind == YamlNode::Kind::kNull;
  Value{*node_, path_, diagnostics}.error(nothing ? "no-value" : "not-a-mapping",
                                          fmt::format("expected a mapping, found {}", found(*node_)),
                                          nothing ? "give it entries or remove the key" : "");
  node_ = nullptr;
  refused_ = true;
}

bool YamlMap::has(std::string_view key) {
  return get(key) != nullptr;
}

const YamlNode* YamlMap::get(std::string_view key) {
  if (!is_known(key)) {
    known_.emplace_back(key);
    if (survey_ != nullptr) survey_->ask(path_, key);
  }
  const YamlNode* value = node_ == nullptr ? nullptr : node_->find(key);
  if (value != nullptr && origins_ != nullptr) origins_->insert_or_assign(path_of(key), value->where);
  return value;
}

YamlMap YamlMap::map(std::string_view key) {
  const YamlNode* value = get(key);
  note<std::string>(key, {.kind = KeyForm::Kind::kMap}, "");
  YamlMap inner(value, path_of(key), value == nullptr ? where_ : value->where, *diagnostics_, origins_);
  if (survey_ == nullptr) inner.survey_ = nullptr;
  return inner;
}

template <class T>
void YamlMap::note(std::string_view key, KeyForm form, const std::optional<T>& fallback) {
  if (survey_ == nullptr) return;
  survey_->read(path_, key, std::move(form), fallback ? std::optional(as_written(*fallback)) : std::nullopt);
}

void YamlMap::accepts(std::string_view key, KeyForm form) {
  note<std::string>(key, std::move(form), "");
}

template <class T, class Read>
T YamlMap::read(std::string_view key, const std::optional<T>& fallback, T harmless, Read read_value) {
  const YamlNode* node = get(key);
  if (node == nullptr) {
    if (!fallback && !refused_) error(key, "missing-key", "is required, but not given");
    return fallback.value_or(harmless);
  }
  return read_value(Value{*node, path_of(key), *diagnostics_}).value_or(fallback.value_or(harmless));
}

template <class T, class Read>
std::vector<T> YamlMap::read_list(std::string_view key, const std::optional<T>& fallback, Read read_item) {
  const YamlNode* node = get(key);
  if (node == nullptr) return fallback ? std::vector<T>{*fallback} : std::vector<T>{};
  std::vector<T> list;
  const auto take = [&](const YamlNode& item, std::string path) {
    if (auto value = read_item(Value{item, std::move(path), *diagnostics_}))
      list.push_back(*std::move(value));
  };
  if (node->kind != YamlNode::Kind::kSequence) take(*node, path_of(key));
  for (std::size_t i = 0; i < node->items.size(); ++i)
    take(node->items[i], fmt::format("{}.{}", path_of(key), i));
  return list;
}

std::int64_t YamlMap::integer(std::string_view key, Limits<std::int64_t> limits) {
  note(key, form_of(KeyForm::Kind::kInteger, limits), limits.fallback);
  return read<std::int64_t>(key, limits.fallback, harmless_value(limits),
                            [&](const Value& value) { return read_integer(value, limits); });
}

double YamlMap::number(std::string_view key, Limits<double> limits) {
  note(key, form_of(KeyForm::Kind::kNumber, limits), limits.fallback);
  return read<double>(key, limits.fallback, harmless_value(limits),
                      [&](const Value& value) { return read_number(value, limits); });
}

bool YamlMap::boolean(std::string_view key, std::optional<bool> fallback) {
  note(key, {.kind = KeyForm::Kind::kBoolean}, fallback);
  return read<bool>(key, fallback, false, read_boolean);
}

std::string YamlMap::name(std::string_view key, std::string fallback) {
  return printable(text(key, std::move(fallback)));
}

std::string YamlMap::text(std::string_view key, std::optional<std::string> fallback) {
  note(key, {.kind = KeyForm::Kind::kText}, fallback);
  return read<std::string>(key, fallback, {}, [](const Value& value) { return read_text(value, "a text"); });
}

std::size_t YamlMap::choice(std::string_view key, std::span<const std::string> names,
                            std::optional<std::size_t> fallback) {
  note(key, {.kind = KeyForm::Kind::kChoice, .words = {names.begin(), names.end()}},
       fallback ? std::optional(names[*fallback]) : std::nullopt);
  const std::size_t chosen = read_choice(key, names, fallback);
  if (survey_ != nullptr && !names.empty()) survey_->choose(path_, key, names[chosen]);
  return chosen;
}

std::size_t YamlMap::read_choice(std::string_view key, std::span<const std::string> names,
                                 std::optional<std::size_t> fallback) {
  return read<std::size_t>(key, fallback, 0, [&](const Value& value) -> std::optional<std::size_t> {
    const auto word = read_text(value, "a name");
    if (!word) return std::nullopt;
    const auto at = std::ranges::find(names, *word);
    if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
    value.error("unknown-name", fmt::format("{} is not known here", in_quotes(*word)), suggest(*word, names));
    return std::nullopt;
  });
}

Duration YamlMap::duration(std::string_view key, std::optional<Duration> fallback) {
  note(key, {.kind = KeyForm::Kind::kDuration}, fallback);
  return read<Duration>(key, fallback, Duration::zero(), read_duration);
}

Bytes YamlMap::bytes(std::string_view key, std::optional<Bytes> fallback) {
  note(key, {.kind = KeyForm::Kind::kBytes}, fallback);
  return read<Bytes>(key, fallback, Bytes(0), read_bytes);
}

// Rates divide: the harmless one is not zero.
Bandwidth YamlMap::bandwidth(std::string_view key, std::optional<Bandwidth> fallback) {
  note(key, {.kind = KeyForm::Kind::kBandwidth}, fallback);
  return read<Bandwidth>(key, fallback, Bandwidth(1), [](const Value& value) {
    return read_quantity(value, QuantityKind::kBandwidth, parse_bandwidth);
  });
}

FlopRate YamlMap::flop_rate(std::string_view key, std::optional<FlopRate> fallback) {
  note(key, {.kind = KeyForm::Kind::kFlopRate}, fallback);
  return read<FlopRate>(key, fallback, FlopRate(1), [](const Value& value) {
    return read_quantity(value, QuantityKind::kFlopRate, parse_flop_rate);
  });
}

std::vector<std::int64_t> YamlMap::integers(std::string_view key, Limits<std::int64_t> limits) {
  note(key, form_of(KeyForm::Kind::kInteger, limits, true), limits.fallback);
  return read_list<std::int64_t>(key, limits.fallback,
                                 [&](const Value& v) { return read_integer(v, limits); });
}

std::vector<double> YamlMap::numbers(std::string_view key, Limits<double> limits) {
  note(key, form_of(KeyForm::Kind::kNumber, limits, true), limits.fallback);
  return read_list<double>(key, limits.fallback, [&](const Value& v) { return read_number(v, limits); });
}

std::vector<std::string> YamlMap::texts(std::string_view key) {
  note<std::string>(key, {.kind = KeyForm::Kind::kText, .list = true}, {});
  return read_list<std::string>(key, {}, [](const Value& value) { return read_text(value, "a text"); });
}

std::vector<Duration> YamlMap::durations(std::string_view key) {
  note<Duration>(key, {.kind = KeyForm::Kind::kDuration, .list = true}, {});
  return read_list<Duration>(key, {}, read_duration);
}

std::vector<Bytes> YamlMap::byte_sizes(std::string_view key) {
  note<Bytes>(key, {.kind = KeyForm::Kind::kBytes, .list = true}, {});
  return read_list<Bytes>(key, {}, read_bytes);
}

std::string places_of_key(std::string_view key, std::span<const std::string> paths) {
  const std::optional<UsualName> usual = key_called(key);
  const std::string_view meant = usual ? usual->key : key;
  std::vector<std::string> places;
  for (const std::string& path : paths)
    if (ends_in(path, meant))
      places.push_back(in_quotes(path) + (path.find('.') == std::string::npos ? " at the top level" : ""));
  if (places.empty() || places.size() > kMaxPlaces) return {};
  return fmt::format("did you mean {}?", join(places, " or "));
}

bool YamlMap::is_known(std::string_view key) const {
  return std::ranges::find(known_, key) != known_.end();
}

bool YamlMap::has_unasked() const {
  return node_ != nullptr &&
         !std::ranges::all_of(node_->entries, [&](const YamlEntry& entry) { return is_known(entry.key); });
}

void YamlMap::finish() {
  if (node_ == nullptr) return;
  for (const std::string& key : known_)
    if (survey_ != nullptr && node_->find(key) == nullptr) survey_->absent(path_, key);
  std::size_t unknown = 0;
  for (const YamlEntry& entry : node_->entries) {
    if (is_known(entry.key)) continue;
    if (++unknown > kMaxUnknownKeys) continue;
    diagnostics_->error({.code = "unknown-key",
                         .where = entry.where,
                         .path = path_of(entry.key),
                         .message = "is not a known key",
                         .hint = key_hint(entry, *node_, known_)});
  }
  if (unknown <= kMaxUnknownKeys) return;
  diagnostics_->error({.code = "unknown-key",
                       .where = node_->where,
                       .path = path_,
                       .message = fmt::format("{} more keys are not known", unknown - kMaxUnknownKeys)});
}

void YamlMap::report(Severity severity, std::string_view key, Diagnostic diagnostic) {
  diagnostic.severity = severity;
  diagnostic.where = where_of(key);
  diagnostic.path = path_of(key);
  const YamlNode* value = node_ == nullptr || key.empty() ? node_ : node_->find(key);
  if (value != nullptr && value->defined_at) {
    diagnostic.notes = {{.where = *value->defined_at, .message = "value defined here"}};
  }
  diagnostics_->add(std::move(diagnostic));
}

void YamlMap::error(std::string_view key, std::string code, std::string message, std::string hint) {
  report(Severity::kError, key,
         {.code = std::move(code), .message = std::move(message), .hint = std::move(hint)});
}

void YamlMap::warning(std::string_view key, std::string code, std::string message, std::string hint) {
  report(Severity::kWarning, key,
         {.code = std::move(code), .message = std::move(message), .hint = std::move(hint)});
}

std::string YamlMap::path_of(std::string_view key) const {
  return joined_path(path_, key);
}

SourceLocation YamlMap::where_of(std::string_view key) const {
  const YamlNode* value = node_ == nullptr ? nullptr : node_->find(key);
  return value == nullptr ? where_ : value->where;
}

}  // namespace stagecraft
