// A YAML value as JSON.
#pragma once

#include "base/json.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

// One value: mappings in their order, plain numbers, true and false without quotes, all other texts with.
void write_json(JsonWriter& json, const YamlNode& node);

}  // namespace stagecraft
