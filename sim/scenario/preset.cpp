#include "sim/scenario/preset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "sim/scenario/node_hint.hpp"

namespace stagecraft {

namespace {

namespace fs = std::filesystem;

struct PresetKey {
  PresetKind kind;
  const char* key;  // of a scenario
};
constexpr PresetKey kPresetKeys[] = {{kModelPreset, "model"},
                                     {kNodePreset, "cluster.node"},
                                     {kFabricPreset, "cluster.fabric"},
                                     {kProfilePreset, "profile"}};

// "it is a model: a scenario names it as `model`", where a preset has this name.
std::string preset_words(const std::string& name, const DataDirectory& data) {
  for (const PresetKey& preset : kPresetKeys) {
    const std::vector<std::string> names = data.names(std::string(preset.kind.folder));
    if (std::ranges::find(names, name) != names.end())
      return fmt::format("{} is a {}: a scenario names it as `{}`", in_quotes(name), preset.kind.noun,
                         preset.key);
  }
  return {};
}

// Of a word that is no file: empty where no scenario and no preset is like it.
std::string scenario_hint(const std::string& name, const std::vector<std::string>& names,
                          const DataDirectory& data) {
  const std::string preset = preset_words(name, data);
  std::string near = suggest(name, names, 0);
  std::vector<std::string> longer;
  for (const std::string& other : names)
    if (name.size() >= 3 && other.starts_with(name)) longer.push_back(other);
  if (near.empty() && !longer.empty()) near = "installed: " + join(longer, ", ") + ".";
  if (near.empty()) return preset;
  return near + " " + (preset.empty() ? "`stagecraft doctor` lists what is installed" : preset);
}

}  // namespace

std::string hint_for(const std::string& name, PresetKind kind, const std::vector<std::string>& names,
                     std::size_t list_up_to) {
  std::string nearest = kind.folder == kNodePreset.folder ? node_hint(name, names) : std::string();
  if (nearest.empty()) nearest = suggest(name, names, list_up_to);
  if (nearest.starts_with("did you mean")) return nearest + " `stagecraft doctor` lists what is installed";
  return nearest.empty() ? "`stagecraft doctor` lists what is installed" : nearest;
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml") ||
         name.ends_with(".json");
}

std::string stem_of(const std::string& word) {
  const fs::path last = fs::path(word).filename();
  return (is_path(last.string()) ? last.stem() : last).string();
}

std::optional<fs::path> preset_path(const std::string& name, PresetKind kind, const PresetPlaces& places) {
  if (name.empty() || name.find('\0') != std::string::npos) return std::nullopt;
  const fs::path file =
      is_path(name) ? places.folder / name : places.library.data().root / kind.folder / (name + ".yaml");
  std::error_code ignored;  // an unreadable path cannot be read either
  return fs::is_regular_file(file, ignored) ? std::optional(file) : std::nullopt;
}

std::optional<fs::path> find_preset(YamlMap& map, std::string_view key, const std::string& name,
                                    PresetKind kind, const PresetPlaces& places) {
  if (auto file = preset_path(name, kind, places)) return file;
  if (is_path(name))
    map.error(key, "no-such-file", fmt::format("{} is not a file", in_quotes(name)),
              "relative paths are relative to the scenario's folder");
  else
    map.error(key, "unknown-name",
              fmt::format("{} is not a known {}, nor a file", in_quotes(name), kind.noun),
              hint_for(name, kind, places.library.data().names(std::string(kind.folder))));
  return std::nullopt;
}

std::vector<std::string> installed_scenarios(const DataDirectory& data) {
  const std::string folder(kScenarioPreset.folder);
  std::vector<std::string> names = data.names(folder);
  for (const std::string& part : {std::string("goodput/"), std::string("search/"), std::string("sweeps/")})
    for (const std::string& name : data.names(folder + "/" + part)) names.push_back(part + name);
  std::erase(names, "search/space");  // what any search varies
  return names;
}

std::optional<fs::path> installed_scenario(const std::string& name, const DataDirectory& data) {
  const std::vector<std::string> names = installed_scenarios(data);
  if (std::ranges::find(names, name) == names.end()) return std::nullopt;
  return data.root / kScenarioPreset.folder / (name + ".yaml");
}

std::optional<fs::path> find_scenario(const fs::path& word, Library& library, Diagnostics& diagnostics) {
  const std::string name = word.string();
  const DataDirectory& data = library.data();
  std::error_code ignored;
  if (name == "-" || data.texts.contains(name) || fs::exists(word, ignored)) return word;
  if (auto installed = installed_scenario(name, data)) return installed;
  if (is_path(name) || fs::exists(name + ".yaml", ignored)) return word;
  std::string hint = scenario_hint(name, installed_scenarios(data), data);
  if (hint.empty()) return word;
  diagnostics.error({.code = "no-such-file",
                     .where = {.file = name},
                     .message = "no such file, nor an installed scenario",
                     .hint = std::move(hint)});
  return std::nullopt;
}

}  // namespace stagecraft
