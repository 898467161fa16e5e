#include "formats/hf_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace stagecraft {

HfReader::HfReader(const YamlNode& config, std::string path, Diagnostics& diagnostics)
    : config_(config), path_(std::move(path)), diagnostics_(diagnostics) {}

const YamlEntry* HfReader::first(std::span<const std::string_view> keys) {
  const YamlEntry* found = nullptr;
  for (const std::string_view key : keys) {
    mark(key);
    const auto entry = std::ranges::find(config_.entries, key, &YamlEntry::key);
    if (entry == config_.entries.end() || entry->value.kind == YamlNode::Kind::kNull) continue;
    if (found == nullptr)
      found = &*entry;
    else
      refuse_other_value(*found, *entry);
  }
  return found;
}

// Two names for one value: whichever is read, the other would be without effect.
void HfReader::refuse_other_value(const YamlEntry& found, const YamlEntry& other) {
  const std::string &one = found.value.text, &two = other.value.text;
  const auto number = parse_number(one);
  if (one == two || (number && number == parse_number(two)) || wrong_.contains(other.key)) return;
  wrong_.insert({found.key, other.key});
  error(other.key, "contradiction", fmt::format("{}, and {} says {}", two, found.key, one),
        "keep one of the two");
}

bool HfReader::is_null(std::string_view key) const {
  const YamlNode* value = config_.find(key);
  return value != nullptr && value->kind == YamlNode::Kind::kNull;
}

// `read_value(map, key)` reports mistakes; nullopt then.
template <class T, class Read>
std::optional<HfValue<T>> HfReader::read(const YamlEntry* entry, Read read_value) {
  if (entry == nullptr || wrong_.contains(entry->key)) return std::nullopt;
  const ErrorWatch watch(diagnostics_);
  YamlMap map(&config_, path_, config_.where, diagnostics_);
  T value = read_value(map, entry->key);
  if (!watch.clean()) {
    wrong_.insert(entry->key);
    return std::nullopt;
  }
  return HfValue<T>{.value = std::move(value), .key = entry->key, .where = entry->value.where};
}

std::optional<HfValue<std::int64_t>> HfReader::integer(std::initializer_list<std::string_view> keys,
                                                       std::int64_t min) {
  return read<std::int64_t>(
      first(keys), [min](YamlMap& map, const std::string& key) { return map.integer(key, {.min = min}); });
}

void HfReader::report_missing(std::initializer_list<std::string_view> keys) {
  const std::vector<std::string> names(keys.begin(), keys.end());
  for (const std::string& key : names) {
    if (is_null(key)) return error(key, "no-value", "is null, and a number is required");
  }
  const std::vector<std::string> others(names.begin() + 1, names.end());
  error(names.front(), "missing-key", "is required, but not given",
        others.empty() ? "" : fmt::format("also read: {}", join(others, ", ")));
}

std::optional<HfValue<std::int64_t>> HfReader::required(std::initializer_list<std::string_view> keys,
                                                        std::int64_t min) {
  if (first(keys) != nullptr) return integer(keys, min);
  report_missing(keys);
  return std::nullopt;
}

std::optional<HfValue<bool>> HfReader::flag(std::initializer_list<std::string_view> keys) {
  return read<bool>(first(keys), [](YamlMap& map, const std::string& name) { return map.boolean(name); });
}

std::optional<HfValue<double>> HfReader::share(std::string_view key) {
  return read<double>(first({key}), [](YamlMap& map, const std::string& name) {
    return map.number(name, {.min = 0, .max = 1});
  });
}

std::optional<HfValue<std::string>> HfReader::text(std::initializer_list<std::string_view> keys) {
  return read<std::string>(first(keys), [](YamlMap& map, const std::string& name) { return map.text(name); });
}

std::optional<HfValue<std::vector<std::int64_t>>> HfReader::integers(std::string_view key) {
  return read<std::vector<std::int64_t>>(
      first({key}), [](YamlMap& map, const std::string& name) { return map.integers(name, {.min = 0}); });
}

std::optional<HfValue<std::vector<std::string>>> HfReader::texts(std::string_view key) {
  return read<std::vector<std::string>>(
      first({key}), [](YamlMap& map, const std::string& name) { return map.texts(name); });
}

std::string HfReader::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void HfReader::error(std::string_view key, std::string code, std::string message, std::string hint) {
  YamlMap(&config_, path_, config_.where, diagnostics_)
      .error(key, std::move(code), std::move(message), std::move(hint));
}

void HfReader::warning(std::string_view key, std::string code, std::string message, std::string hint) {
  YamlMap(&config_, path_, config_.where, diagnostics_)
      .warning(key, std::move(code), std::move(message), std::move(hint));
}

}  // namespace stagecraft
