#include "tools/require_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace stagecraft {
namespace {

// The largest part of a stage's memory and what makes it smaller.
struct LargestPart {
  std::string_view name;
  Bytes size;
  std::string remedy;
};

constexpr std::string_view kSpread = "more parallelism.tensor, context or pipeline";

// Where it is possible: more recompute, a smaller micro-batch; more ranks where there is nothing to make again.
std::string smaller_activations(const TrainingSpec& training) {
  const Recompute now = training.recompute.granularity;
  const bool flash = training.attention == Attention::kFlash;
  std::vector<std::string> ways;
  if (now != Recompute::kFull)
    ways.emplace_back(flash || now == Recompute::kSelective ? "training.recompute: full"
                                                            : "training.recompute: selective or full");
  if (training.micro_batch_size > 1) ways.emplace_back("a smaller training.micro_batch_size");
  if (now == Recompute::kFull) ways.emplace_back(kSpread);
  return join(ways, ", or ");
}

LargestPart largest_part(const Scenario& scenario, const StageMemory& stage) {
  const TrainingSpec& training = scenario.training;
  constexpr const char* kShards = "more parallelism.tensor or parallelism.pipeline makes it smaller";
  const bool spreads = scenario.parallelism.zero_stage == 0 && has_replicas(scenario);
  const char* const states = spreads ? "parallelism.zero_stage: 1 spreads it over the data ranks" : kShards;
  const std::array<LargestPart, 6> parts = {
      {{"weights", stage.weights, kShards},
       {"gradients", stage.gradients, kShards},
       {"optimizer", stage.optimizer, states},
       {"activations", stage.activations, smaller_activations(training)},
       {"buffers", stage.buffers,
        training.micro_batch_size > 1 ? "a smaller training.micro_batch_size makes them smaller"
                                      : std::string(kSpread)},
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
