#include "sim/explain/settings_for_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/plan/divisors.hpp"

namespace stagecraft {
namespace {

using Words = std::vector<std::string>;

// A key, the values of it that may make room, and what has to be set beside any of them.
struct Candidate {
  std::string_view key;
  Words (*values)(const Scenario&);
  Words (*beside)(const Scenario&) = nullptr;
  bool where_short = false;  // only of jobs that do not fit: for others it would be strange advice
};

Words only_if(bool helps, std::string value) {
  return helps ? Words{std::move(value)} : Words{};
}

// From `first`, which doubles up to `last`.
Words doublings(std::int64_t first, std::int64_t last) {
  Words values;
  for (; first <= last; first *= 2) values.push_back(fmt::to_string(first));
  return values;
}

Words more_recompute(const Scenario& scenario) {
  const RecomputeSpec& now = scenario.training.recompute;
  Words values = only_if(now.granularity == Recompute::kNone, "selective");
  if (now != RecomputeSpec{.granularity = Recompute::kFull}) values.emplace_back("full");
  return values;
}

Words flash_attention(const Scenario& scenario) {
  return only_if(scenario.training.attention == Attention::kUnfused, "flash");
}

Words next_zero_stages(const Scenario& scenario) {
  Words values;
  for (int zero = scenario.parallelism.zero_stage + 1; zero <= 3; ++zero)
    values.push_back(fmt::to_string(zero));
  return values;
}

// All that divide it, so that the batch stays whole; the largest first.
Words smaller_micro_batches(const Scenario& scenario) {
  std::vector<std::int64_t> sizes = divisors_of(scenario.training.micro_batch_size);
  sizes.pop_back();  // it itself
  Words values;
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) values.push_back(fmt::to_string(*size));
  return values;
}

Words weights_in_fp8(const Scenario& scenario) {
  const Precision precision = scenario.training.precision;
  return only_if(precision == Precision::kFp8 && !casts_to_fp4(precision, scenario.options.fp8_recipe) &&
                     !scenario.options.holds_fp8(scenario.parallelism.zero_stage),
                 "true");
}

Words narrow_moments(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  return only_if(training.precision != Precision::kFp32 && training.moment == Precision::kFp32, "bf16");
}

// Of losses that are PyTorch's own: those of Megatron-LM come whole. torchtitan makes eight.
Words chunks_of_the_loss(const Scenario& scenario) {
  const OptionsSpec& options = scenario.options;
  const bool own = options.memory.fp32_logits || options.rules.memory.loss_parallel;
  return only_if(own && options.memory.loss_chunks == 1, "8");
}

Words fused_loss(const Scenario& scenario) {
  return only_if(!scenario.options.memory.fused_loss, "true");
}

Words fused_step(const Scenario& scenario) {
  return only_if(scenario.options.foreach_step, "false");
}

// States over more replicas, up to all of them.
Words wider_zero_groups(const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  if (parallel.zero_stage == 0 || !parallel.zero_group) return {};
  return doublings(2 * std::int64_t{*parallel.zero_group}, replicas_of(scenario));
}

Words gathering_again(const Scenario& scenario) {
  return only_if(scenario.parallelism.zero_stage == 3 && !reshards_after_forward(scenario), "true");
}

// Twice a degree, with the GPUs kept: half the data ranks, where they were given.
Words twice(const Scenario& scenario, int ParallelSpec::*degree) {
  const std::optional<int> data = scenario.parallelism.data;
  return only_if(!data || *data % 2 == 0, fmt::to_string(scenario.parallelism.*degree * 2));
}

Words half_the_data(const Scenario& scenario) {
  const std::optional<int> data = scenario.parallelism.data;
  return data ? Words{fmt::format("parallelism.data={}", *data / 2)} : Words{};
}

bool has_experts(const Scenario& scenario) {
  return std::get<TransformerSpec>(scenario.model).experts.has_value();
}

// Experts over tensor ranks are dispatched under sequence parallelism only.
Words beside_tensor_ranks(const Scenario& scenario) {
  Words set = half_the_data(scenario);
  if (has_experts(scenario) && !scenario.parallelism.sequence_parallel)
    set.emplace_back("parallelism.sequence_parallel=true");
  return set;
}

Words sequence_parallelism(const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  return only_if(parallel.tensor > 1 && !parallel.sequence_parallel, "true");
}

// Experts on more of the ranks that there are.
Words more_expert_ranks(const Scenario& scenario) {
  const auto& experts = std::get<TransformerSpec>(scenario.model).experts;
  return experts ? doublings(2 * std::int64_t{scenario.parallelism.expert}, experts->count) : Words{};
}

// All of it in host memory, where every node says how much of it there is.
Words whole_offload(const Scenario& scenario, double OffloadSpec::*share) {
  const auto is_stated = [](const NodeGroup& group) { return group.node.host_memory > Bytes(0); };
  const bool stated = scenario.cluster && std::ranges::all_of(scenario.cluster->groups, is_stated);
  return only_if(stated && scenario.offload.*share < 1, "1");
}

// For hosts that lack memory.
Words no_offload(const Scenario& scenario, double OffloadSpec::*share) {
  return only_if(scenario.offload.*share > 0, "0");
}

// 1F1B for any other order: most of them hold more.
Words one_f_one_b(const Scenario& scenario) {
  return only_if(scenario.options.rules.may_run("1f1b") && scenario.parallelism.pipeline > 1 &&
                     !scenario.order && scenario.schedule.name != "1f1b",
                 "1f1b");
}

Words one_chunk(const Scenario& scenario) {
  return only_if(scenario.parallelism.virtual_stages > 1, "parallelism.virtual_stages=1");
}

// The others that a profile takes for granted, where nobody said which one runs.
Words other_software(const Scenario& scenario) {
  if (!scenario.profile || names_software(scenario)) return {};
  const DefaultSoftware& usual = scenario.profile->software;
  Words others;
  for (const std::string& name : {usual.replicated, usual.sharded, usual.sharded_gated, usual.sharded_fp16})
    if (!name.empty() && name != scenario.options.software && std::ranges::count(others, name) == 0)
      others.push_back(name);
  return others;
}

constexpr Candidate kCandidates[] = {
    {"training.recompute", more_recompute},
    {"training.attention", flash_attention},
    {"parallelism.zero_stage", next_zero_stages},
    {"training.micro_batch_size", smaller_micro_batches},
    {"options.fp8_parameters", weights_in_fp8},
    {"training.moment_dtype", narrow_moments},
    {"options.memory.fused_loss", fused_loss},
    {"options.memory.loss_chunks", chunks_of_the_loss},
    {"options.foreach_step", fused_step},
    {"parallelism.zero_group", wider_zero_groups},
    {"options.reshard_after_forward", gathering_again},
    {"parallelism.tensor", [](const Scenario& s) { return twice(s, &ParallelSpec::tensor); },
     beside_tensor_ranks},
    {"parallelism.pipeline", [](const Scenario& s) { return twice(s, &ParallelSpec::pipeline); },
     half_the_data},
    {"parallelism.context", [](const Scenario& s) { return twice(s, &ParallelSpec::context); },
     half_the_data},
    {"parallelism.sequence_parallel", sequence_parallelism},
    {"parallelism.expert", more_expert_ranks},
    {"offload.optimizer", [](const Scenario& s) { return whole_offload(s, &OffloadSpec::optimizer); }},
    {"offload.activations", [](const Scenario& s) { return whole_offload(s, &OffloadSpec::activations); }},
    {"offload.optimizer", [](const Scenario& s) { return no_offload(s, &OffloadSpec::optimizer); }},
    {"offload.activations", [](const Scenario& s) { return no_offload(s, &OffloadSpec::activations); }},
    {"offload.weights", [](const Scenario& s) { return no_offload(s, &OffloadSpec::weights); }},
    {"schedule", one_f_one_b, one_chunk},
    {"options.software", other_software, nullptr, true},
};

}  // namespace

std::vector<std::vector<std::string>> settings_for_memory(const Scenario& scenario, bool is_short) {
  std::vector<std::vector<std::string>> settings;
  if (!std::holds_alternative<TransformerSpec>(scenario.model)) return settings;
  for (const Candidate& candidate : kCandidates) {
    if (candidate.where_short && !is_short) continue;
    for (const std::string& value : candidate.values(scenario)) {
      Words set = candidate.beside ? candidate.beside(scenario) : Words{};
      set.insert(set.begin(), fmt::format("{}={}", candidate.key, value));
      settings.push_back(std::move(set));
    }
  }
  return settings;
}

}  // namespace stagecraft
