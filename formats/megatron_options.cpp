#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "formats/megatron_sections.hpp"

namespace stagecraft {

namespace {

std::string not_in(MegatronEra era) {
  return fmt::format("not in Megatron-LM {}", megatron_era_name(era));
}

// Sequence parallelism has none, and Megatron-LM turns it off there.
void warn_of_waiting_all_reduce(MegatronReader& reader, const MegatronJob& job) {
  constexpr const char* kName = "async_tensor_model_parallel_allreduce";
  if (job.tensor == 1 || reader.given(kName) == nullptr) return;
  if (!reader.flag(kName) && !reader.flag("sequence_parallel"))
    reader.warning(kName, "not-modelled", "is not modelled: the all-reduce of inputs is not overlapped");
}

// The option of FSDP that overlaps without the switch for it; empty where none does. FSDP2 reduces and
// prefetches by itself, beside switches that must be off. Megatron-LM turns on those of what is sharded, which
// a dump shows.
//   source  NVIDIA/Megatron-LM megatron/training/arguments.py: use_torch_fsdp2, data_parallel_sharding_strategy
std::string_view overlap_of_fsdp(MegatronReader& reader, bool parameters) {
  constexpr const char* kStrategy = "data_parallel_sharding_strategy";
  if (reader.flag("use_torch_fsdp2")) return "use_torch_fsdp2";
  if (reader.is_dump() || !reader.flag("use_megatron_fsdp")) return {};
  const std::string word = reader.text(kStrategy);
  return word == "optim_grads_params" || (word == "optim_grads" && !parameters) ? kStrategy : "";
}

FragmentEntry overlap_entry(MegatronReader& reader, std::string key, const char* name, bool parameters) {
  const bool on = reader.flag(name);
  const std::string_view fsdp = overlap_of_fsdp(reader, parameters);
  if (on || fsdp.empty()) return flag_entry(std::move(key), on, reader.source(name));
  ImportSource source = reader.source(fsdp);
  source.comment += ", which overlaps";
  return flag_entry(std::move(key), true, source);
}

}  // namespace

Entries read_megatron_overlap(MegatronReader& reader, const MegatronJob& job) {
  Entries entries;
  if (job.data * job.context > 1) {
    const bool torch = reader.text("ddp_impl") == "torch";
    entries.push_back(
        reader.given("ddp_impl") != nullptr
            ? flag_entry("gradients", torch || reader.flag("overlap_grad_reduce"), reader.source("ddp_impl"))
            : overlap_entry(reader, "gradients", "overlap_grad_reduce", false));
    if (read_megatron_zero(reader).stage > 0)
      entries.push_back(overlap_entry(reader, "parameters", "overlap_param_gather", true));
  }
  if (job.pipeline > 1) {
    const MegatronArgument* given = reader.given("overlap_p2p_comm");
    const bool may = job.virtual_stages > 1 && !reader.is_old();
    const bool overlaps = may && (given == nullptr || reader.flag("overlap_p2p_comm"));
    ImportSource source = reader.source("overlap_p2p_comm");
    if (!may) source.comment = reader.is_old() ? not_in(reader.era()) : "interleaved schedules only";
    entries.push_back(flag_entry("pipeline", overlaps, source));
  }
  warn_of_waiting_all_reduce(reader, job);
  const bool overlaps = job.tensor > 1 && reader.flag("tp_comm_overlap");
  if (overlaps || (job.tensor > 1 && reader.flag("sequence_parallel")))  // which user buffers need
    entries.push_back(flag_entry("tensor", overlaps, reader.source("tp_comm_overlap")));
  if (job.expert > 1) {
    entries.push_back(flag_entry("expert", reader.flag("overlap_moe_expert_parallel_comm"),
                                 reader.source("overlap_moe_expert_parallel_comm")));
    constexpr const char* kShared = "moe_shared_expert_overlap";
    if (reader.flag(kShared)) entries.push_back(flag_entry("shared_experts", true, reader.source(kShared)));
  }
  return entries;
}

namespace {

// --cuda-graph-impl and what its graphs hold, or the flags before it. Of a layer of experts they hold what
// has a fixed shape; graphs of its router alone are not modelled. That there are none is written too, as some
// profiles have them by default.
FragmentEntry read_cuda_graphs(MegatronReader& reader) {
  std::string flag = "cuda_graph_impl";
  const std::string impl = reader.text(flag);
  const bool enabled = reader.flag("enable_cuda_graph"), external = reader.flag("external_cuda_graph");
  if (impl.empty() || impl == "none") {
    if (!enabled && !external) return text_entry("cuda_graphs", "none", reader.source(flag));
    flag = enabled ? "enable_cuda_graph" : "external_cuda_graph";
  }
  std::vector<std::string> held;
  for (const char* name : {"cuda_graph_modules", "cuda_graph_scope"})
    if (const MegatronArgument* given = reader.given(name))
      held.insert(held.end(), given->values.begin(), given->values.end());
  const auto holds = [&](std::string_view name) { return std::ranges::find(held, name) != held.end(); };
  if (impl == "full_iteration" || holds("full_iteration"))
    return text_entry("cuda_graphs", "iteration", reader.source(flag));
  if (held.empty() || holds("full") || holds("attn"))
    return text_entry("cuda_graphs", "layers", reader.source(flag));
  reader.warning(flag, "not-modelled",
                 "graphs of a part of the layers are not modelled: all is launched one by one");
  return text_entry("cuda_graphs", "none", reader.source(flag));
}

// Megatron-LM's recipes of Transformer Engine, by our names.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kFp8Recipes = {
    {{"delayed", "delayed"}, {"tensorwise", "current"}, {"blockwise", "blockwise"}, {"mxfp8", "mxfp8"}}};

// That of fp8 says nothing beside fp4.
void add_fp4_recipe(MegatronReader& reader, Entries& entries) {
  constexpr const char* kRecipe = "fp4_recipe";
  const std::string word = reader.text(kRecipe);
  if (word.empty()) reader.assume(reader.spelled(kRecipe) + " nvfp4");
  if (!word.empty() && word != "nvfp4")
    reader.warning(kRecipe, "not-modelled", in_quotes(word) + " is not modelled: nvfp4 counts");
  entries.push_back(text_entry("fp8_recipe", "nvfp4", reader.source(word.empty() ? "fp4" : kRecipe)));
}

void add_fp8_recipe(MegatronReader& reader, Entries& entries) {
  const std::string word = reader.text("fp8_recipe");
  if (word.empty()) return;
  const auto* known = std::ranges::find(kFp8Recipes, word, [](const auto& pair) { return pair.first; });
  if (known != kFp8Recipes.end())
    return entries.push_back(text_entry("fp8_recipe", known->second, reader.source("fp8_recipe")));
  reader.warning("fp8_recipe", "not-modelled",
                 in_quotes(word) + " is not modelled: one scale a tensor counts");
}

bool scales_by_mxfp8(MegatronReader& reader, const MegatronJob& job) {
  return job.fp8 && !job.fp4 && reader.text("fp8_recipe") == "mxfp8";
}

// Of other recipes Transformer Engine has kernels on some devices, and in NVFP4 where its environment says so.
void add_fp8_attention(MegatronReader& reader, const MegatronJob& job, Entries& entries) {
  constexpr const char* kFlag = "fp8_dot_product_attention";
  if (!job.fp8 || job.fp4 || !reader.flag(kFlag)) return;
  if (scales_by_mxfp8(reader, job))
    return entries.push_back(text_entry("fp8_attention", "mxfp8", reader.source(kFlag)));
  reader.warning(kFlag, "not-modelled", "attention in 8 bit is read beside --fp8-recipe mxfp8 alone",
                 "on Blackwell write options.fp8_attention: delayed, current or mxfp8");
}

// What the fuser does of dense layers moves as many bytes as their fused kernels.
void add_fused_experts(MegatronReader& reader, const MegatronJob& job, Entries& entries) {
  constexpr const char* kFlag = "use_transformer_engine_op_fuser";
  const bool fuses = reader.flag(kFlag) && job.experts;
  if (fuses && (job.fp4 || scales_by_mxfp8(reader, job)))
    entries.push_back(flag_entry("fused_experts", true, reader.source(kFlag)));
}

// The switch that says that the layers are those before Megatron Core; empty where none does. Dumps before it
// was the default have its switch off, those since have another for the layers before.
std::string_view legacy_switch(MegatronReader& reader) {
  constexpr const char *kLegacy = "use_legacy_models", *kCore = "use_mcore_models";
  if (reader.flag(kLegacy)) return kLegacy;
  const bool off = reader.is_dump() && reader.given(kCore) != nullptr && !reader.flag(kCore);
  return off && reader.given(kLegacy) == nullptr ? kCore : "";
}

// What runs the job, by its options and their age: a profile would guess from the GPU.
FragmentEntry read_software(MegatronReader& reader, const MegatronJob& job) {
  const MegatronZero zero = read_megatron_zero(reader);
  if (reader.flag("deepspeed"))
    return text_entry("software", megatron_on_deepspeed(!job.unfused_attention, zero.stage),
                      reader.source("deepspeed"));
  if (reader.flag("use_torch_fsdp2")) return text_entry("software", "fsdp2", zero.source);
  if (const std::string_view legacy = legacy_switch(reader); !legacy.empty())
    return text_entry("software", "megatron-lm-2021", reader.source(legacy));
  if (reader.flag("use_mcore_models"))
    return text_entry("software", "megatron-core", reader.source("use_mcore_models"));
  return text_entry("software", reader.is_old() ? "megatron-lm-2021" : "megatron-core",
                    {.comment = fmt::format("Megatron-LM {}", megatron_era_name(reader.era())), .where = {}});
}

// The fused loss is Megatron-Core's compiled one or Transformer Engine's.
void add_loss(MegatronReader& reader, Entries& memory) {
  if (!reader.flag("cross_entropy_loss_fusion")) return;
  ImportSource source = reader.source("cross_entropy_loss_fusion");
  const bool te = reader.text("cross_entropy_fusion_impl") == "te";
  if (te) source.comment += ", " + reader.source("cross_entropy_fusion_impl").comment;
  memory.push_back(flag_entry(te ? "fused_loss" : "compiled_loss", true, source));
}

Entries read_memory(MegatronReader& reader, const MegatronJob& job) {
  Entries memory;
  add_loss(reader, memory);
  const MegatronZero zero = read_megatron_zero(reader);
  if (reader.flag("deepspeed"))
    add_bucket_copies(zero.stage, job.fp16 ? "fp16" : reader.flag("bf16") ? "bf16" : "", job.data, memory);
  return memory;
}

void warn_of_unfused(MegatronReader& reader, const char* name) {
  if (reader.given(name) == nullptr || reader.flag(name)) return;
  reader.warning(name, "not-modelled",
                 "some kernels are not fused, and options.fused_kernels knows all or none");
}

// Operations that Megatron-LM fuses unless it is told not to.
void add_unfused(MegatronReader& reader, const MegatronJob& job, Entries& entries) {
  FragmentEntry list{.key = "unfused"};
  list.value.kind = YamlNode::Kind::kSequence;
  const auto add = [&](const char* word, const char* flag, bool used) {
    if (reader.given(flag) == nullptr || reader.flag(flag) || !used) return;
    list.value.items.push_back(fragment_text(word, reader.source(flag).where));
    list.comment += (list.comment.empty() ? "" : ", ") + reader.source(flag).comment;
  };
  const bool swiglu = reader.flag("swiglu"), geglu = reader.flag("quick_geglu");
  add(geglu ? "swiglu" : "gelu", "bias_gelu_fusion", !swiglu);  // the word is of any gate
  add("swiglu", "bias_swiglu_fusion", swiglu);
  add("rope", "apply_rope_fusion", !job.learned_positions);
  if (!list.value.items.empty()) entries.push_back(std::move(list));
}

// In a weight gradient's product, or by a kernel of its own.
void add_accumulation(MegatronReader& reader, Entries& entries) {
  constexpr const char* kFusion = "gradient_accumulation_fusion";
  const bool given = reader.given(kFusion) != nullptr;
  const bool too_old = reader.era() == MegatronEra::k2021;
  if (given ? reader.flag(kFusion) : !too_old) return;
  ImportSource source = reader.source(kFusion);
  if (!given) source.comment = not_in(reader.era());
  entries.push_back(flag_entry("gradient_accumulation_fusion", false, source));
}

// Messages between stages in parts, one a tensor rank: on unless it says otherwise.
void add_scatter_gather(MegatronReader& reader, const MegatronJob& job, Entries& entries) {
  constexpr const char* kScatter = "scatter_gather_tensors_in_pipeline";
  if (job.pipeline == 1 || job.tensor == 1 || reader.flag("sequence_parallel")) return;
  if (reader.given(kScatter) == nullptr) return;
  entries.push_back(flag_entry("scatter_gather", reader.flag(kScatter), reader.source(kScatter)));
}

void add_dispatcher(MegatronReader& reader, const MegatronJob& job, Entries& entries) {
  constexpr const char* kType = "moe_token_dispatcher_type";
  if (job.expert == 1) return;
  const bool deepspeed = job.deepspeed_experts > 0;  // which has one way
  const std::string word = deepspeed ? "alltoall" : reader.text(kType);
  ImportSource source = reader.source(kType);
  if (deepspeed) source.comment = "as DeepSpeed exchanges tokens";
  if (word.empty()) reader.assume(reader.spelled(kType) + " allgather");
  const bool flexible = word == "flex";  // DeepEP or HybridEP: both send once to each node
  if (flexible) (void)reader.flag("moe_enable_deepep"), (void)reader.text("moe_flex_dispatcher_backend");
  if (!flexible && !word.empty() && word != "allgather" && word != "alltoall" && word != "alltoall_seq")
    reader.error(kType, "unknown-name", in_quotes(word) + " is not a known dispatcher",
                 "allgather, alltoall or flex");
  const bool gathers = word.empty() || word == "allgather";
  const char* dispatcher = gathers ? "all-gather" : flexible ? "node-aware" : "all-to-all";
  entries.push_back(text_entry("expert_dispatcher", dispatcher, source));
}

}  // namespace

Entries read_megatron_options(MegatronReader& reader, const MegatronJob& job) {
  Entries entries{read_software(reader, job)};
  const auto buckets = reader.integer("ddp_bucket_size");
  if (buckets && job.data * job.context > 1)
    entries.push_back(entry("bucket_parameters", *buckets, reader.source("ddp_bucket_size")));
  if (job.fp8) {
    job.fp4 ? add_fp4_recipe(reader, entries) : add_fp8_recipe(reader, entries);
    const char* gather = job.fp4 ? "fp4_param_gather" : "fp8_param_gather";
    entries.push_back(flag_entry("fp8_parameters", reader.flag(gather), reader.source(gather)));
  }
  add_fp8_attention(reader, job, entries);
  add_fused_experts(reader, job, entries);
  add_accumulation(reader, entries);
  add_scatter_gather(reader, job, entries);
  add_dispatcher(reader, job, entries);
  entries.push_back(read_cuda_graphs(reader));
  warn_of_unfused(reader, "bias_dropout_fusion");
  add_unfused(reader, job, entries);
  if (Entries memory = read_memory(reader, job); !memory.empty())
    entries.push_back(map_entry("memory", std::move(memory)));
  if (job.unfused_attention) warn_of_unfused(reader, "masked_softmax_fusion");
  return entries;
}

Entries read_megatron_offload(MegatronReader& reader, const MegatronJob& job) {
  Entries entries;
  const char* name = reader.flag("optimizer_cpu_offload") ? "optimizer_cpu_offload"
                     : reader.flag("cpu_optimizer")       ? "cpu_optimizer"
                                                          : nullptr;
  if (name != nullptr) {
    const auto share = reader.number("optimizer_offload_fraction", 0, 1);
    entries.push_back(share_entry("optimizer", share.value_or(1),
                                  reader.source(share ? "optimizer_offload_fraction" : name)));
  }
  // Megatron-LM turns the switch on where there are layers.   source  megatron/training/arguments.py
  constexpr const char* kLayers = "cpu_offloading_num_layers";
  const bool on = reader.flag("cpu_offloading");
  if (!on && reader.stated(kLayers) == 0) return entries;
  const std::int64_t layers = reader.integer(kLayers, 0).value_or(0);
  if (on || layers > 0) {
    const double share = std::min(1.0, static_cast<double>(layers) / static_cast<double>(job.layers));
    entries.push_back(share_entry("activations", share, reader.source(kLayers)));
  }
  return entries;
}

}  // namespace stagecraft
