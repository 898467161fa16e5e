#include "tools/validation/known_sources.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace stagecraft {
namespace {

bool has_all(const YamlNode& scenario, const YamlNode& wanted) {
  if (wanted.kind != YamlNode::Kind::kMap) return scenario.text == wanted.text;
  return std::ranges::all_of(wanted.entries, [&](const YamlEntry& entry) {
    const YamlNode* value = scenario.find(entry.key);
    return value != nullptr && has_all(*value, entry.value);
  });
}

// Writes `keys` into a mapping, over what it says (`replace`) or beside it. Did anything change?
bool write(const YamlNode& keys, bool replace, YamlNode& into) {
  bool changed = false;
  for (const YamlEntry& entry : keys.entries) {
    YamlNode* const said = into.find(entry.key);
    const bool both_map =
        said != nullptr && said->kind == YamlNode::Kind::kMap && entry.value.kind == YamlNode::Kind::kMap;
    if (both_map) {
      changed |= write(entry.value, replace, *said);
    } else if (said == nullptr) {
      into.entries.push_back(entry);
      changed = true;
    } else if (replace) {
      *said = entry.value;
      changed = true;
    }
  }
  return changed;
}

std::optional<YamlNode> keys_of(YamlMap& map, std::string_view key) {
  if (!map.map(key).present()) return std::nullopt;
  return *map.get(key);
}

KnownSource read_known(YamlMap& map) {
  KnownSource known{.source = map.text("source"),
                    .where = keys_of(map, "where"),
                    .instead = keys_of(map, "instead"),
                    .unsaid = keys_of(map, "unsaid"),
                    .why = map.texts("why")};
  if (map.has("memory_figure"))
    known.memory_figure = map.choose<MemoryFigure>("memory_figure", kMemoryFigureNames);
  return known;
}

}  // namespace

bool KnownSource::complete(YamlNode& scenario) const {
  if (where && !has_all(scenario, *where)) return false;
  const bool replaced = instead && write(*instead, true, scenario);
  const bool filled = unsaid && write(*unsaid, false, scenario);
  return replaced || filled;
}

std::vector<KnownSource> load_known_sources(const std::filesystem::path& file, Diagnostics& diagnostics) {
  std::vector<KnownSource> out;
  const std::optional<YamlNode> root = load_yaml_file(file, diagnostics);
  if (!root) return out;
  for (const YamlNode& item : root->items) {
    YamlMap map(&item, "", item.where, diagnostics);
    out.push_back(read_known(map));
    map.finish();
  }
  return out;
}

std::vector<KnownSource> known_of(const std::vector<KnownSource>& sources, const std::string& origin) {
  std::vector<KnownSource> out;
  const std::string repository = origin.substr(0, origin.find(" @"));
  std::ranges::copy_if(sources, std::back_inserter(out), [&](const KnownSource& known) {
    return known.source == origin || known.source == repository;
  });
  return out;
}

}  // namespace stagecraft
