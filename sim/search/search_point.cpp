#include "sim/search/search_point.hpp"

#include <algorithm>
#include <optional>

namespace stagecraft {

namespace {

template <bool OverlapSpec::*field>
constexpr PointSwitch of_overlap(std::string_view path) {
  return {.path = path,
          .get = [](const Scenario& s) { return s.overlap.*field ? 1.0 : 0.0; },
          .set = [](Scenario& s, double on) { s.overlap.*field = on != 0; }};
}

template <double OffloadSpec::*field>
constexpr PointSwitch of_offload(std::string_view path) {
  return {.path = path,
          .share = true,
          .get = [](const Scenario& s) { return s.offload.*field; },
          .set = [](Scenario& s, double share) { s.offload.*field = share; }};
}

}  // namespace

const std::array<PointSwitch, kPointSwitches>& point_switches() {
  static constexpr std::array<PointSwitch, kPointSwitches> kSwitches = {{
      of_overlap<&OverlapSpec::gradients>("overlap.gradients"),
      of_overlap<&OverlapSpec::parameters>("overlap.parameters"),
      of_overlap<&OverlapSpec::pipeline>("overlap.pipeline"),
      of_overlap<&OverlapSpec::tensor>("overlap.tensor"),
      of_overlap<&OverlapSpec::context>("overlap.context"),
      of_overlap<&OverlapSpec::expert>("overlap.expert"),
      {.path = "options.scatter_gather",
       .get = [](const Scenario& s) { return s.options.scatter_gather ? 1.0 : 0.0; },
       .set = [](Scenario& s, double on) { s.options.scatter_gather = on != 0; }},
      of_offload<&OffloadSpec::weights>("offload.weights"),
      of_offload<&OffloadSpec::activations>("offload.activations"),
      of_offload<&OffloadSpec::optimizer>("offload.optimizer"),
  }};
  return kSwitches;
}

std::optional<std::size_t> switch_at(std::string_view path) {
  const auto& switches = point_switches();
  const auto found = std::ranges::find(switches, path, &PointSwitch::path);
  if (found == switches.end()) return std::nullopt;
  return static_cast<std::size_t>(found - switches.begin());
}

void fill_in(const SearchPoint& point, Scenario& scenario) {
  ParallelSpec& parallel = scenario.parallelism;
  parallel.tensor = point.tensor;
  parallel.pipeline = point.pipeline;
  parallel.data = point.data;
  parallel.context = point.context;
  parallel.expert = point.expert;
  parallel.expert_tensor = point.expert_tensor;
  parallel.virtual_stages = point.virtual_stages;
  parallel.zero_stage = point.zero_stage;
  parallel.zero_group = point.zero_group > 0 ? std::optional(point.zero_group) : std::nullopt;
  parallel.sequence_parallel = point.sequence_parallel;
  parallel.stage_layers = point.stage_layers;
  scenario.training.micro_batch_size = point.micro_batch;
  scenario.training.global_batch_size = point.global_batch;
  if (!point.own_recompute) scenario.training.recompute = scenario.options.recompute(point.recompute);
  for (std::size_t i = 0; i < kPointSwitches; ++i) point_switches()[i].set(scenario, point.switches[i]);
}

}  // namespace stagecraft
