// Scenario -> YAML that reads back to an equal scenario: every key, every unit, in a fixed order.
#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "sim/scenario/failures_to_yaml.hpp"
#include "sim/scenario/load_jobs.hpp"
#include "sim/scenario/load_network.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/yaml_emitter.hpp"

namespace stagecraft {

namespace {

std::string integers(const std::vector<std::int64_t>& list) {
  return list_of(list, [](std::int64_t n) { return std::to_string(n); });
}

void print(Emitter& out, const LatentAttentionSpec& latent) {
  out.number("query_rank", latent.query_rank);
  out.number("kv_rank", latent.kv_rank);
  out.number("nope_head_size", latent.nope_head_size);
  out.number("rope_head_size", latent.rope_head_size);
  out.number("value_head_size", latent.value_head_size);
}

// A width of no shared experts, and a capacity that drops no token, cannot be written.
void print(Emitter& out, const ExpertsSpec& experts) {
  out.number("count", experts.count);
  out.number("top_k", experts.top_k);
  if (experts.groups > 1) {
    out.number("groups", experts.groups);
    out.number("top_groups", experts.top_groups);
  }
  out.number("ffn_hidden", experts.ffn_hidden);
  out.number("shared", experts.shared);
  if (experts.shared > 0) out.number("shared_ffn_hidden", experts.shared_ffn_hidden);
  out.flag("shared_gate", experts.shared_gate);
  out.flag("router_bias", experts.router_bias);
  out.field("dense_layers", integers(experts.dense_layers));
  if (experts.capacity_factor > 0) {
    out.real("capacity_factor", experts.capacity_factor);
    out.flag("pad_to_capacity", experts.pad_to_capacity);
  }
  out.real("imbalance", experts.imbalance);
}

void print(Emitter& out, const TransformerSpec& model) {
  out.text("name", model.name);
  out.field("family", word(model.family, kFamilyNames));
  out.number("layers", model.layers);
  out.number("hidden", model.hidden);
  out.number("heads", model.heads);
  out.number("kv_heads", model.kv_heads);
  out.number("head_size", model.head_size);
  out.number("ffn_hidden", model.ffn_hidden);
  out.number("vocab", model.vocab);
  out.number("max_sequence_length", model.max_sequence_length);
  out.field("activation", word(model.activation, kActivationNames));
  out.field("normalization", word(model.normalization, kNormalizationNames));
  out.field("norms", word(model.norms, kNormsNames));
  out.field("position", word(model.position, kPositionNames));
  out.flag("tied_embeddings", model.tied_embeddings);
  out.flag("biases", model.biases);
  out.flag("qkv_bias", model.qkv_bias);
  if (model.qk_norm == QkNorm::kWidth)
    out.field("qk_norm", "width");
  else
    out.flag("qk_norm", model.qk_norm == QkNorm::kHead);
  out.flag("attention_sinks", model.attention_sinks);
  out.flag("clamped_activation", model.clamped_activation);
  out.flag("dropout", model.dropout);
  if (model.latent_attention) {
    out.open("latent_attention");
    print(out, *model.latent_attention);
    out.close();
  }
  if (model.experts) {
    out.open("experts");
    print(out, *model.experts);
    out.close();
  }
  if (model.sliding_window) {
    out.open("sliding_window");
    out.number("tokens", model.sliding_window->tokens);
    out.field("full_layers", integers(model.sliding_window->full_layers));
    out.close();
  }
  out.number("mtp_layers", model.mtp_layers);
}

void print(Emitter& out, const StagesSpec& model) {
  out.text("name", model.name);
  out.field("family", "stages");
  out.field("forward", quantities(model.forward));
  out.field("input_gradient", quantities(model.input_gradient));
  out.field("weight_gradient", quantities(model.weight_gradient));
  out.field("activation", quantities(model.activation));
  out.field("gradient", quantities(model.gradient));
  if (!model.recompute.empty()) out.field("recompute", quantities(model.recompute));
  if (!model.message.empty()) out.field("message", quantities(model.message));
}

void print_rate(Emitter& out, std::string_view key, Bandwidth rate) {
  if (rate > Bandwidth(0)) out.field(key, quantity(rate));
}

void print_inside(Emitter& out, const NodeSpec& node) {
  print_rate(out, "nvswitch", node.nvswitch);
  if (!node.nvlink_pairs.empty())
    out.field("nvlink_pairs", list_of(node.nvlink_pairs, [](const NvlinkPair& pair) {
                return fmt::format("[{}, {}, {}]", pair.a, pair.b, pair.links);
              }));
  if (node.nvlink_domain > 1) out.number("nvlink_domain", node.nvlink_domain);
  if (node.gpus_per_pcie_switch > 0) out.number("gpus_per_pcie_switch", node.gpus_per_pcie_switch);
  print_rate(out, "pcie_uplink", node.pcie_uplink);
  if (node.sockets > 1) out.number("sockets", node.sockets);
  print_rate(out, "socket_link", node.socket_link);
}

// Keys whose 0 means "not given" are left out: 0 cannot be written.
void print(Emitter& out, const NodeSpec& node) {
  out.text("name", node.name);
  out.text("device", node.device);
  out.number("gpus", node.gpus);
  if (node.nvlink > Bandwidth(0)) out.field("nvlink", quantity(node.nvlink));
  out.field("nvlink_latency", quantity(node.nvlink_latency));
  out.number("nics", node.nics);
  out.field("nic_bandwidth", quantity(node.nic_bandwidth));
  out.field("pcie", quantity(node.pcie));
  out.field("host_memory", quantity(node.host_memory));
  if (node.host_memory_bandwidth > Bandwidth(0))
    out.field("host_memory_bandwidth", quantity(node.host_memory_bandwidth));
  print_inside(out, node);
  out.text("profile", node.default_profile);
  out.text("fabric", node.default_fabric);
  out.text("source", node.source);
}

void print_dragonfly(Emitter& out, const FabricSpec& fabric) {
  out.number("groups", fabric.groups);
  out.number("routers_per_group", fabric.routers_per_group);
  out.number("nodes_per_router", fabric.nodes_per_router);
  out.number("global_links", fabric.global_links);
  print_rate(out, "global_bandwidth", fabric.global_bandwidth);
}

void print_shape(Emitter& out, const FabricSpec& fabric) {
  const bool torus = fabric.kind == FabricKind::kTorus, dragonfly = fabric.kind == FabricKind::kDragonfly;
  if (dragonfly) print_dragonfly(out, fabric);
  if (torus) out.field("dims", list_of(fabric.dims, [](int size) { return std::to_string(size); }));
  print_rate(out, "link_bandwidth", fabric.link_bandwidth);
  if (!torus && !dragonfly) {
    out.real("oversubscription", fabric.oversubscription);
    out.number("nodes_per_leaf", fabric.nodes_per_leaf);
    if (fabric.spines > 1) out.number("spines", fabric.spines);
  }
  if (fabric.nodes_per_pod > 0) {
    out.number("nodes_per_pod", fabric.nodes_per_pod);
    out.number("cores", fabric.cores);
    out.real("core_oversubscription", fabric.core_oversubscription);
  }
  if (fabric.planes > 1) out.number("planes", fabric.planes);
  if (fabric.routing != Routing::kEcmp) return;
  out.field("routing", word(fabric.routing, kRoutingNames));
  out.number("routing_seed", fabric.routing_seed);
}

void print(Emitter& out, const FabricSpec& fabric) {
  out.text("name", fabric.name);
  out.field("kind", word(fabric.kind, kFabricKindNames));
  if (fabric.nics_per_node > 0) out.number("nics_per_node", fabric.nics_per_node);
  if (fabric.nic_bandwidth > Bandwidth(0)) out.field("nic_bandwidth", quantity(fabric.nic_bandwidth));
  print_shape(out, fabric);
  out.field("switch_latency", quantity(fabric.switch_latency));
  out.real("collective_efficiency", fabric.collective_efficiency);
  if (fabric.rail_efficiency) out.real("rail_efficiency", *fabric.rail_efficiency);
  if (fabric.crossing_efficiency) out.real("crossing_efficiency", *fabric.crossing_efficiency);
  out.real("point_to_point_efficiency", fabric.point_to_point_efficiency);
  out.field("collective_latency", quantity(fabric.collective_latency));
  out.field("step_latency", quantity(fabric.step_latency));
  if (fabric.chunking > 0) out.real("chunking", fabric.chunking);
  if (fabric.chunk > Bytes(0)) out.field("chunk", quantity(fabric.chunk));
  if (fabric.sharp) out.flag("sharp", fabric.sharp);
  out.field("point_to_point_latency", quantity(fabric.point_to_point_latency));
  out.real("tensor_collective_factor", fabric.tensor_collective_factor);
  out.field("tensor_collective_overhead", quantity(fabric.tensor_collective_overhead));
  out.text("source", fabric.source);
}

// Declared before the template that calls them.
void print(Emitter& out, const ClusterSpec& cluster);
void print(Emitter& out, const ParallelSpec& spec);
void print(Emitter& out, const TrainingSpec& spec);
void print(Emitter& out, const OverlapSpec& spec);
void print(Emitter& out, const OffloadSpec& spec);

template <class Spec>
void print_section(Emitter& out, std::string_view key, const Spec& spec) {
  out.open(key);
  print(out, spec);
  out.close();
}

void print(Emitter& out, const ClusterSpec& cluster) {
  if (cluster.groups.size() == 1) {
    print_section(out, "node", cluster.groups.front().node);
    if (cluster.gpus_used > 0)
      out.number("gpus", cluster.gpus_used);
    else
      out.number("nodes", cluster.groups.front().count);
  } else {
    out.open("nodes");
    for (const NodeGroup& group : cluster.groups) {
      out.item();
      out.number("nodes", group.count);
      print_section(out, "node", group.node);
      out.close();
    }
    out.close();
  }
  print_section(out, "fabric", cluster.fabric);
  if (cluster.links.empty()) return;
  out.open("links");
  for (const LinkException& link : cluster.links) {
    out.item();
    out.text("name", link.name);
    if (link.bandwidth) out.field("bandwidth", quantity(*link.bandwidth));
    const bool says_more = link.bandwidth || link.latency || link.missing;
    if (link.share < 1 || !says_more) out.real("share", link.share);
    if (link.latency) out.field("latency", quantity(*link.latency));
    if (link.missing) out.flag("missing", true);
    if (!link.both) out.field("direction", "one-way");
    out.close();
  }
  out.close();
}

void print(Emitter& out, const ParallelSpec& spec) {
  out.number("tensor", spec.tensor);
  out.number("pipeline", spec.pipeline);
  if (spec.data) out.number("data", *spec.data);
  out.number("context", spec.context);
  out.field("context_exchange", word(spec.context_exchange, kContextExchangeNames));
  out.number("expert", spec.expert);
  out.number("expert_tensor", spec.expert_tensor);
  out.number("virtual_stages", spec.virtual_stages);
  if (!spec.stage_layers.empty()) out.field("stage_layers", integers(spec.stage_layers));
  out.flag("embedding_as_layer", spec.embedding_as_layer);
  out.flag("loss_as_layer", spec.loss_as_layer);
  out.flag("sequence_parallel", spec.sequence_parallel);
  if (spec.replicated_embedding) out.flag("replicated_embedding", true);
  out.number("zero_stage", spec.zero_stage);
  if (spec.zero_group) out.number("zero_group", *spec.zero_group);
  out.field("order", list_of(spec.order, [](Axis axis) { return std::string(word(axis, kAxisNames)); }));
}

// A named schedule, or an order from a file.
struct PrintedSchedule {
  const ScheduleSpec& spec;
  const PipelineOrder* order;
};

void print(Emitter& out, const PrintedSchedule& schedule) {
  const ScheduleSpec& spec = schedule.spec;
  if (schedule.order != nullptr) {
    out.text("file", schedule.order->file);
  } else {
    out.field("name", spec.name);
    out.number("micro_batch_group", spec.micro_batch_group);
  }
  out.flag("global_step", spec.global_step);
  if (spec.rollback > 0) out.real("rollback", spec.rollback);
  out.number("iterations", spec.iterations);
  if (spec.fused_share) out.real("fused_share", *spec.fused_share);
}

template <class Value>
std::string names_of(const EnumSet<Value>& values, std::span<const std::string_view> known) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (values.has(static_cast<Value>(i))) names.emplace_back(known[i]);
  return list_of(names, [](const std::string& name) { return name; });
}

void print_recompute(Emitter& out, const RecomputeSpec& spec) {
  const std::string_view granularity = word(spec.granularity, kRecomputeNames);
  if (spec.granularity == Recompute::kNone) return out.field("recompute", granularity);
  out.open("recompute");
  out.field("granularity", granularity);
  if (spec.granularity == Recompute::kFull) {
    out.field("method", word(spec.method, kRecomputeMethodNames));
    out.number("layers", spec.layers);
  } else {
    out.field("modules", names_of(spec.modules, kRecomputeModuleNames));
  }
  out.close();
}

void print(Emitter& out, const TrainingSpec& spec) {
  out.number("global_batch_size", spec.global_batch_size);
  out.number("micro_batch_size", spec.micro_batch_size);
  if (spec.sequence_length > 0) out.number("sequence_length", spec.sequence_length);
  out.field("precision", word(spec.precision, kPrecisionNames));
  if (spec.sixteen_bit_layers != SixteenBitLayers{}) {
    out.open("sixteen_bit_layers");
    out.number("first", spec.sixteen_bit_layers.first);
    out.number("last", spec.sixteen_bit_layers.last);
    out.close();
  }
  if (spec.autocast) out.flag("autocast", true);
  print_recompute(out, spec.recompute);
  out.field("attention", word(spec.attention, kAttentionNames));
  out.field("optimizer", "adam");
  out.field("gradient_dtype", word(spec.gradient, kPrecisionNames));
  out.field("moment_dtype", word(spec.moment, kPrecisionNames));
  out.flag("master_weights", spec.master_weights);
  out.flag("master_remainders", spec.master_remainders);
}

void print(Emitter& out, const OverlapSpec& spec) {
  for (const auto& [name, overlaps] : kOverlapKeys) out.flag(name, spec.*overlaps);
}

void print_options(Emitter& out, const Scenario& scenario) {
  const OptionsSpec spec = options_in_effect(scenario);
  out.open("options");
  out.flag("scatter_gather", spec.scatter_gather);
  out.flag("fused_kernels", spec.fused_kernels);
  if (scenario.origins.contains("options.unfused"))
    out.field("unfused", names_of(spec.unfused, kLateFusionNames));
  if (scenario.origins.contains("options.fused")) out.field("fused", names_of(spec.fused, kLateFusionNames));
  out.flag("gradient_accumulation_fusion", spec.gradient_accumulation_fusion);
  if (spec.bucket_parameters) out.number("bucket_parameters", *spec.bucket_parameters);
  out.flag("reshard_after_forward", spec.reshard_after_forward.value());
  if (!spec.attention_kernel.empty()) out.text("attention_kernel", spec.attention_kernel);
  if (names_software(scenario)) out.text("software", spec.software);
  out.field("expert_dispatcher", word(spec.expert_dispatcher, kExpertDispatcherNames));
  out.field("cuda_graphs", word(spec.cuda_graphs, kCudaGraphsNames));
  if (scenario.training.precision == Precision::kFp8)
    out.field("fp8_recipe", word(spec.fp8_recipe, kFp8RecipeNames));
  if (spec.fp8_parameters) out.flag("fp8_parameters", *spec.fp8_parameters);
  if (spec.fp8_dispatch) out.flag("fp8_dispatch", true);
  if (spec.fp8_attention != Fp8Attention::kNone)
    out.field("fp8_attention", word(spec.fp8_attention, kFp8AttentionNames));
  if (spec.fused_experts) out.flag("fused_experts", true);
  if (spec.foreach_step) out.flag("foreach_step", true);
  out.open("memory");
  out.flag("fused_loss", spec.memory.fused_loss);
  out.flag("compiled_loss", spec.memory.compiled_loss);
  out.flag("fp32_logits", spec.memory.fp32_logits);
  if (spec.memory.loss_chunks > 1) out.number("loss_chunks", spec.memory.loss_chunks);
  if (spec.memory.gathered_logits) out.flag("gathered_logits", true);
  out.flag("keep_outputs", spec.memory.keep_outputs);
  out.flag("gradient_placeholders", spec.memory.gradient_placeholders);
  out.flag("whole_gradients", spec.memory.whole_gradients.value());
  out.flag("bucket_copies", spec.memory.bucket_copies);
  if (spec.memory.fragmentation) out.real("fragmentation", *spec.memory.fragmentation);
  out.close();
  out.close();
}

void print_background(Emitter& out, const NetworkSpec& spec) {
  if (spec.background.empty()) return;
  out.open("background");
  for (const BackgroundSpec& traffic : spec.background) {
    out.item();
    out.field("from", to_text(traffic.from));
    out.field("to", to_text(traffic.to));
    out.field("rate", quantity(traffic.rate));
    out.close();
  }
  out.close();
}

void print_nodes(Emitter& out, const std::vector<int>& nodes) {
  out.text("nodes", node_list_text(nodes));
}

void print_network(Emitter& out, const Scenario& scenario) {
  const NetworkSpec& spec = scenario.network;
  if (spec == NetworkSpec{.mode = spec.mode}) {
    out.field("network", word(spec.mode, kNetworkModeNames));
    return;
  }
  out.open("network");
  out.field("mode", word(spec.mode, kNetworkModeNames));
  print_background(out, spec);
  if (!spec.placement.empty()) {
    out.open("placement");
    print_nodes(out, spec.placement);
    out.close();
  }
  if (spec.iterations > 1) out.number("iterations", spec.iterations);
  if (!scenario.jobs.empty()) {
    out.open("jobs");
    for (const OtherJob& job : scenario.jobs) {
      out.item();
      out.text("name", job.name);
      out.text("scenario", job.file);
      print_nodes(out, job.nodes);
      out.field("start", quantity(job.start));
      out.close();
    }
    out.close();
  }
  out.close();
}

void print_faults(Emitter& out, const std::vector<FaultSpec>& faults) {
  if (faults.empty()) return;
  out.open("faults");
  for (const FaultSpec& fault : faults) {
    out.item();
    out.field("at", quantity(fault.at));
    out.field("kind", word(fault.kind, kFaultKindNames));
    if (fault.kind == FaultKind::kSlowGpu)
      out.number("gpu", fault.gpu);
    else if (fault.kind == FaultKind::kDegradedLink)
      out.text("link", fault.link);
    else
      out.number("node", fault.node);
    if (fault.kind != FaultKind::kDeadNode) out.real("factor", fault.factor);
    if (fault.lasts) out.field("for", quantity(*fault.lasts));
    out.close();
  }
  out.close();
}

void print(Emitter& out, const OffloadSpec& spec) {
  for (const auto& [name, share] : kOffloadKeys) out.real(name, spec.*share);
}

}  // namespace

std::string to_yaml(const Scenario& scenario) {
  Emitter out;
  out.number("stagecraft", 1);
  out.text("name", scenario.name);
  std::visit([&](const auto& model) { print_section(out, "model", model); }, scenario.model);
  if (scenario.cluster) print_section(out, "cluster", whole_cluster(scenario));
  if (scenario.profile && scenario.group_profiles.empty()) out.text("profile", scenario.profile->name);
  print_section(out, "parallelism", scenario.parallelism);
  print_section(out, "schedule",
                PrintedSchedule{scenario.schedule, scenario.order ? &*scenario.order : nullptr});
  print_section(out, "training", scenario.training);
  print_section(out, "overlap", scenario.overlap);
  print_options(out, scenario);
  print_network(out, scenario);
  print_faults(out, scenario.faults);
  print_section(out, "offload", scenario.offload);
  if (scenario.failures) {
    out.open("failures");
    print_failures(out, *scenario.failures);
    out.close();
  }
  if (scenario.assertions.empty()) return out.take();
  out.open("assert");
  for (const Assertion& assertion : scenario.assertions) out.text(assertion.metric, assertion.text);
  return out.take();
}

}  // namespace stagecraft
