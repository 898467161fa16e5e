#include "sim/scenario/device_modes.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace stagecraft {
namespace {

// "fp32, fp16, bf16"
std::string precisions_of(const HardwareProfile& profile) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::size(kPrecisionNames); ++i)
    if (profile.supports(static_cast<Precision>(i))) names.emplace_back(kPrecisionNames[i]);
  return join(names, ", ");
}

void check_precision(const Scenario& scenario, Diagnostics& diagnostics) {
  const std::string_view precision = kPrecisionNames[static_cast<std::size_t>(scenario.training.precision)];
  for (const HardwareProfile* profile : profiles_of(scenario)) {
    if (profile->supports(scenario.training.precision)) continue;
    diagnostics.error(
        {.code = "not-supported-by-device",
         .where = place_of(scenario, "training.precision"),
         .path = "training.precision",
         .message = profile->device.name + " has no " + std::string(precision) + " mode",
         .hint = precisions_of(*profile) + " are there, or name the profile of another device"});
  }
}

void check_fp8_recipe(const Scenario& scenario, Diagnostics& diagnostics) {
  if (scenario.training.precision != Precision::kFp8) return;
  const Fp8Recipe recipe = scenario.options.fp8_recipe;
  for (const HardwareProfile* profile : profiles_of(scenario)) {
    const std::optional<Sourced<double>>* factor = profile->gemm.block_factor(recipe);
    if (factor == nullptr || factor->has_value() || !profile->supports(Precision::kFp8)) continue;
    std::string there = "delayed and current";
    for (const Fp8Recipe other : {Fp8Recipe::kBlockwise, Fp8Recipe::kMxfp8, Fp8Recipe::kNvfp4})
      if (*profile->gemm.block_factor(other))
        there += " and " + std::string(kFp8RecipeNames[static_cast<std::size_t>(other)]);
    diagnostics.error({.code = "not-supported-by-device",
                       .where = place_of(scenario, "options.fp8_recipe"),
                       .path = "options.fp8_recipe",
                       .message = fmt::format("profile {} has no rate of products in {}", profile->name,
                                              kFp8RecipeNames[static_cast<std::size_t>(recipe)]),
                       .hint = there + " are there"});
  }
}

}  // namespace

std::vector<const HardwareProfile*> profiles_of(const Scenario& scenario) {
  std::vector<const HardwareProfile*> profiles;
  for (const HardwareProfile& profile : scenario.group_profiles) profiles.push_back(&profile);
  if (profiles.empty() && scenario.profile) profiles.push_back(&*scenario.profile);
  return profiles;
}

void check_device_modes(const Scenario& scenario, Diagnostics& diagnostics) {
  check_precision(scenario, diagnostics);
  check_fp8_recipe(scenario, diagnostics);
}

}  // namespace stagecraft
