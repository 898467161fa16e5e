#include "tools/memory_what_ifs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "sim/scenario/load_software.hpp"

namespace stagecraft {
namespace {

template <class Change>
void add(std::vector<MemoryVariant>& variants, const Scenario& scenario, std::string words, Change change) {
  MemoryVariant variant{.change = {std::move(words)}, .scenario = scenario};
  change(variant.scenario);
  settle_sharded_pipeline(variant.scenario, scenario.origins.contains("options.reshard_after_forward"),
                          scenario.origins.contains("options.memory.whole_gradients"));
  variants.push_back(std::move(variant));
}

void add_recompute(std::vector<MemoryVariant>& variants, const Scenario& scenario) {
  const Recompute now = scenario.training.recompute.granularity;
  const auto set = [&](Recompute granularity, const char* word) {
    add(variants, scenario, fmt::format("training.recompute={}", word),
        [&](Scenario& s) { s.training.recompute = {.granularity = granularity}; });
  };
  if (now == Recompute::kNone) set(Recompute::kSelective, "selective");
  if (now != Recompute::kFull) set(Recompute::kFull, "full");
}

// A profile's software may be another one for other layouts: a what-if of one key keeps this one.
void keep_software(MemoryVariant& variant, const Scenario& scenario) {
  if (!scenario.options.software.empty() && !scenario.origins.contains("options.software"))
    variant.change.push_back("options.software=" + scenario.options.software);
}

// Twice a degree, with the GPUs kept: half the data ranks, where they were given.
void add_doubled(std::vector<MemoryVariant>& variants, const Scenario& scenario, const char* name,
                 int ParallelSpec::*degree) {
  const std::optional<int> data = scenario.parallelism.data;
  if (data && *data % 2 != 0) return;
  const int twice = scenario.parallelism.*degree * 2;
  add(variants, scenario, fmt::format("parallelism.{}={}", name, twice), [&](Scenario& s) {
    s.parallelism.*degree = twice;
    if (data) s.parallelism.data = *data / 2;
  });
  if (data) variants.back().change.push_back(fmt::format("parallelism.data={}", *data / 2));
  if (scenario.parallelism.zero_stage >= 2) keep_software(variants.back(), scenario);
}

void add_degrees(std::vector<MemoryVariant>& variants, const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  add_doubled(variants, scenario, "tensor", &ParallelSpec::tensor);
  add_doubled(variants, scenario, "pipeline", &ParallelSpec::pipeline);
  if (parallel.tensor > 1 && !parallel.sequence_parallel)
    add(variants, scenario, "parallelism.sequence_parallel=true",
        [](Scenario& s) { s.parallelism.sequence_parallel = true; });
}

}  // namespace

std::vector<MemoryVariant> memory_variants(const Scenario& scenario) {
  std::vector<MemoryVariant> variants;
  if (!std::holds_alternative<TransformerSpec>(scenario.model)) return variants;
  add_recompute(variants, scenario);
  for (int zero = scenario.parallelism.zero_stage + 1; zero <= 3; ++zero) {
    add(variants, scenario, fmt::format("parallelism.zero_stage={}", zero),
        [zero](Scenario& s) { s.parallelism.zero_stage = zero; });
    const bool other = scenario.profile && scenario.profile->software.sharded != scenario.options.software;
    if (zero >= 2 && scenario.parallelism.zero_stage < 2 && other) keep_software(variants.back(), scenario);
  }
  if (const std::int64_t size = scenario.training.micro_batch_size; size % 2 == 0)
    add(variants, scenario, fmt::format("training.micro_batch_size={}", size / 2),
        [](Scenario& s) { s.training.micro_batch_size /= 2; });
  if (scenario.training.precision == Precision::kFp8 && !scenario.options.fp8_parameters)
    add(variants, scenario, "options.fp8_parameters=true",
        [](Scenario& s) { s.options.fp8_parameters = true; });
  if (scenario.training.precision != Precision::kFp32 && scenario.training.moment == Precision::kFp32)
    add(variants, scenario, "training.moment_dtype=bf16",
        [](Scenario& s) { s.training.moment = Precision::kBf16; });
  add_degrees(variants, scenario);
  return variants;
}

std::vector<WhatIf> memory_what_ifs(const Scenario& scenario, Bytes peak) {
  std::vector<WhatIf> answers;
  for (const MemoryVariant& variant : memory_variants(scenario)) {
    Diagnostics diagnostics;
    if (!prepare(variant.scenario, diagnostics) || diagnostics.has_errors()) continue;
    const Report report = simulate(variant.scenario);
    const Bytes there = report.memory.heaviest().peak();
    if (there >= peak) continue;
    answers.push_back({.change = variant.change,
                       .peak = there,
                       .verdict = report.memory.verdict(),
                       .iteration_time = report.iteration_time});
  }
  std::stable_sort(answers.begin(), answers.end(), [](const WhatIf& a, const WhatIf& b) {
    const bool a_out = a.verdict == Verdict::kOutOfMemory, b_out = b.verdict == Verdict::kOutOfMemory;
    if (a_out != b_out) return b_out;
    return a_out ? a.peak < b.peak : a.iteration_time < b.iteration_time;
  });
  return answers;
}

}  // namespace stagecraft
