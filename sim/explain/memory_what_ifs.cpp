#include "sim/explain/memory_what_ifs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace stagecraft {
namespace {

template <class Change>
void add(std::vector<MemoryVariant>& variants, const Scenario& scenario, std::string words, Change change) {
  MemoryVariant variant{.change = {std::move(words)}, .scenario = scenario};
  change(variant.scenario);
  variants.push_back(std::move(variant));
}

void add_recompute(std::vector<MemoryVariant>& variants, const Scenario& scenario) {
  const Recompute now = scenario.training.recompute.granularity;
  const auto set = [&](Recompute granularity, const char* word) {
    add(variants, scenario, fmt::format("training.recompute={}", word),
        [&](Scenario& s) { s.training.recompute = s.options.recompute(granularity); });
  };
  if (now == Recompute::kNone) set(Recompute::kSelective, "selective");
  if (scenario.training.recompute != RecomputeSpec{.granularity = Recompute::kFull})
    set(Recompute::kFull, "full");
}

void keep_software(std::vector<std::string>& set, const Scenario& scenario) {
  if (!scenario.options.software.empty() && !scenario.origins.contains("options.software"))
    set.push_back("options.software=" + scenario.options.software);
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
  if (scenario.parallelism.zero_stage >= 2) keep_software(variants.back().change, scenario);
}

void add_sequence_parallel(MemoryVariant& variant) {
  variant.scenario.parallelism.sequence_parallel = true;
  variant.change.emplace_back("parallelism.sequence_parallel=true");
}

void add_degrees(std::vector<MemoryVariant>& variants, const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  const std::size_t before = variants.size();
  add_doubled(variants, scenario, "tensor", &ParallelSpec::tensor);
  const bool experts = std::get<TransformerSpec>(scenario.model).experts.has_value();
  if (experts && !parallel.sequence_parallel && variants.size() > before)
    add_sequence_parallel(variants.back());
  add_doubled(variants, scenario, "pipeline", &ParallelSpec::pipeline);
  if (parallel.tensor > 1 && !parallel.sequence_parallel)
    add(variants, scenario, "parallelism.sequence_parallel=true",
        [](Scenario& s) { s.parallelism.sequence_parallel = true; });
}

// Experts on more of the ranks that there are: twice as many, four times, and so on.
void add_expert_degrees(std::vector<MemoryVariant>& variants, const Scenario& scenario) {
  const auto& experts = std::get<TransformerSpec>(scenario.model).experts;
  if (!experts) return;
  for (std::int64_t degree = 2 * scenario.parallelism.expert; degree <= experts->count; degree *= 2)
    add(variants, scenario, fmt::format("parallelism.expert={}", degree),
        [&](Scenario& s) { s.parallelism.expert = static_cast<int>(degree); });
}

// States sharded over more replicas, up to all of them; weights that do not stay gathered.
void add_sharding(std::vector<MemoryVariant>& variants, const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  const std::int64_t all = replicas_of(scenario);
  if (parallel.zero_stage >= 1 && parallel.zero_group)
    for (std::int64_t group = 2 * *parallel.zero_group; group <= all; group *= 2)
      add(variants, scenario, fmt::format("parallelism.zero_group={}", group),
          [&](Scenario& s) { s.parallelism.zero_group = static_cast<int>(group); });
  if (parallel.zero_stage == 3 && !reshards_after_forward(scenario))
    add(variants, scenario, "options.reshard_after_forward=true",
        [](Scenario& s) { s.options.reshard_after_forward = true; });
}

// Optimizer states and activations in host memory, where every node says how much of it there is.
void add_more_offload(std::vector<MemoryVariant>& variants, const Scenario& scenario) {
  const auto is_stated = [](const NodeGroup& group) { return group.node.host_memory > Bytes(0); };
  if (!scenario.cluster || !std::ranges::all_of(scenario.cluster->groups, is_stated)) return;
  const auto whole = [&](const char* name, double OffloadSpec::*share) {
    if (scenario.offload.*share < 1)
      add(variants, scenario, fmt::format("offload.{}=1", name),
          [share](Scenario& s) { s.offload.*share = 1; });
  };
  whole("optimizer", &OffloadSpec::optimizer);
  whole("activations", &OffloadSpec::activations);
}

// Variants with less offload.
void add_less_offload(std::vector<MemoryVariant>& variants, const Scenario& scenario) {
  for (const auto& key : kOffloadKeys)
    if (scenario.offload.*key.field > 0)
      add(variants, scenario, fmt::format("offload.{}=0", key.name),
          [&](Scenario& s) { s.offload.*key.field = 0; });
}

// Do hosts, not GPUs, lack memory?
bool is_for_hosts(const MemoryLedger& memory) {
  return memory.host.verdict() > verdict_of(memory.heaviest().peak(), memory.capacity);
}

// Memory that GPUs and hosts lack, where their capacity is given.
Bytes shortage_of(const MemoryLedger& memory) {
  const auto lack = [](Bytes used, Bytes capacity) {
    return capacity > Bytes(0) ? std::max(used - capacity, Bytes(0)) : Bytes(0);
  };
  return lack(memory.heaviest().peak(), memory.capacity) + lack(memory.host.used, memory.host.capacity);
}

bool is_better(const MemoryLedger& there, const MemoryLedger& now) {
  if (const Bytes lacking = shortage_of(now); lacking > Bytes(0)) return shortage_of(there) < lacking;
  if (is_for_hosts(now)) return there.host.used < now.host.used && there.verdict() <= now.verdict();
  return there.heaviest().peak() < now.heaviest().peak();
}

}  // namespace

void keep_software(std::vector<std::string>& set, const Scenario& scenario, int zero_stage) {
  const bool shards = zero_stage >= 2;
  if (!scenario.profile || shards == (scenario.parallelism.zero_stage >= 2)) return;
  const DefaultSoftware& usual = scenario.profile->software;
  if ((shards ? usual.sharded : usual.replicated) != scenario.options.software) keep_software(set, scenario);
}

std::vector<MemoryVariant> memory_variants(const Scenario& scenario) {
  std::vector<MemoryVariant> variants;
  if (!std::holds_alternative<TransformerSpec>(scenario.model)) return variants;
  add_recompute(variants, scenario);
  for (int zero = scenario.parallelism.zero_stage + 1; zero <= 3; ++zero) {
    add(variants, scenario, fmt::format("parallelism.zero_stage={}", zero),
        [zero](Scenario& s) { s.parallelism.zero_stage = zero; });
    keep_software(variants.back().change, scenario, zero);
  }
  if (const std::int64_t size = scenario.training.micro_batch_size; size % 2 == 0)
    add(variants, scenario, fmt::format("training.micro_batch_size={}", size / 2),
        [](Scenario& s) { s.training.micro_batch_size /= 2; });
  if (scenario.training.precision == Precision::kFp8 &&
      !scenario.options.holds_fp8(scenario.parallelism.zero_stage))
    add(variants, scenario, "options.fp8_parameters=true",
        [](Scenario& s) { s.options.fp8_parameters = true; });
  if (scenario.training.precision != Precision::kFp32 && scenario.training.moment == Precision::kFp32)
    add(variants, scenario, "training.moment_dtype=bf16", [](Scenario& s) {
      s.training.moment = Precision::kBf16;
      // The default beside narrow moments.
      if (!s.origins.contains("training.master_remainders")) s.training.master_remainders = true;
    });
  add_sharding(variants, scenario);
  add_degrees(variants, scenario);
  add_expert_degrees(variants, scenario);
  add_more_offload(variants, scenario);
  add_less_offload(variants, scenario);
  return variants;
}

Scenario without_stop(Scenario scenario, const Report& report) {
  if (!report.finishes()) scenario.faults.clear();
  return scenario;
}

std::vector<WhatIf> memory_what_ifs(const Scenario& scenario, const MemoryLedger& now) {
  std::vector<WhatIf> answers;
  for (const MemoryVariant& variant : memory_variants(scenario)) {
    Diagnostics diagnostics;
    if (!prepare(variant.scenario, diagnostics) || diagnostics.has_errors()) continue;
    const Report report = simulate(variant.scenario);
    if (!is_better(report.memory, now)) continue;
    answers.push_back({.change = variant.change,
                       .peak = report.memory.heaviest().peak(),
                       .on_host = report.memory.host.used,
                       .shortage = shortage_of(report.memory),
                       .verdict = report.memory.verdict(),
                       .iteration_time = report.iteration_time});
  }
  std::ranges::stable_sort(answers, [](const WhatIf& a, const WhatIf& b) {
    const bool a_out = a.verdict == Verdict::kOutOfMemory, b_out = b.verdict == Verdict::kOutOfMemory;
    if (a_out != b_out) return b_out;
    return a_out ? a.shortage < b.shortage : a.iteration_time < b.iteration_time;
  });
  return answers;
}

}  // namespace stagecraft
