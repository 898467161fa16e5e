// The sections of a scenario for model and machine: model, cluster, profile.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/model_spec.hpp"
#include "sim/scenario/preset.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// A name, a path or a mapping; required. Origins of a preset's values lie in its file. A path to a .json is a
// Hugging Face configuration; a path to a scenario means the mapping `model:` in it.
// What is assumed of a config.json goes to `assumed`.
[[nodiscard]] std::optional<ModelSpec> load_model_section(YamlMap& root, const PresetPlaces& places,
                                                          Origins& origins,
                                                          std::vector<std::string>& assumed);
// Does `model` name a Hugging Face configuration?
[[nodiscard]] bool is_hf_model(YamlMap& root);

// `cluster:`, both nullopt where it is absent (the caller knows whether it may be). Mistakes are reported;
// beside some, as a wrong fabric, its nodes and GPUs can still be counted.
struct ClusterSection {
  std::optional<ClusterSpec> whole;    // without a mistake
  std::optional<ClusterSpec> counted;  // its nodes and GPUs are as they were written
};
[[nodiscard]] ClusterSection load_cluster_section(YamlMap& root, const PresetPlaces& places,
                                                  Origins& origins);

// The file of `profile:`, else of the cluster's default. nullopt when there is none: reported when `required`
// or named.
[[nodiscard]] std::optional<std::filesystem::path> find_profile(YamlMap& root, const ClusterSpec* cluster,
                                                                bool required, const PresetPlaces& places);

[[nodiscard]] bool has_several_devices(const ClusterSpec& cluster);
// The default profile of each group's node in a cluster with several devices. Empty with an error where a
// node has none, or where `profile:` names one for all.
[[nodiscard]] std::vector<HardwareProfile> load_group_profiles(YamlMap& root, const ClusterSpec& cluster,
                                                               const PresetPlaces& places);

}  // namespace stagecraft
