#include "sim/search/search_point.hpp"

#include <optional>

namespace stagecraft {

const std::array<PointSwitch, kPointSwitches>& point_switches() {
  static constexpr std::array<PointSwitch, kPointSwitches> kSwitches = {{
      {.path = "overlap.gradients",
       .get = [](const Scenario& s) { return s.overlap.gradients ? 1.0 : 0.0; },
       .set = [](Scenario& s, double on) { s.overlap.gradients = on != 0; }},
      {.path = "overlap.parameters",
       .get = [](const Scenario& s) { return s.overlap.parameters ? 1.0 : 0.0; },
       .set = [](Scenario& s, double on) { s.overlap.parameters = on != 0; }},
      {.path = "overlap.pipeline",
       .get = [](const Scenario& s) { return s.overlap.pipeline ? 1.0 : 0.0; },
       .set = [](Scenario& s, double on) { s.overlap.pipeline = on != 0; }},
      {.path = "overlap.tensor",
       .get = [](const Scenario& s) { return s.overlap.tensor ? 1.0 : 0.0; },
       .set = [](Scenario& s, double on) { s.overlap.tensor = on != 0; }},
      {.path = "overlap.context",
       .get = [](const Scenario& s) { return s.overlap.context ? 1.0 : 0.0; },
       .set = [](Scenario& s, double on) { s.overlap.context = on != 0; }},
      {.path = "overlap.expert",
       .get = [](const Scenario& s) { return s.overlap.expert ? 1.0 : 0.0; },
       .set = [](Scenario& s, double on) { s.overlap.expert = on != 0; }},
      {.path = "options.scatter_gather",
       .get = [](const Scenario& s) { return s.options.scatter_gather ? 1.0 : 0.0; },
       .set = [](Scenario& s, double on) { s.options.scatter_gather = on != 0; }},
      {.path = "offload.weights",
       .share = true,
       .get = [](const Scenario& s) { return s.offload.weights; },
       .set = [](Scenario& s, double share) { s.offload.weights = share; }},
      {.path = "offload.activations",
       .share = true,
       .get = [](const Scenario& s) { return s.offload.activations; },
       .set = [](Scenario& s, double share) { s.offload.activations = share; }},
      {.path = "offload.optimizer",
       .share = true,
       .get = [](const Scenario& s) { return s.offload.optimizer; },
       .set = [](Scenario& s, double share) { s.offload.optimizer = share; }},
  }};
  return kSwitches;
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
