// A YAML value as JSON.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

// One value: mappings in their order, plain numbers, true and false without quotes, all other texts with.
void write_json(JsonWriter& json, const YamlNode& node);
// The value that `yaml` is the text of; the text itself where it is none, as `>= 0.4`.
void write_json_of_yaml(JsonWriter& json, const std::string& yaml);

}  // namespace stagecraft
