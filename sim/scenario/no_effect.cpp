#include "sim/scenario/no_effect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "models/expert_exchange.hpp"
#include "models/op_builder.hpp"
#include "sim/goodput/processes/laws.hpp"
#include "sim/scenario/load_failure_process.hpp"

namespace stagecraft {

namespace {

class Listener {
 public:
  explicit Listener(const Scenario& scenario) : scenario_(scenario) {
    written_.reserve(scenario.origins.size());
    for (const auto& [path, where] : scenario.origins) written_.emplace_back(path);
  }

  // A warning if `idle` holds for a key that the user wrote. One key is named once, with the first reason.
  // A search asks this of every plan, so that no text is made for other keys.
  void say(std::string_view path, bool idle, std::string_view why) {
    if (idle && std::ranges::binary_search(written_, path))
      warn(std::string(path), "no-effect", "had no effect: " + std::string(why));
  }

  void say(std::string_view section, std::initializer_list<const char*> keys, bool idle,
           std::string_view why) {
    if (!idle) return;
    std::string path(section);
    for (const char* key : keys) {
      path.replace(section.size(), std::string::npos, key);
      say(path, true, why);
    }
  }

  // Warns of a key that has less effect than it seems to have.
  void warn(const std::string& path, std::string code, std::string message) {
    const auto written = scenario_.origins.find(path);
    if (written == scenario_.origins.end()) return;
    if (std::ranges::find(warnings_, path, &Diagnostic::path) != warnings_.end()) return;
    warnings_.push_back({.severity = Severity::kWarning,
                         .code = std::move(code),
                         .where = written->second,
                         .path = path,
                         .message = std::move(message)});
  }

  [[nodiscard]] std::vector<Diagnostic> warnings() && { return std::move(warnings_); }

 private:
  const Scenario& scenario_;
  std::vector<std::string_view> written_;  // ascending, as the origins are
  std::vector<Diagnostic> warnings_;
};

constexpr std::array<std::string_view, 34> kIdleOfStages = {"training.precision",
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
  const bool experts = model.layers_of(LayerKind::kExperts) > 0;
  const RecomputeModules& modules = training.recompute.modules;
  const bool attention = modules.has(RecomputeModule::kSelfAttention);
  switch (module) {
    case RecomputeModule::kCoreAttention:
      if (attention) return "self_attn repeats it already";
      return repeats_no_core(scenario) ? "flash attention keeps no scores" : "";
    case RecomputeModule::kLayerNorm:
      return "";
    case RecomputeModule::kMlp:
      return model.layers_of(LayerKind::kDense) > 0 ? "" : "every layer of the model has experts";
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

bool shards_are_fp32(const Scenario& scenario) {
  return scenario.options.rules.memory.fp32_shards && zero_stage_in_effect(scenario) == 3;
}

bool shards_are_masters(const Scenario& scenario) {
  return shards_are_fp32(scenario) && scenario.training.master_weights &&
         scenario.training.precision != Precision::kFp32;
}

// Why masters are whole, but for what `offload` asks of the host; empty where they may keep remainders.
std::string_view why_masters_are_whole(const Scenario& scenario) {
  const TrainingSpec& training = scenario.training;
  const bool fp8 = training.precision == Precision::kFp8;
  if (training.precision != Precision::kBf16 && !fp8) return "the weights are not bf16";
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
  return options.memory.bucket_copies || (fp8 && options.rules.shards_fp8 && !options.fp8_parameters);
}

// One of the losses that the ledger knows runs.
void listen_to_loss(Listener& listener, const OptionsSpec& options) {
  const SoftwareMemory& memory = options.memory;
  listener.say("options.memory.fp32_logits", memory.fp32_logits && memory.fused_loss,
               "a fused loss casts no logits");
  listener.say("options.memory.compiled_loss", memory.compiled_loss && memory.fused_loss,
               "a fused loss has no softmax to copy");
  listener.say("options.memory.compiled_loss", memory.compiled_loss && memory.fp32_logits,
               "the loss over fp32 logits is PyTorch's own");
  listener.say("options.memory.compiled_loss", memory.compiled_loss && options.rules.memory.loss_in_16_bit,
               "the loss of options.software is in 16 bit");
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
  listener.say("cluster.fabric.", {"tensor_collective_factor", "tensor_collective_overhead"},
               parallel.tensor == 1, "parallelism.tensor is 1");
  const int zero = zero_stage_in_effect(scenario);
  listener.say("parallelism.zero_stage", parallel.zero_stage > 0 && zero == 0 && !chooses_code(scenario),
               one_replica ? "there is one replica, and nobody to share with"
                           : "parallelism.zero_group is 1, and nobody shares");
  listener.say("training.master_weights", scenario.training.precision == Precision::kFp32,
               "fp32 weights are their own masters");
  listen_to_remainders(listener, scenario);
  listener.say("options.memory.whole_gradients", scenario.options.memory.whole_gradients && zero < 2,
               "gradients are sharded under ZeRO 2 and 3 of several replicas only");
  listener.say("options.memory.keep_outputs", scenario.options.memory.keep_outputs && parallel.pipeline == 1,
               "parallelism.pipeline is 1, and no stage sends its outputs");
  listener.say("options.gradient_accumulation_fusion", zero >= 2 && !scenario.options.memory.whole_gradients,
               "gradients of ZeRO 2 and 3 are reduced after each pass, and added to nothing");
  listen_to_loss(listener, scenario.options);
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
         options.rules.reduces_behind_backward && options.memory.whole_gradients && holds_one_stage(scenario);
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

void listen_to_experts(Listener& listener, const Scenario& scenario) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  const bool none = model == nullptr || model->layers_of(LayerKind::kExperts) == 0;
  listener.say("options.expert_dispatcher", none, "the model has no experts");
  listener.say(
      "options.expert_dispatcher",
      scenario.parallelism.expert == 1 && scenario.options.expert_dispatcher == ExpertDispatcher::kNodeAware,
      "parallelism.expert is 1, and no token goes to another node");
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

// Has the model any of the operations that do not run fused?
bool has_any(const TransformerSpec& model, const LateFusions& unfused) {
  return (unfused.has(LateFusion::kRmsNorm) && model.normalization == Normalization::kRmsNorm) ||
         (unfused.has(LateFusion::kSwiglu) && model.activation == Activation::kSwiglu) ||
         (unfused.has(LateFusion::kGelu) && model.activation == Activation::kGelu) ||
         (unfused.has(LateFusion::kRope) && (model.latent_attention || model.position == Position::kRope));
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

void listen_to_options(Listener& listener, const Scenario& scenario) {
  const ParallelSpec& parallel = scenario.parallelism;
  listener.say("options.scatter_gather", parallel.pipeline == 1, "parallelism.pipeline is 1");
  listener.say("options.scatter_gather", parallel.tensor == 1, "parallelism.tensor is 1");
  listener.say("options.scatter_gather", parallel.sequence_parallel,
               "under sequence_parallel each tensor rank sends its own part");
  listen_to_buckets(listener, scenario);
  listen_to_unfused(listener, scenario);
  listener.say("options.reshard_after_forward", zero_stage_in_effect(scenario) < 3,
               parallel.zero_stage < 3 ? "weights are sharded from zero_stage 3 on"
                                       : "no two ranks share the weights");
  listener.say("options.attention_kernel", scenario.training.attention == Attention::kUnfused,
               "training.attention is unfused");
  listen_to_experts(listener, scenario);
  listener.say("options.fp8_recipe", scenario.training.precision != Precision::kFp8,
               "training.precision is not fp8");
  listener.say("options.fp8_parameters", scenario.training.precision != Precision::kFp8,
               "training.precision is not fp8");
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

bool needs_repair(const FailureProcess& process) {
  return breaks_nodes(process.law) && std::ranges::any_of(process.causes, [](const Cause& cause) {
           return cause.severity == FailureSeverity::kNode && !cause.repair;
         });
}

// The most nodes that a trace of events or counts has at once.
int most_at_once(const TraceReplay& law) {
  int now = 0, most = 0;
  for (const TraceCount& count : law.trace.counts) most = std::max(most, scaled_count(law, count.available));
  if (law.trace.form != TraceForm::kEvents) return most;
  for (const TraceRow& row : law.trace.rows)
    most = std::max(most, now += row.event == TraceEvent::kAdd ? 1 : -1);
  return most;
}

void listen_to_trace(Listener& listener, const Scenario& scenario, const FailureProcess& process,
                     const std::string& path) {
  const auto* replay = std::get_if<TraceReplay>(&process.law);
  if (replay == nullptr || !scenario.cluster) return;
  const int nodes = scenario.cluster->server_count() + scenario.failures->policy.spares.value_or(0);
  const int most = most_at_once(*replay);
  if (most <= nodes) return;
  listener.warn(
      path + ".file", "surplus-nodes",
      fmt::format(
          "up to {} nodes are there at once, and the cluster has {}: additions beyond them are skipped", most,
          nodes));
}

// Rates and times of checkpoints that follow from one another.
void listen_to_checkpoints(Listener& listener, const CheckpointSpec& spec) {
  const bool sync = spec.mode == CheckpointMode::kSync;
  const char* writes = sync ? "failures.checkpoint.block says how long it takes"
                            : "failures.checkpoint.persist says how long it takes";
  listener.say("failures.checkpoint.", {"node_write", "storage_write"},
               sync ? spec.block.has_value() : spec.persist.has_value(), writes);
  listener.say("failures.checkpoint.", {"node_read", "storage_read"}, spec.load.has_value(),
               "failures.checkpoint.load says how long it takes");
  listener.say("failures.checkpoint.snapshot", spec.block.has_value(),
               "failures.checkpoint.block says how long it takes");
  listener.say("failures.checkpoint.bytes",
               spec.block.has_value() && spec.load.has_value() && (sync || spec.persist.has_value()),
               "the times of checkpoints are given");
}

bool announces(const FailureProcess& process) {
  return is_announced(process.law);
}

bool needs_no_detection(const FailureProcess& process) {
  return announces(process) || std::holds_alternative<FailSlow>(process.law);
}

// Detection of what is announced, or slows the job down and does not stop it. A list of causes always has it
// where a scenario is printed.
void listen_to_undetected(Listener& listener, const FailureProcess& process, const std::string& path) {
  if (!needs_no_detection(process)) return;
  const char* why =
      announces(process) ? "an announced removal needs no detection" : "a slow node does not stop the job";
  listener.say(path + ".detect", true, why);
}

// Waits of varuna for what never comes.
void listen_to_announcements(Listener& listener, const FailureSpec& spec) {
  if (spec.policy.kind != PolicyKind::kVaruna) return;
  listener.say("failures.policy.", {"announced_wait", "transient_wait", "notice"},
               !spec.policy.throughput.empty(), "a replay of a table of throughput has no such time");
  const bool announced = spec.policy.notice > Duration(0) || std::ranges::any_of(spec.processes, announces);
  listener.say("failures.policy.announced_wait", !announced,
               "nothing is announced: neither by failures.policy.notice nor by maintenance with a notice");
}

// Elastic stalls for as long, whenever within it a loss is detected. Wrong results are no loss.
void listen_to_detection(Listener& listener, const FailureSpec& spec) {
  if (spec.policy.kind != PolicyKind::kElastic) return;
  const Duration stall = spec.policy.stall;
  const auto listen = [&](const std::string& path, Duration detect) {
    if (detect > stall)
      listener.warn(path, "more-than-possible",
                    fmt::format("counts as {} where a replica fails: failures.policy.stall has it in it",
                                human(stall)));
  };
  for (std::size_t i = 0; i < spec.processes.size(); ++i) {
    const FailureProcess& process = spec.processes[i];
    if (!breaks_nodes(process.law) && !says_who_is_there(process.law)) continue;
    if (spec.detect) listen("failures.detect", *spec.detect);
    for (std::size_t c = 0; !spec.detect && c < process.causes.size(); ++c)
      for (const std::string& item :
           {std::string("failures.process"), fmt::format("failures.process.{}", i)}) {
        listen(item + ".detect", process.causes[c].detect);
        listen(fmt::format("{}.causes.{}.detect", item, c), process.causes[c].detect);
      }
  }
}

void listen_to_policy(Listener& listener, const Scenario& scenario) {
  const FailureSpec& spec = *scenario.failures;
  const PolicySpec& policy = spec.policy;
  const bool table = !policy.throughput.empty();
  const bool varuna = policy.kind == PolicyKind::kVaruna, bamboo = policy.kind == PolicyKind::kBamboo;
  listener.say("failures.policy.swap", policy.kind == PolicyKind::kOobleck && policy.reconfigure.has_value(),
               "failures.policy.reconfigure is all of it");
  listener.say("failures.policy.reconfigure", varuna && !table,
               "without a table of throughput varuna takes failures.policy.restart");
  listener.say("failures.policy.checkpoint_every",
               varuna && !table && scenario.origins.contains("failures.checkpoint.interval"),
               "failures.checkpoint.interval says how often");
  listener.say("failures.policy.", {"pipelines", "stages"}, bamboo && !table,
               "without a table of throughput they are those of the job");
  listener.say("failures.policy.pipelines", bamboo,
               "a replay has as many as nodes fill, of failures.policy.stages each");
  // The evaluations of these three are replayed where there is a table.
  if (!table || (!varuna && !bamboo && policy.kind != PolicyKind::kOobleck)) return;
  const char* replay = "a replay of a table of throughput takes it from the policy";
  listener.say("failures.checkpoint.", {"interval", "persist", "load", "slowdown"}, true, replay);
  listener.say("failures.checkpoint.block", !varuna, replay);
  listener.say("failures.detect", true, replay);
}

void listen_to_failures(Listener& listener, const Scenario& scenario) {
  if (!scenario.failures) return;
  const FailureSpec& spec = *scenario.failures;
  listen_to_checkpoints(listener, spec.checkpoint);
  listen_to_policy(listener, scenario);
  listen_to_announcements(listener, spec);
  listener.say("failures.repair", std::ranges::none_of(spec.processes, needs_repair),
               "no process breaks a node that this repair is for");
  listener.say("failures.checkpoint", spec.policy.kind == PolicyKind::kNone,
               "policy none writes no checkpoints");
  listener.say("failures.detect",
               !spec.processes.empty() && std::ranges::all_of(spec.processes, needs_no_detection),
               "nothing that happens has to be detected");
  const char* overruled = "failures.detect is for every cause";
  if (spec.processes.size() == 1) listen_to_undetected(listener, spec.processes.front(), "failures.process");
  listener.say("failures.process.detect", spec.detect.has_value(), overruled);
  for (std::size_t i = 0; i < spec.processes.size(); ++i) {
    const std::string item = fmt::format("failures.process.{}", i);
    listen_to_undetected(listener, spec.processes[i], item);
    listener.say(item + ".detect", spec.detect.has_value(), overruled);
    listen_to_trace(listener, scenario, spec.processes[i], item);
    if (spec.processes.size() == 1)
      listen_to_trace(listener, scenario, spec.processes[i], "failures.process");
  }
  listen_to_detection(listener, spec);
}

// A named fabric brings this key along with the others of its file, and nobody wrote it.
bool is_of_named_fabric(const Scenario& scenario, const std::string& path) {
  const std::string file = place_of(scenario, path).file;
  return file == place_of(scenario, "cluster.fabric.kind").file &&
         file != place_of(scenario, "stagecraft").file;
}

// Latencies that the graph of the cluster has and prices do not.
void listen_to_latencies(Listener& listener, const Scenario& scenario) {
  if (!scenario.cluster) return;
  constexpr const char* kSwitches = "cluster.fabric.switch_latency";
  const bool unasked = scenario.parallelism.pipeline == 1 || scenario.cluster->server_count() == 1;
  listener.say(kSwitches, unasked && !is_of_named_fabric(scenario, kSwitches),
               "it is of messages between stages on several nodes; collectives have collective_latency and "
               "step_latency");
  if (!scenario.network.shared()) return;  // cluster.links then has no effect at all
  const ClusterSpec& whole = whole_cluster(scenario);
  for (std::size_t i = 0; i < whole.links.size(); ++i)
    listener.say(fmt::format("cluster.links.{}.latency", i), true,
                 "prices know the latencies of the fabric, not of single links; topology show does");
}

// Uplinks that carry nothing. A ratio of 1 asks for nothing, as in most presets.
void listen_to_uplinks(Listener& listener, const Scenario& scenario) {
  if (!scenario.cluster) return;
  constexpr const char* kPath = "cluster.fabric.oversubscription";
  const bool shared = scenario.network.shared();
  const ClusterSpec& cluster = shared ? whole_cluster(scenario) : *scenario.cluster;
  const FabricSpec& fabric = cluster.fabric;
  if (fabric.oversubscription <= 1) return;
  listener.say(kPath, fabric.kind == FabricKind::kSingleSwitch, "a single switch has no uplinks");
  // On shared links the rails below one group of leaf switches meet above them.
  const bool rails_meet = shared && fabric.kind == FabricKind::kRailOptimized;
  listener.say(
      kPath, !rails_meet && cluster.server_count() <= fabric.nodes_per_leaf,
      fmt::format("a leaf has room for {} nodes, and all of them are on one", fabric.nodes_per_leaf));
}

// NICs that give a GPU more than its PCIe: the rest of them is idle.
void listen_to_nics(Listener& listener, const Scenario& scenario) {
  if (!scenario.cluster) return;
  const ClusterSpec& cluster = *scenario.cluster;
  const NodeSpec& node = cluster.groups.front().node;
  if (cluster.server_count() <= node.nvlink_domain) return;
  const auto share = [&](const NodeSpec& of) {
    return cluster.fabric.nics_of(of) * cluster.fabric.nic_rate_of(of) / of.gpus;
  };
  const auto binds = [&](const NodeGroup& group) { return share(group.node) > group.node.pcie; };
  if (!std::ranges::all_of(cluster.groups, binds)) return;
  const bool overruled = cluster.fabric.nic_bandwidth > Bandwidth(0);
  listener.warn(
      overruled ? "cluster.fabric.nic_bandwidth" : "cluster.node.nic_bandwidth", "more-than-possible",
      fmt::format(
          "counts in part: a GPU has NICs of {}, and reaches them over PCIe of {} (cluster.node.pcie)",
          human(share(node)), human(node.pcie)));
}

// Sums that switches could add up.
void listen_to_sharp(Listener& listener, const Scenario& scenario) {
  if (!scenario.cluster || !scenario.cluster->fabric.sharp) return;
  constexpr const char* kPath = "cluster.fabric.sharp";
  const ClusterSpec& cluster = *scenario.cluster;
  listener.say(kPath, cluster.server_count() == 1, "there is one node, and no switch between nodes");
  const ParallelSpec& parallel = scenario.parallelism;
  const bool in_a_node = std::ranges::all_of(cluster.groups, [&](const NodeGroup& group) {
    return cluster.gpus_of(group.node) % parallel.tensor == 0;
  });
  const bool tensor_apart = parallel.tensor > 1 && (parallel.order.front() != Axis::kTensor || !in_a_node);
  if (std::holds_alternative<StagesSpec>(scenario.model) || tensor_apart || parallel.expert_tensor > 1)
    return;
  if (parallel.zero_stage == 0 || parallel.zero_group || !has_replicas(scenario)) return;
  listener.warn(kPath, "little-effect",
                "speeds up the norm of the gradients alone: under ZeRO gradients are scattered and weights "
                "gathered, and switches add up all-reduces only");
}

// Keys of a fabric that only `network: flow` uses, so that a closed-form price is not overrated.
void listen_to_fabric(Listener& listener, const Scenario& scenario) {
  if (!scenario.cluster || scenario.network.shared()) return;
  const FabricSpec& fabric = scenario.cluster->fabric;
  const bool one_node = scenario.cluster->server_count() == 1;
  const char* rates =
      "but for the latency of messages, closed-form prices know the rates of a fabric alone; network: flow "
      "knows its ways";
  listener.say("cluster.links", !scenario.cluster->links.empty(), "closed-form prices see no single link");
  const bool grid = fabric.kind == FabricKind::kTorus || fabric.kind == FabricKind::kDragonfly;
  listener.say("cluster.fabric.",
               {"dims", "groups", "routers_per_group", "nodes_per_router", "global_links", "link_bandwidth",
                "global_bandwidth"},
               grid, rates);
  listener.say(
      "cluster.fabric.",
      {"nodes_per_pod", "core_oversubscription", "cores", "spines", "planes", "routing", "routing_seed"},
      !one_node, rates);
  listener.say("cluster.node.nvlink_pairs", true, "closed-form prices take `nvlink` for every pair of GPUs");
  const char* own = "closed-form prices give every GPU its own PCIe";
  listener.say("cluster.node.", {"sockets", "socket_link"}, true, own);
  const bool copies =
      std::holds_alternative<TransformerSpec>(scenario.model) && !(scenario.offload == OffloadSpec{});
  listener.say("cluster.node.", {"gpus_per_pcie_switch", "pcie_uplink"}, !copies, own);
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
  listen_to_latencies(listener, scenario);
  listen_to_uplinks(listener, scenario);
  listen_to_nics(listener, scenario);
  listen_to_sharp(listener, scenario);
  listen_to_fabric(listener, scenario);
  return std::move(listener).warnings();
}

}  // namespace stagecraft
