#include "tools/require_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>

#include "base/text.hpp"

namespace stagecraft {
namespace {

// The largest part of a stage's memory and what makes it smaller.
struct LargestPart {
  std::string_view name;
  Bytes size;
  std::string_view remedy;
};

LargestPart largest_part(const Scenario& scenario, const StageMemory& stage) {
  const TrainingSpec& training = scenario.training;
  const bool flash = training.attention == Attention::kFlash;
  constexpr std::string_view kSpread = "more parallelism.tensor, context or pipeline";
  const bool one = training.micro_batch_size == 1;
  const std::string_view activations =
      training.recompute.granularity == Recompute::kFull && one ? kSpread
      : training.recompute.granularity == Recompute::kFull
          ? "a smaller training.micro_batch_size, or more parallelism.tensor, context or pipeline"
      : flash || training.recompute.granularity == Recompute::kSelective
          ? one ? "training.recompute: full"
                : "training.recompute: full, or a smaller training.micro_batch_size"
      : one ? "training.recompute: selective or full"
            : "training.recompute: selective or full, or a smaller training.micro_batch_size";
  constexpr std::string_view kShards = "more parallelism.tensor or parallelism.pipeline makes it smaller";
  const bool spreads = scenario.parallelism.zero_stage == 0 && replicas_of(scenario) > 1;
  const std::string_view states =
      spreads ? "parallelism.zero_stage: 1 spreads it over the data ranks" : kShards;
  const std::array<LargestPart, 6> parts = {
      {{"weights", stage.weights, kShards},
       {"gradients", stage.gradients, kShards},
       {"optimizer", stage.optimizer, states},
       {"activations", stage.activations, activations},
       {"buffers", stage.buffers, one ? kSpread : "a smaller training.micro_batch_size makes them smaller"},
       {"overhead", stage.overhead, "a GPU with more memory"}}};
  return *std::max_element(parts.begin(), parts.end(),
                           [](const auto& x, const auto& y) { return x.size < y.size; });
}

}  // namespace

bool fits(const Scenario& scenario, const MemoryLedger& memory, Session& session) {
  if (memory.verdict() != Verdict::kOutOfMemory) return true;
  const StageMemory& stage = memory.heaviest();
  if (verdict_of(stage.peak(), memory.capacity) != Verdict::kOutOfMemory) {
    session.err << fmt::format("verdict: out-of-memory: {}\n  hint: {}\n", memory.shortage(),
                               "smaller shares in `offload`, or zero_stage: 1 where the optimizer is kept "
                               "there, make room");
    return false;
  }
  const LargestPart part = largest_part(scenario, stage);
  session.err << fmt::format("verdict: out-of-memory on stage {}: {} of {}, of which {} {}\n  hint: {}\n",
                             stage.stage, human(stage.peak()), human(memory.capacity), part.name,
                             human(part.size), part.remedy);
  return false;
}

}  // namespace stagecraft
