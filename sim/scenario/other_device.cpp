#include "sim/scenario/other_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "formats/gpu_models.hpp"

namespace stagecraft {
namespace {

constexpr const char* kNodeDevice = "cluster.node.device";
constexpr const char* kNodeProfile = "cluster.node.profile";

// What to change: the profile, unless the device alone stands elsewhere than the node's other keys.
std::string key_to_change(const Scenario& scenario) {
  if (!scenario.group_profiles.empty()) return "cluster.nodes";
  if (scenario.origins.contains("profile")) return "profile";
  if (!scenario.origins.contains(kNodeProfile)) return "cluster.nodes";
  const std::string node = place_of(scenario, "cluster.node.gpus").file;
  const bool device_alone =
      place_of(scenario, kNodeDevice).file != node && place_of(scenario, kNodeProfile).file == node;
  return device_alone ? kNodeDevice : kNodeProfile;
}

std::string message_at(std::string_view key, const NodeSpec& node, const HardwareProfile& profile) {
  if (key == kNodeDevice)
    return fmt::format("is {}, and profile {} is of {}", node.device, profile.name, profile.device.name);
  if (key == "cluster.nodes")
    return fmt::format("nodes of {} have {}, and profile {} is of {}", in_quotes(node.name), node.device,
                       profile.name, profile.device.name);
  return fmt::format("is of {}, and the nodes have {}", profile.device.name, node.device);
}

std::string hint_at(std::string_view key, const NodeSpec& node, const HardwareProfile& profile) {
  const GpuModel* model = gpu_model_by_name(node.device);
  if (model != nullptr && !model->profile.empty()) return fmt::format("{} is of this device", model->profile);
  if (key == "profile" && !node.default_profile.empty())
    return fmt::format("{} is of this device", node.default_profile);
  return fmt::format("all prices are those of {}; docs/calibration.md says how a profile is made",
                     profile.device.name);
}

}  // namespace

std::vector<Diagnostic> other_devices(const Scenario& scenario) {
  std::vector<Diagnostic> warnings;
  if (!scenario.cluster || !scenario.profile) return warnings;
  const bool each_its_own = !scenario.group_profiles.empty();
  const std::size_t groups = each_its_own ? scenario.group_profiles.size() : 1;
  const std::string key = key_to_change(scenario);
  for (std::size_t i = 0; i < groups; ++i) {
    const NodeSpec& node = scenario.cluster->groups[i].node;
    const HardwareProfile& profile = each_its_own ? scenario.group_profiles[i] : *scenario.profile;
    if (is_same_gpu(node.device, profile.device.name)) continue;
    Diagnostic warning{.severity = Severity::kWarning,
                       .code = "other-device",
                       .where = place_of(scenario, key),
                       .path = key,
                       .message = message_at(key, node, profile),
                       .hint = hint_at(key, node, profile)};
    if (std::ranges::find(warnings, warning) == warnings.end()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace stagecraft
