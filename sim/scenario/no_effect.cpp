#include "sim/scenario/no_effect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "models/expert_exchange.hpp"
#include "models/op_builder.hpp"
#include "sim/scenario/no_effect_listener.hpp"

namespace stagecraft {

namespace {

constexpr std::array<std::string_view, 41> kIdleOfStages = {"training.precision",
                                                            "training.sixteen_bit_layers",
                                                            "training.autocast",
                                                            "training.recompute",
                                                            "training.attention",
                                                            "training.gradient_dtype",
                                                            "training.moment_dtype",
                                                            "training.master_weights",
                                                            "training.master_remainders",
                                                            "parallelism.context_exchange",
                                                            "parallelism.embedding_as_layer",
                                                            "parallelism.loss_as_layer",
                                                            "parallelism.sequence_parallel",
                                                            "parallelism.replicated_embedding",
                                                            "parallelism.zero_stage",
                                                            "parallelism.zero_group",
                                                            "overlap.parameters",
                                                            "overlap.tensor",
                                                            "overlap.context",
                                                            "overlap.expert",
                                                            "overlap.shared_experts",
                                                            "options.scatter_gather",
                                                            "options.fused_kernels",
                                                            "options.unfused",
                                                            "options.fused",
                                                            "options.gradient_accumulation_fusion",
                                                            "options.bucket_parameters",
                                                            "options.reshard_after_forward",
                                                            "options.attention_kernel",
                                                            "options.software",
                                                            "options.expert_dispatcher",
                                                            "options.cuda_graphs",
                                                            "options.fp8_recipe",
                                                            "options.fp8_parameters",
                                                            "options.fp8_dispatch",
                                                            "options.fp8_attention",
                                                            "options.fused_experts",
                                                            "options.foreach_step",
                                                            "offload.optimizer",
                                                            "offload.activations",
                                                            "offload.weights"};

void listen_to_stages(Listener& listener, const Scenario& scenario) {
  const char* given = "abstract stages give their costs themselves";
  for (const std::string_view path : kIdleOfStages) listener.say(path, true, given);
  for (const auto& [path, where] : scenario.origins)
    listener.say(path, path.starts_with("options.memory."), given);
  const ScheduleKind* kind = find_schedule(scenario.schedule.name);
  listener.say("model.recompute", kind != nullptr && !kind->recomputes, "the order has no recompute passes");
  const bool alone = !scenario.cluster;
  const auto& gradients = std::get<StagesSpec>(scenario.model).gradient;
  const bool some = std::ranges::any_of(gradients, [](Bytes bytes) { return bytes > Bytes(0); });
  if (alone && some && has_replicas(scenario))
    listener.warn(
        "model.gradient", "little-effect",
        "takes memory and no time: without a cluster no gradients are reduced, nor do messages take "
        "time");
  listener.say("overlap.gradients", alone, "without a cluster no gradients are reduced");
  listener.say("overlap.pipeline", alone, "without a cluster messages take no time");
  listener.say("model.message", alone, "without a cluster messages take no time");
  listener.say("model.message", scenario.parallelism.pipeline == 1, "parallelism.pipeline is 1");
  listener.say("cluster.fabric.", {"tensor_collective_factor", "tensor_collective_overhead"}, true, given);
  listener.say("profile", alone, "without a cluster nothing is priced");
  listener.say("network", alone && scenario.network.shared(),
               "without a cluster there are no links to share");
  listener.say("network.mode", alone && scenario.network.shared(),
               "without a cluster there are no links to share");
}

bool repeats_no_core(const Scenario& scenario) {
  return scenario.training.attention == Attention::kFlash && !scenario.options.rules.repeats_flash;
}

// Why selective recompute of a module repeats nothing in this model; empty when it does repeat something.
std::string_view why_idle(RecomputeModule module, const TransformerSpec& model, const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  const bool experts = model.numbers().with_experts() > 0;
  const RecomputeModules& modules = training.recompute.modules;
  const bool attention = modules.has(RecomputeModule::kSelfAttention);
  switch (module) {
    case RecomputeModule::kCoreAttention:
      if (attention) return "self_attn repeats it already";
      return repeats_no_core(scenario) ? "flash attention keeps no scores" : "";
    case RecomputeModule::kLayerNorm:
      return model.has_norms_before() ? "" : "no product reads the output of a norm";
    case RecomputeModule::kMlp:
      return model.has_dense_layers() ? "" : "every layer of the model has experts";
    case RecomputeModule::kMoe:
      return experts ? "" : "the model has no experts";
    case RecomputeModule::kMoeActivation:
      if (experts && modules.has(RecomputeModule::kMoe)) return "moe repeats it already";
      return experts ? "" : "the model has no experts";
    case RecomputeModule::kSharedExperts:
      return experts && model.experts->shared > 0 ? "" : "the model has no shared experts";
    case RecomputeModule::kLatentUp:
      if (!model.latent_attention) return "the model has no latent attention";
      return attention ? "self_attn repeats it already" : "";
    case RecomputeModule::kSelfAttention:
    case RecomputeModule::kEverySecondProduct:
      return "";
  }
  return "";
}

void listen_to_recompute(Listener& listener, const Scenario& scenario) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  const RecomputeSpec& recompute = scenario.training.recompute;
  if (model == nullptr || recompute.granularity != Recompute::kSelective) return;
  const bool core_alone = recompute.modules == kCoreAttentionOnly;
  if (core_alone && scenario.training.attention == Attention::kFlash && scenario.options.rules.repeats_flash)
    listener.warn("training.recompute", "frees-nothing",
                  fmt::format("{} runs the kernel of flash attention again for the backward, which keeps no "
                              "scores: time is lost and no memory gained",
                              scenario.options.software));
  if (!scenario.origins.contains("training.recompute.modules")) {
    listener.say(
        "training.recompute", core_alone && repeats_no_core(scenario),
        "selective recompute is about the scores of unfused attention, and flash attention keeps none");
    return;
  }
  std::string idle;
  for (std::size_t i = 0; i < kRecomputeModuleNames.size(); ++i) {
    const auto module = static_cast<RecomputeModule>(i);
    const std::string_view why = recompute.modules.has(module) ? why_idle(module, *model, scenario) : "";
    if (why.empty()) continue;
    if (!idle.empty()) idle += "; ";
    idle.append(kRecomputeModuleNames[i]).append(": ").append(why);
  }
  listener.say("training.recompute.modules", !idle.empty(), idle);
}

bool has_fp32_weights(const TrainingSpec& training) {
  return training.precision == Precision::kFp32 || training.autocast;
}

bool shards_are_fp32(const Scenario& scenario) {
  return scenario.options.rules.memory.fp32_shards && zero_stage_in_effect(scenario) == 3;
}

bool shards_are_masters(const Scenario& scenario) {
  return shards_are_fp32(scenario) && scenario.training.master_weights &&
         !has_fp32_weights(scenario.training);
}

// Why masters are whole, but for what `offload` asks of the host; empty where they may keep remainders.
std::string_view why_masters_are_whole(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  const bool fp8 = training.precision == Precision::kFp8;
  if ((training.precision != Precision::kBf16 && !fp8) || training.autocast)
    return "the weights are not bf16";
  if (!training.master_weights) return "training.master_weights is false";
  if (fp8 && scenario.options.holds_fp8(scenario.parallelism.zero_stage))
    return "options.fp8_parameters keeps weights in fp8, whose masters are whole";
  if (shards_are_fp32(scenario)) return "the shards of weights are fp32 (options.software)";
  return "";
}

void listen_to_remainders(Listener& listener, const Scenario& scenario) {
  constexpr const char* kPath = "training.master_remainders";
  const TrainingSpec& training = scenario.training;
  const std::string_view whole = why_masters_are_whole(scenario);
  listener.say(kPath, !whole.empty(), whole);
  const double offloaded = scenario.offload.optimizer;
  listener.say(kPath, offloaded > 0, "the host steps whole masters (offload.optimizer)");
  // Masters that stay on the GPU are whole as well: a small share frees less than that takes.
  const auto moments = static_cast<double>(2 * operand_bytes(training.moment));
  const double least = 2 / (4 + moments);
  if (training.master_remainders && whole.empty() && offloaded > 0 && offloaded < least)
    listener.warn("offload.optimizer", "little-effect",
                  fmt::format("takes more memory than it frees: beside it the masters on the GPU are whole "
                              "(training.master_remainders), which a share of {:.2g} makes up for",
                              least));
}

// Does software under ZeRO run code of its own, whether or not anyone shares?
bool chooses_code(const Scenario& scenario) {
  const OptionsSpec& options = scenario.options;
  const bool fp8 = scenario.training.precision == Precision::kFp8;
  return options.memory.bucket_copies || (fp8 && options.holds_fp8(1) != options.holds_fp8(0));
}

// Why a job whose loss is this one runs no compiled loss; empty where it does, or names none.
std::string_view why_not_compiled(LossKind runs) {
  switch (runs) {
    case LossKind::kFused:
      return "a fused loss has no softmax to copy";
    case LossKind::kFp32Logits:
    case LossKind::kShardedFp32Logits:
      return "the loss over fp32 logits is PyTorch's own";
    case LossKind::k16Bit:
      return "the loss of options.software is in 16 bit";
    case LossKind::kSoftmax:
    case LossKind::kCompiled:
      return "";
  }
  return "";
}

void listen_to_loss(Listener& listener, const Scenario& scenario) {
  const SoftwareMemory& memory = scenario.options.memory;
  const LossKind runs = loss_kind(memory, scenario.options.rules.memory, scenario.parallelism.tensor);
  listener.say("options.memory.fp32_logits", memory.fp32_logits && runs == LossKind::kFused,
               "a fused loss casts no logits");
  const std::string_view why = why_not_compiled(runs);
  listener.say("options.memory.compiled_loss", memory.compiled_loss && !why.empty(), why);
}

void listen_to_degrees(Listener& listener, const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  const bool one_replica = !has_replicas(scenario);
  const bool one_stage = parallel.pipeline == 1 && parallel.virtual_stages == 1;
  listener.say("parallelism.context_exchange", parallel.context == 1, "parallelism.context is 1");
  listener.say("parallelism.embedding_as_layer", one_stage, "there is one stage, and nothing to split");
  listener.say("parallelism.loss_as_layer", one_stage, "there is one stage, and nothing to split");
  listener.say("parallelism.sequence_parallel", parallel.sequence_parallel && parallel.tensor == 1,
               "parallelism.tensor is 1");
  listener.say("parallelism.replicated_embedding", parallel.replicated_embedding && parallel.tensor == 1,
               "parallelism.tensor is 1");
  listener.say("options.memory.gathered_logits",
               scenario.options.memory.gathered_logits && parallel.tensor == 1, "parallelism.tensor is 1");
  listener.say("cluster.fabric.", {"tensor_collective_factor", "tensor_collective_overhead"},
               parallel.tensor == 1, "parallelism.tensor is 1");
  const int zero = zero_stage_in_effect(scenario);
  listener.say("parallelism.zero_stage", parallel.zero_stage > 0 && zero == 0 && !chooses_code(scenario),
               one_replica ? "there is one replica, and nobody to share with"
                           : "parallelism.zero_group is 1, and nobody shares");
  listener.say("training.master_weights", has_fp32_weights(scenario.training),
               "fp32 weights are their own masters");
  listen_to_remainders(listener, scenario);
  listener.say("options.memory.whole_gradients", keeps_gradients_whole(scenario) && zero < 2,
               "gradients are sharded under ZeRO 2 and 3 of several replicas only");
  const OptionsSpec& options = scenario.options;
  listener.say("options.memory.keep_outputs",
               options.memory.keep_outputs && parallel.pipeline == 1 &&
                   !leaves_logits(options.memory, options.rules.memory, parallel.tensor),
               "parallelism.pipeline is 1, and the loss leaves no logits");
  listener.say("options.gradient_accumulation_fusion", scenario.training.autocast,
               "products of training.autocast write 16 bit, and gradients are fp32");
  listener.say("options.gradient_accumulation_fusion", zero >= 2 && !keeps_gradients_whole(scenario),
               "gradients of ZeRO 2 and 3 are reduced after each pass, and added to nothing");
  listen_to_loss(listener, scenario);
  listener.say("parallelism.zero_group", parallel.zero_stage == 0,
               "parallelism.zero_stage is 0, and nothing is sharded");
}

void listen_to_shared_experts(Listener& listener, const Scenario& scenario) {
  constexpr const char* kPath = "overlap.shared_experts";
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  const bool shared = model != nullptr && model->experts && model->experts->shared_width() > 0;
  listener.say(kPath, scenario.parallelism.expert == 1, "parallelism.expert is 1");
  listener.say(kPath, !shared, "the model has no shared experts");
  listener.say(kPath, scenario.options.expert_dispatcher != ExpertDispatcher::kAllToAll,
               "only an all-to-all (options.expert_dispatcher) runs beside them");
  listener.say(kPath, overlaps_expert_exchanges(scenario),
               "overlap.expert has another micro-batch beside the exchanges");
}

// Does a rank hold one stage of one copy of the model?
bool holds_one_stage(const Scenario& scenario) {
  if (scenario.order) return scenario.order->schedule.places().held_by(0).size() == 1;
  const ScheduleKind* kind = find_schedule(scenario.schedule.name);
  const bool one_copy = kind == nullptr || StagePlaces{.placement = kind->placement}.copies() == 1;
  return one_copy && scenario.parallelism.virtual_stages == 1;
}

// Behind the last backward of a rank there is nothing left beside its reductions, but for those of another
// stage and the all-reduces of hybrid sharding.
bool reduces_at_the_end(const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  const OptionsSpec& options = scenario.options;
  return zero_stage_in_effect(scenario) >= 2 && !parallel.zero_group && parallel.pipeline > 1 &&
         options.rules.reduces_behind_backward && keeps_gradients_whole(scenario) &&
         holds_one_stage(scenario);
}

void listen_to_overlap(Listener& listener, const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  const bool one_replica = !has_replicas(scenario);
  listener.say("overlap.gradients", one_replica, "there is one replica, and no gradients are reduced");
  listener.say("overlap.gradients", reduces_at_the_end(scenario),
               "options.software reduces behind the last backward of a pipeline");
  listener.say("overlap.parameters", zero_stage_in_effect(scenario) == 0,
               parallel.zero_stage == 0 ? "parallelism.zero_stage is 0, and no parameters are gathered"
               : one_replica            ? "there is one replica, and no parameters are gathered"
                                        : "parallelism.zero_group is 1, and no parameters are gathered");
  listener.say("overlap.pipeline", parallel.pipeline == 1, "parallelism.pipeline is 1");
  listener.say("overlap.tensor", parallel.tensor == 1, "parallelism.tensor is 1");
  listener.say("overlap.tensor", !parallel.sequence_parallel,
               "user buffers gather and scatter under sequence_parallel only");
  listener.say("overlap.tensor", casts_to_fp4(scenario.training.precision, scenario.options.fp8_recipe),
               "Transformer Engine has no user buffers for NVFP4");
  listener.say("overlap.context", parallel.context == 1, "parallelism.context is 1");
  listener.say("overlap.context", parallel.context_exchange != ContextExchange::kRing,
               "only the messages of a ring (context_exchange: p2p) overlap");
  listener.say("overlap.expert", parallel.expert == 1, "parallelism.expert is 1");
  listener.say("overlap.expert", runs_fused_pairs(scenario),
               "the fused pairs of the schedule hide the exchanges of either pass");
  listener.say("overlap.expert", scenario.training.global_batch_size <= samples_at_once(scenario),
               "there is one micro-batch, and no other beside it");
  listen_to_shared_experts(listener, scenario);
}

// An imbalance above the maximum of a rank, where a token goes to an expert once, or above the capacity.
void listen_to_imbalance(Listener& listener, const ExpertsSpec& experts, const ParallelSpec& parallel) {
  const auto warn = [&](const std::string& reason) {
    listener.warn("model.experts.imbalance", "more-than-possible", "counts as " + reason);
  };
  const double most = busiest_rank(experts, {.expert = parallel.expert});
  if (!experts.levels() && experts.capacity_factor > 0 && experts.capacity_factor < most)
    warn(fmt::format("{:.4g}: capacity_factor drops the tokens above", experts.capacity_factor));
  else if (most < experts.imbalance)
    warn(fmt::format("{:.4g}, the most that one of {} ranks can get of {} experts a token", most,
                     parallel.expert, experts.top_k));
}

void listen_to_window(Listener& listener, const Scenario& scenario) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr || !model->sliding_window) return;
  const std::int64_t tokens = model->sliding_window->tokens, length = scenario.training.sequence_length;
  listener.say("model.sliding_window", tokens >= length,
               "training.sequence_length is no longer than the window");
  listener.say("model.sliding_window", scenario.training.attention == Attention::kUnfused,
               "unfused attention computes all scores and masks those before the window");
}

void listen_to_experts(Listener& listener, const Scenario& scenario) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  const bool none = model == nullptr || model->numbers().with_experts() == 0;
  listener.say("options.expert_dispatcher", none, "the model has no experts");
  listener.say(
      "options.expert_dispatcher",
      scenario.parallelism.expert == 1 && scenario.options.expert_dispatcher == ExpertDispatcher::kNodeAware,
      "parallelism.expert is 1, and no token goes to another node");
  listener.say("options.fused_experts", none, "the model has no experts");
  listener.say("options.fused_experts", !scenario.options.fused_kernels, "options.fused_kernels is false");
  listener.say("options.fused_experts",
               !has_fused_experts(scenario.training.precision, scenario.options.fp8_recipe),
               "only products in mxfp8 and nvfp4 (options.fp8_recipe) are fused");
  listener.say("model.experts.imbalance", scenario.parallelism.expert == 1,
               "one rank (parallelism.expert) has all tokens");
  listener.say("model.experts.imbalance", !none && model->experts->levels(),
               model != nullptr && model->experts && model->experts->pad_to_capacity
                   ? "pad_to_capacity gives every expert as many tokens"
                   : "capacity_factor drops all tokens above the even share");
  if (!none) listen_to_imbalance(listener, *model->experts, scenario.parallelism);
}

// Buckets matter for overlapped traffic, and for software that keeps memory for them.
void listen_to_buckets(Listener& listener, const Scenario& scenario) {
  constexpr const char* kPath = "options.bucket_parameters";
  const int zero = zero_stage_in_effect(scenario);
  listener.say(kPath, !has_replicas(scenario), "there is one replica, and no gradients are reduced");
  listener.say(kPath, zero == 3, "ZeRO 3 reduces the gradients of each gathered unit as one");
  if (zero >= 2 || scenario.overlap.gradients || scenario.options.memory.bucket_copies) return;
  listener.say(kPath, zero == 0, "overlap.gradients is false, and all gradients are reduced as one");
  listener.say(kPath, !scenario.overlap.parameters,
               "overlap.gradients and overlap.parameters are false, and all is reduced and gathered as one");
}

// Has the model any of these operations?
bool has_any(const TransformerSpec& model, const LateFusions& operations) {
  return (operations.has(LateFusion::kRmsNorm) && model.normalization == Normalization::kRmsNorm) ||
         (operations.has(LateFusion::kSwiglu) && is_gated(model.activation)) ||
         (operations.has(LateFusion::kGelu) && model.activation == Activation::kGelu) ||
         (operations.has(LateFusion::kRope) && (model.latent_attention || model.position == Position::kRope));
}

void listen_to_unfused(Listener& listener, const Scenario& scenario) {
  constexpr const char* kPath = "options.unfused";
  const OptionsSpec& options = scenario.options;
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  listener.say(kPath, !options.fused_kernels, "options.fused_kernels is false, and nothing is fused");
  if (model == nullptr || options.unfused.empty()) return;
  const bool has = has_any(*model, options.unfused);
  listener.say(kPath, !has, "the model has no such operation");
  listener.say(kPath, has && !has_any(*model, options.unfused - options.rules.unfused),
               "options.software fuses no such operation");
}

void listen_to_fused(Listener& listener, const Scenario& scenario) {
  constexpr const char* kPath = "options.fused";
  const OptionsSpec& options = scenario.options;
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr || options.fused.empty()) return;
  const bool has = has_any(*model, options.fused);
  listener.say(kPath, !has, "the model has no such operation");
  listener.say(kPath, has && options.fused_kernels && !has_any(*model, options.fused & options.rules.unfused),
               "options.fused_kernels is true, and they are fused anyway");
}

void listen_to_options(Listener& listener, const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  listener.say("options.scatter_gather", parallel.pipeline == 1, "parallelism.pipeline is 1");
  listener.say("options.scatter_gather", parallel.tensor == 1, "parallelism.tensor is 1");
  listener.say("options.scatter_gather", parallel.sequence_parallel,
               "under sequence_parallel each tensor rank sends its own part");
  listen_to_buckets(listener, scenario);
  listen_to_unfused(listener, scenario);
  listen_to_fused(listener, scenario);
  listener.say("options.reshard_after_forward", zero_stage_in_effect(scenario) < 3,
               parallel.zero_stage < 3 ? "weights are sharded from zero_stage 3 on"
                                       : "no two ranks share the weights");
  listener.say("options.attention_kernel", scenario.training.attention == Attention::kUnfused,
               "training.attention is unfused");
  listen_to_window(listener, scenario);
  listen_to_experts(listener, scenario);
  listener.say("training.sixteen_bit_layers", scenario.training.precision != Precision::kFp8,
               "training.precision is not fp8");
  listener.say("options.fp8_recipe", scenario.training.precision != Precision::kFp8,
               "training.precision is not fp8");
  listener.say("options.fp8_parameters", scenario.training.precision != Precision::kFp8,
               "training.precision is not fp8");
  listener.say("options.fp8_attention", scenario.training.precision != Precision::kFp8,
               "training.precision is not fp8");
  listener.say("options.fp8_attention", scenario.training.attention == Attention::kUnfused,
               "training.attention is unfused");
  listener.say("options.fp8_dispatch", parallel.expert == 1, "parallelism.expert is 1");
  listener.say("options.fp8_dispatch", scenario.options.expert_dispatcher == ExpertDispatcher::kAllGather,
               "an all-gather (options.expert_dispatcher) sends 16 bit");
  const char* on_gpu = "a share of 0 stays on the GPU";
  listener.say("offload.optimizer", scenario.offload.optimizer == 0, on_gpu);
  listener.say("offload.activations", scenario.offload.activations == 0, on_gpu);
  listener.say("offload.weights", scenario.offload.weights == 0, on_gpu);
  listener.say("offload.weights", shards_are_masters(scenario),
               "the weights that options.software shards are the optimizer's own (offload.optimizer)");
  listener.say("schedule.fused_share", !runs_fused_pairs(scenario), "the order has no fused pairs");
}

}  // namespace

std::span<const std::string_view> idle_keys_of_stages() {
  return kIdleOfStages;
}

std::vector<Diagnostic> keys_without_effect(const Scenario& scenario) {
  Listener listener(scenario);
  if (std::holds_alternative<StagesSpec>(scenario.model)) listen_to_stages(listener, scenario);
  listen_to_degrees(listener, scenario);
  listen_to_recompute(listener, scenario);
  listen_to_overlap(listener, scenario);
  listen_to_options(listener, scenario);
  listen_to_failures(listener, scenario);
  listen_to_cluster(listener, scenario);
  return std::move(listener).warnings();
}

}  // namespace stagecraft
