#include "sim/scenario/device_modes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "models/partition.hpp"

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

bool has_rate(const HardwareProfile& profile, Fp8Attention attention, bool two_sizes) {
  return profile.attention.kernel_for(operands_of(attention), two_sizes) != nullptr;
}

bool has_heads_of_two_sizes(const TransformerSpec& model) {
  return model.head_size != value_head_size(model);
}

void check_fp8_attention(const Scenario& scenario, Diagnostics& diagnostics) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  const Fp8Attention attention = scenario.options.fp8_attention;
  if (model == nullptr || attention == Fp8Attention::kNone ||
      scenario.training.precision != Precision::kFp8 || scenario.training.attention == Attention::kUnfused)
    return;
  const auto refuse = [&](std::string code, std::string message, std::string hint) {
    diagnostics.error({.code = std::move(code),
                       .where = place_of(scenario, "options.fp8_attention"),
                       .path = "options.fp8_attention",
                       .message = std::move(message),
                       .hint = std::move(hint)});
  };
  if (model->sliding_window || model->attention_sinks)
    return refuse("not-supported", "attention in fp8 has neither sliding windows nor sinks", "leave it out");
  const bool two_sizes = has_heads_of_two_sizes(*model);
  for (const HardwareProfile* profile : profiles_of(scenario))
    if (!has_rate(*profile, attention, two_sizes))
      refuse("not-supported-by-device",
             fmt::format("profile {} has no rate of attention in fp8{}", profile->name,
                         two_sizes ? " with heads of two sizes" : ""),
             "those of B200, B300, GB200 and GB300 have; or leave it out");
}

}  // namespace

std::vector<const HardwareProfile*> profiles_of(const Scenario& scenario) {
  std::vector<const HardwareProfile*> profiles;
  for (const HardwareProfile& profile : scenario.group_profiles) profiles.push_back(&profile);
  if (profiles.empty() && scenario.profile) profiles.push_back(&*scenario.profile);
  return profiles;
}

bool can_attend_in_fp8(const Scenario& scenario, const TransformerSpec& model, Fp8Attention attention) {
  if (scenario.training.attention == Attention::kUnfused || model.sliding_window || model.attention_sinks)
    return false;
  return std::ranges::all_of(profiles_of(scenario), [&](const HardwareProfile* profile) {
    return has_rate(*profile, attention, has_heads_of_two_sizes(model));
  });
}

void check_device_modes(const Scenario& scenario, Diagnostics& diagnostics) {
  check_precision(scenario, diagnostics);
  check_fp8_recipe(scenario, diagnostics);
  check_fp8_attention(scenario, diagnostics);
}

}  // namespace stagecraft
