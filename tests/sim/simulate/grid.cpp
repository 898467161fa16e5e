#include "tests/sim/simulate/grid.hpp"

#include "tests/sampling.hpp"
#include "tests/sim/simulate/scenarios.hpp"

namespace stagecraft {
namespace {

struct Layout {
  int pipeline, tensor, data, chunks;
  const char* schedule;
};

struct Switches {
  int zero_stage;
  bool sequence_parallel;
  Recompute recompute;
  Attention attention;
  OverlapSpec overlap;
};

constexpr Switches kSwitches[] = {
    {0, false, Recompute::kNone, Attention::kFlash, {}},
    {1, true, Recompute::kNone, Attention::kFlash, {}},
    {1,
     false,
     Recompute::kFull,
     Attention::kFlash,
     {.gradients = false, .parameters = false, .pipeline = false}},
    {0, true, Recompute::kSelective, Attention::kUnfused, {.pipeline = false}},
    {1, true, Recompute::kFull, Attention::kUnfused, {.parameters = false}},
    {1, false, Recompute::kNone, Attention::kUnfused, {.gradients = false, .pipeline = false}}};

const Scenario& base(Family family) {
  static const Scenario kGpt = scenario_of(
      "stagecraft: 1\n"
      "model: {family: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 51200, max_sequence_length: 1024}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 1}\n"
      "training: {global_batch_size: 48}\n");
  static const Scenario kLlama = scenario_of(
      "stagecraft: 1\n"
      "model: {family: llama, layers: 8, hidden: 2048, heads: 16, kv_heads: 8, ffn_hidden: 5632, vocab: "
      "32000,"
      " max_sequence_length: 2048}\n"
      "cluster: {node: dgx-a100-80gb, nodes: 1}\n"
      "training: {global_batch_size: 48}\n");
  return family == Family::kGpt ? kGpt : kLlama;
}

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const int p : {1, 2, 4}) {
    for (const int t : {1, 2, 8}) {
      for (const int d : {1, 2, 3, 4}) {
        const int gpus = p * t * d;
        if (gpus > 8 && gpus % 8 != 0) continue;  // whole nodes only
        all.push_back({p, t, d, 1, "1f1b"});
        if (p == 1) continue;
        all.push_back({p, t, d, 1, "gpipe"});
        all.push_back({p, t, d, 2, "interleaved-1f1b"});
      }
    }
  }
  return all;
}

Scenario place(Scenario scenario, const Layout& layout, const Switches& switches) {
  scenario.parallelism = {.tensor = layout.tensor,
                          .pipeline = layout.pipeline,
                          .data = layout.data,
                          .virtual_stages = layout.chunks,
                          .sequence_parallel = switches.sequence_parallel,
                          .zero_stage = switches.zero_stage};
  scenario.schedule.name = layout.schedule;
  scenario.overlap = switches.overlap;
  scenario.training.recompute.granularity = switches.recompute;
  scenario.training.attention = switches.attention;
  const int gpus = layout.pipeline * layout.tensor * layout.data;
  if (gpus < 8) {
    scenario.cluster->gpus_used = gpus;
  } else {
    scenario.cluster->groups.front().count = gpus / 8;
  }
  return scenario;
}

}  // namespace

void for_each_in_grid(const std::function<void(const std::string& name, const Scenario& scenario)>& visit) {
  std::size_t index = 0;
  for (const Family family : {Family::kGpt, Family::kLlama}) {
    for (const Layout& layout : layouts()) {
      for (std::size_t i = 0; i < std::size(kSwitches); ++i) {
        if (!is_sampled(index++)) continue;
        const std::string name = std::string(family == Family::kGpt ? "gpt" : "llama") + " p" +
                                 std::to_string(layout.pipeline) + " t" + std::to_string(layout.tensor) +
                                 " d" + std::to_string(layout.data) + ' ' + layout.schedule + " switches " +
                                 std::to_string(i);
        visit(name, place(base(family), layout, kSwitches[i]));
      }
    }
  }
}

}  // namespace stagecraft
