#include "sim/search/stage_axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "sim/scenario/no_effect.hpp"
#include "sim/study/compare.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kChunks = "parallelism.virtual_stages";
// Keys that the given costs belong to.
constexpr std::array<std::string_view, 7> kOfOneCost = {"parallelism.tensor",        "parallelism.pipeline",
                                                        "parallelism.context",       "parallelism.expert",
                                                        "parallelism.expert_tensor", kChunks,
                                                        "training.micro_batch_size"};

// Stages that have costs of their own; 0: one cost is that of all.
std::size_t listed_stages(const StagesSpec& stages) {
  const std::size_t most = std::max({stages.forward.size(), stages.input_gradient.size(),
                                     stages.weight_gradient.size(), stages.activation.size(),
                                     stages.gradient.size(), stages.recompute.size(), stages.message.size()});
  return most > 1 ? most : 0;
}

bool knows(const StagesSpec& stages, std::string_view path) {
  if (path == kChunks) return listed_stages(stages) > 0;
  const auto is_of = [&](std::string_view key) {
    return path == key || (path.starts_with(key) && path[key.size()] == '.');
  };
  const auto has = [&](std::string_view key) { return varied_twice(path, key).has_value(); };
  return std::ranges::none_of(kOfOneCost, has) && std::ranges::none_of(idle_keys_of_stages(), is_of);
}

// Chunks of each rank, so that stages are as many as their costs.
std::size_t chunks_of(const Scenario& scenario, const StagesSpec& stages) {
  const auto ranks = static_cast<std::size_t>(scenario.parallelism.pipeline);
  const std::size_t listed = listed_stages(stages);
  return listed > 0 && listed % ranks == 0 ? listed / ranks : 1;
}

// Whether costs are those of a rank or of a chunk depends on whether somebody says the chunks, which only the
// loader sees.
void load_chunks(const Scenario& scenario, const StagesSpec& stages, SearchAxis& axis) {
  axis.loaded = true;
  if (axis.all()) axis.values = {yaml_scalar(std::to_string(chunks_of(scenario, stages)))};
}

}  // namespace

void keep_to_stages(const ScenarioTree& base, Library& library, SearchSpace& space,
                    Diagnostics& diagnostics) {
  Diagnostics ignored;  // what is wrong with the base is reported when its plans are made
  const auto scenario = load_scenario(base, {}, library, ignored);
  const auto* stages = scenario ? std::get_if<StagesSpec>(&scenario->model) : nullptr;
  if (stages == nullptr) return;
  for (const SearchAxis& axis : space.axes)
    if (!axis.usual && !knows(*stages, axis.path))
      diagnostics.error({.code = "not-supported",
                         .where = axis.where,
                         .path = axis.path,
                         .message = "abstract stages have costs for the scenario's own alone",
                         .hint = "leave it out, or give the model's numbers in place of costs"});
  const auto kept = [&](const SearchAxis& axis) {
    return axis.usual && (axis.path == kChunks || !knows(*stages, axis.path));
  };
  const bool counted = scenario->origins.contains(std::string(kChunks));
  for (const SearchAxis& axis : space.axes)
    if (kept(axis) && (axis.path != kChunks || counted)) space.kept.push_back(axis.path);
  std::erase_if(space.axes, kept);
  for (SearchAxis& axis : space.axes)
    if (axis.path == kChunks) load_chunks(*scenario, *stages, axis);  // asked for, and known
}

}  // namespace stagecraft
