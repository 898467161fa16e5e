// The software of the job, `options.software`: its kernels, and its constants for many GPUs.
//
// A preset of scenarios/software/ gives defaults for options that the scenario leaves open. A scenario
// without a preset takes its profile's default: one software for unsharded weights, another for sharded
// weights or gradients (ZeRO 2 and 3). Of the latter the profile may name others for models with a gated
// activation and for fp16; pipeline and tensor ranks get the first that supports them. If several devices
// differ, the first counts, with a warning.
#pragma once

#include "base/yaml.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

inline constexpr PresetKind kSoftwarePreset{"software", "scenarios/software"};

// Fills in options.fused_kernels, attention_kernel and the fields of OptionsSpec after `software`. `options`
// is that section of the scenario. Does nothing without a profile.
void apply_software(YamlMap& options, const PresetPlaces& places, Scenario& scenario);

// Reports a preset that is not there, for a scenario whose other mistakes keep it from being applied.
void check_software(YamlMap& options, const PresetPlaces& places, const OptionsSpec& spec);

}  // namespace stagecraft
