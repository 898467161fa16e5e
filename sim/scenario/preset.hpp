// Values that may be written in place or named: `model: gpt3-175b`, `node: ./my-node.yaml`, `fabric: {kind:
// fat-tree}`.
//
// A name is a file of the data directory. A word with a slash, or with the ending .yaml or .json, is a path
// relative to the scenario's folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml.hpp"
#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

struct PresetKind {
  std::string_view noun;    // "model", for messages
  std::string_view folder;  // folder in the data directory
};
inline constexpr PresetKind kModelPreset{"model", "scenarios/models"};
inline constexpr PresetKind kNodePreset{"node", "scenarios/nodes"};
inline constexpr PresetKind kFabricPreset{"fabric", "scenarios/fabrics"};
inline constexpr PresetKind kScenarioPreset{"scenario", "scenarios"};
inline constexpr PresetKind kProfilePreset{"profile", "calibrate/profiles"};

// What to say to who names none of these: the nearest name, or all of them where they are few.
[[nodiscard]] std::string hint_for(const std::string& name, PresetKind kind,
                                   const std::vector<std::string>& names, std::size_t list_up_to = 12);

// Is the text a path of a file, and no name?
[[nodiscard]] bool is_path(const std::string& name);
// A file without its folder and ending, or an installed name without its folder: a dot in "sc21-1.7b-32xA100"
// begins no ending.
[[nodiscard]] std::string stem_of(const std::string& word);

// Search places of names and paths.
struct PresetPlaces {
  Library& library;
  const std::filesystem::path& folder;  // folder of the scenario
};

// The file that `name` means. Reports at `key` of `map` when there is none, with the nearest name, or the
// list of names when it is short.
[[nodiscard]] std::optional<std::filesystem::path> find_preset(YamlMap& map, std::string_view key,
                                                               const std::string& name, PresetKind kind,
                                                               const PresetPlaces& places);
// The scenarios, and sweeps of them, that go by their names: "gpt3-175b-1024xA100", "goodput/oobleck",
// "sweeps/schedules".
[[nodiscard]] std::vector<std::string> installed_scenarios(const DataDirectory& data);
[[nodiscard]] std::optional<std::filesystem::path> installed_scenario(const std::string& name,
                                                                      const DataDirectory& data);
// The scenario for a word of a command line: a file, otherwise an installed scenario. Reports a name like that of
// an installed one, and that of another preset; any other word is left to the caller.
[[nodiscard]] std::optional<std::filesystem::path> find_scenario(const std::filesystem::path& word,
                                                                 Library& library, Diagnostics& diagnostics);
// Finds a preset as find_preset() does, without a report.
[[nodiscard]] std::optional<std::filesystem::path> preset_path(const std::string& name, PresetKind kind,
                                                               const PresetPlaces& places);

}  // namespace stagecraft
