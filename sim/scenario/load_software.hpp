// What runs the job, `options.software`: the kernels that its authors wrote, and how well many GPUs keep in
// step.
//
// A preset of scenarios/software/ gives defaults for options that the scenario leaves open. A scenario that
// names none takes what its profile says is run on such devices: by default one software where every rank has
// whole weights, another where weights or gradients are sharded (ZeRO 2 and 3), unless that has no pipeline
// and no tensor ranks and the scenario has. Of several devices that
// say different things, the first is taken, with a warning.
#pragma once

#include "base/yaml.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

inline constexpr PresetKind kSoftwarePreset{"software", "scenarios/software"};

// Fills in options.fused_kernels, attention_kernel and what OptionsSpec lists behind `software`. `options` is
// that section of the scenario; does nothing without a profile.
void apply_software(YamlMap& options, const PresetPlaces& places, Scenario& scenario);

// Software that reduces behind the last backward (FSDP2) keeps weights gathered and gradients whole under a
// pipeline, under ZeRO 2 and 3 alone, and where the scenario gives neither itself.
void settle_sharded_pipeline(Scenario& scenario, bool reshard_given, bool whole_given);

}  // namespace stagecraft
