#include "tools/require_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {
namespace {

// What makes a part of the memory smaller; without a change where it is no single value.
struct Remedy {
  std::string words;
  std::function<void(Scenario&)> change = {};
};

// The largest part of a stage's memory.
struct LargestPart {
  std::string_view name;
  Bytes size;
  std::vector<Remedy> remedies;
};

constexpr const char* kSpread = "more parallelism.tensor, context or pipeline";
constexpr const char* kElsewhere =
    "`stagecraft memory` prices other changes, `stagecraft search` looks for plans that fit";

Remedy smaller_micro_batch(const char* words) {
  return {.words = words, .change = [](Scenario& s) { s.training.micro_batch_size = 1; }};
}

// Where it is possible: more recompute, a smaller micro-batch; more ranks where there is nothing to make again.
std::vector<Remedy> smaller_activations(const TrainingSpec& training) {
  const Recompute now = training.recompute.granularity;
  const bool flash = training.attention == Attention::kFlash;
  std::vector<Remedy> ways;
  if (now != Recompute::kFull)
    ways.push_back({.words = flash || now == Recompute::kSelective ? "training.recompute: full"
                                                                   : "training.recompute: selective or full",
                    .change = [](Scenario& s) { s.training.recompute = {.granularity = Recompute::kFull}; }});
  if (training.micro_batch_size > 1)
    ways.push_back(smaller_micro_batch("a smaller training.micro_batch_size"));
  if (now == Recompute::kFull) ways.push_back({.words = kSpread});
  return ways;
}

LargestPart largest_part(const Scenario& scenario, const StageMemory& stage) {
  const TrainingSpec& training = scenario.training;
  const Remedy shards{.words = "more parallelism.tensor or parallelism.pipeline makes it smaller"};
  const Remedy spread{.words = "parallelism.zero_stage: 1 spreads it over the data ranks",
                      .change = [](Scenario& s) { s.parallelism.zero_stage = 1; }};
  const bool spreads = scenario.parallelism.zero_stage == 0 && has_replicas(scenario);
  const Remedy buffers = training.micro_batch_size > 1
                             ? smaller_micro_batch("a smaller training.micro_batch_size makes them smaller")
                             : Remedy{.words = kSpread};
  const std::array<LargestPart, 6> parts = {
      {{"weights", stage.weights, {shards}},
       {"gradients", stage.gradients, {shards}},
       {"optimizer", stage.optimizer, {spreads ? spread : shards}},
       {"activations", stage.activations, smaller_activations(training)},
       {"buffers", stage.buffers, {buffers}},
       {"overhead", stage.overhead, {{.words = "a GPU with more memory"}}}}};
  return *std::max_element(parts.begin(), parts.end(),
                           [](const auto& x, const auto& y) { return x.size < y.size; });
}

// With the remedy alone; nullopt where it cannot run, or is no single value.
std::optional<MemoryLedger> memory_with(const Remedy& remedy, const Scenario& scenario) {
  if (!remedy.change) return std::nullopt;
  Scenario changed = scenario;
  remedy.change(changed);
  Diagnostics diagnostics;
  if (!prepare(changed, diagnostics) || diagnostics.has_errors()) return std::nullopt;
  return memory_of(changed);
}

// A remedy that would not do is said to leave what it leaves.
std::string hint_of(const std::vector<Remedy>& remedies, const Scenario& scenario, Bytes peak) {
  std::vector<std::string> words;
  std::optional<Bytes> least;  // of those that were priced
  for (const Remedy& remedy : remedies) {
    const std::optional<MemoryLedger> memory = memory_with(remedy, scenario);
    if (remedy.change && (!memory || memory->heaviest().peak() >= peak)) continue;
    words.push_back(remedy.words);
    if (!memory) continue;
    if (memory->verdict() != Verdict::kOutOfMemory) return join(words, ", or ");
    least = least ? std::min(*least, memory->heaviest().peak()) : memory->heaviest().peak();
  }
  if (words.empty()) return kElsewhere;
  const bool several = words.size() > 1;
  const std::string leaves = least
                                 ? fmt::format(", {} alone leaves {}{}", several ? "each of which" : "which",
                                               human(*least), several ? " or more" : "")
                                 : "";
  return join(words, ", or ") + leaves + "; " + kElsewhere;
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
                             human(part.size), hint_of(part.remedies, scenario, stage.peak()));
  return false;
}

}  // namespace stagecraft
