// A scenario before it is read: a study reads the file once and the tree many times.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

struct ScenarioTree {
  YamlNode root;
  std::string source;            // the path, or the name of an installed scenario, as it was given
  std::filesystem::path folder;  // base of relative paths
  // Are its degrees filled in later? Else a tree with mistakes is told those of its degrees as well.
  bool open_plan = false;
  bool needs_profile = true;  // else only its cluster is asked for
};
// Does it look like the file of a sweep (docs/sweeps.md), in place of a scenario's?
[[nodiscard]] bool looks_like_sweep(const YamlNode& root);
// `word` is resolved by find_scenario(). Reports mistakes; beside some there is a tree (parse_flawed_yaml).
[[nodiscard]] std::optional<ScenarioTree> load_tree(const std::filesystem::path& word, Library& library,
                                                    Diagnostics& diagnostics);
// A value for a path, as of --set, from a file of its own.
struct Assignment {
  std::string path;
  YamlNode value;
};
// The tree with these values, applied in order. Reports values that cannot be put where they belong.
[[nodiscard]] ScenarioTree assigned(const ScenarioTree& tree, std::span<const Assignment> assignments,
                                    Library& library, Diagnostics& diagnostics);
[[nodiscard]] std::optional<Scenario> read_scenario(const ScenarioTree& tree, Library& library,
                                                    Diagnostics& diagnostics);
// `assignments` apply in order before reading. Mistakes in them are reported at their values.
[[nodiscard]] std::optional<Scenario> load_scenario(const ScenarioTree& tree,
                                                    std::span<const Assignment> assignments, Library& library,
                                                    Diagnostics& diagnostics);
// --set on a tree. Reports.
void apply_overrides(ScenarioTree& tree, std::span<const std::string> overrides, Library& library,
                     Diagnostics& diagnostics);

// A scenario with more keys set, as with these --set behind all others; nothing where that is refused, with the
// reason in the diagnostics.
using Reload =
    std::function<std::optional<Scenario>(const std::vector<std::string>& set, Diagnostics& diagnostics)>;
// Of the tree as it is; its file is not read again. `library` has to outlive the answer.
[[nodiscard]] Reload reload_of(ScenarioTree tree, Library& library);

}  // namespace stagecraft
