// `assert: {mfu: ">= 0.4", peak_memory: "<= 72 GiB"}`: conditions that a run must meet.
#pragma once

#include <vector>

#include "base/yaml.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Reads the mapping `assert` of the root, in the order of assertion_metrics(). Reports unknown metrics,
// missing relations and wrong units.
[[nodiscard]] std::vector<Assertion> load_assertions(YamlMap& root);

}  // namespace stagecraft
