#include "tools/validation/known_sources.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

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

struct Version {
  std::string source, commit;  // the commit's first digits
};

Version version_of(const std::string& origin) {
  constexpr std::string_view kGithub = "https://github.com/";
  constexpr std::size_t kDigits = 8;
  const std::size_t at = origin.find(" @");
  std::string source = origin.substr(0, at);
  std::ranges::transform(source, source.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (source.starts_with(kGithub)) source.erase(0, kGithub.size());
  return {.source = std::move(source),
          .commit = at == std::string::npos ? "" : origin.substr(at + 2, kDigits)};
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
                    .why = map.text("why")};
  if (!known.instead && !known.unsaid && !map.has("memory_figure"))
    map.error("source", "missing-key", "nothing is said of it", "add `instead`, `unsaid` or `memory_figure`");
  if (map.has("memory_figure"))
    known.memory_figure = map.choose<MemoryFigure>("memory_figure", kMemoryFigureNames);
  return known;
}

}  // namespace

bool KnownSource::is_of(const YamlNode& scenario) const {
  return !where || has_all(scenario, *where);
}

bool KnownSource::complete(YamlNode& scenario) const {
  const bool replaced = instead && write(*instead, true, scenario);
  const bool filled = unsaid && write(*unsaid, false, scenario);
  return replaced || filled;
}

std::vector<KnownSource> load_known_sources(const std::filesystem::path& file, Diagnostics& diagnostics) {
  std::vector<KnownSource> out;
  const std::optional<YamlNode> root = load_yaml_file(file, diagnostics);
  if (!root) return out;
  if (root->kind != YamlNode::Kind::kSequence)
    diagnostics.error({.code = "wrong-kind",
                       .where = root->where,
                       .path = "",
                       .message = "this is no list of known sources",
                       .hint = "an entry is `- {source: owner/repository, unsaid: {…}, why: …}`"});
  for (const YamlNode& item : root->items) {
    YamlMap map(&item, "", item.where, diagnostics);
    out.push_back(read_known(map));
    map.finish();
  }
  return out;
}

std::vector<KnownSource> known_of(const std::vector<KnownSource>& sources, const std::string& origin) {
  std::vector<KnownSource> out;
  const Version asked = version_of(origin);
  std::ranges::copy_if(sources, std::back_inserter(out), [&](const KnownSource& known) {
    const Version of = version_of(known.source);
    return of.source == asked.source && (of.commit.empty() || of.commit == asked.commit);
  });
  return out;
}

}  // namespace stagecraft
