#include "sim/explain/inputs.hpp"

#include <fmt/format.h>

namespace stagecraft {

Origin key_origin(const Scenario& scenario, const std::string& path) {
  const auto written = scenario.origins.find(path);
  if (written == scenario.origins.end())
    return {.kind = OriginKind::kDefault, .text = path + " was not given"};
  return {.kind = OriginKind::kScenario, .text = path, .where = written->second};
}

Explanation key_input(const Scenario& scenario, const std::string& path, Amount value) {
  Explanation input = leaf(path, value, key_origin(scenario, path));
  if (input.origin.kind == OriginKind::kScenario) input.origin.text.clear();  // the name says it
  return input;
}

Origin profile_origin(const HardwareProfile& profile, Provenance provenance, const std::string& source) {
  return {.kind = OriginKind::kProfile,
          .text = fmt::format("{}, {}: {}", dated_name(profile), name(provenance), source)};
}

}  // namespace stagecraft
