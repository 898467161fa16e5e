// The traces that scenarios name: a file beside the scenario, or one of scenarios/traces.
#pragma once

#include <string>

#include "base/yaml.hpp"
#include "sim/goodput/trace.hpp"
#include "sim/scenario/preset.hpp"

namespace stagecraft {

// `name`: a path relative to the scenario's folder, or the name of a file of scenarios/traces, with or
// without its .csv. Reports at `key` of `map` when there is none; mistakes of the file are reported in the
// file.
[[nodiscard]] const Trace* find_trace(YamlMap& map, const char* key, const std::string& name,
                                      const PresetPlaces& places);

}  // namespace stagecraft
