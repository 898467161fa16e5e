#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "formats/input_text.hpp"
#include "formats/megatron_grammar.hpp"
#include "formats/megatron_sections.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kMaxDegree = 1'000'000;  // three of them multiply within 64 bits

std::int64_t degree(MegatronReader& reader, std::string_view name) {
  if (reader.given(name) == nullptr) {
    if (!reader.is_old() || !name.starts_with("context")) reader.assume(reader.spelled(name) + " 1");
    return 1;
  }
  return reader.integer(name, 1, kMaxDegree).value_or(1);
}

// An --nnodes that is a shell variable says nothing, and --gpus is there for that.
void check_asked_gpus(MegatronReader& reader, std::int64_t asked) {
  const auto world = reader.stated("world_size");
  if (world && *world != asked)
    return reader.refuse_option("--gpus", asked, "world_size", fmt::format("world_size {}", *world));
  const auto nodes = reader.stated("nnodes"), per_node = reader.stated("nproc_per_node");
  if (world || !nodes || !per_node) return;
  if (*per_node == 0 || asked % *per_node != 0 || asked / *per_node != *nodes)
    reader.refuse_option("--gpus", asked, "nnodes",
                         fmt::format("{} {} × {} {}", reader.spelled("nnodes"), *nodes,
                                     reader.spelled("nproc_per_node"), *per_node));
}

std::optional<std::int64_t> gpus_of(MegatronReader& reader, const ImportRequest& request) {
  if (request.gpus) {
    check_asked_gpus(reader, *request.gpus);
    return request.gpus;
  }
  if (const auto world = reader.integer("world_size")) return world;
  const auto nodes = reader.integer("nnodes", 1, kMaxDegree);
  const auto per_node = reader.integer("nproc_per_node", 1, kMaxDegree);
  if (nodes && per_node) return *nodes * *per_node;
  return std::nullopt;
}

// "tensor × context × pipeline", without what is 1.
std::string product_of(const MegatronJob& job) {
  std::vector<std::string> factors;
  if (job.tensor > 1) factors.emplace_back("tensor");
  if (job.context > 1) factors.emplace_back("context");
  if (job.pipeline > 1) factors.emplace_back("pipeline");
  return join(factors, " × ");
}

std::string gpu_source(MegatronReader& reader, const ImportRequest& request) {
  if (request.gpus) return fmt::format("{} GPUs given", *request.gpus);
  if (const auto world = reader.integer("world_size"))
    return fmt::format("{} {}", reader.spelled("world_size"), *world);
  return fmt::format("{} × {}", reader.spelled("nnodes"), reader.spelled("nproc_per_node"));
}

// Layers of each stage where the first and the last pipeline rank hold another number than the rest.
std::optional<std::vector<std::int64_t>> uneven_ends(MegatronReader& reader, const MegatronJob& job) {
  const auto first = reader.integer("decoder_first_pipeline_num_layers", 0, kMaxPatternLayers);
  const auto last = reader.integer("decoder_last_pipeline_num_layers", 0, kMaxPatternLayers);
  if (!first && !last) return std::nullopt;
  const char* name = first ? "decoder_first_pipeline_num_layers" : "decoder_last_pipeline_num_layers";
  const std::int64_t rest = job.layers - first.value_or(0) - last.value_or(0);
  const std::int64_t ranks = job.pipeline - (first ? 1 : 0) - (last ? 1 : 0);
  const std::int64_t v = job.virtual_stages;
  const bool whole = first.value_or(0) % v == 0 && last.value_or(0) % v == 0;
  if (rest < 0 || (ranks > 0 ? rest % (ranks * v) != 0 : rest != 0) || !whole) {
    reader.error(name, "not-divisible",
                 fmt::format("{} layers are left for {} pipeline ranks of {} chunks", rest, ranks, v),
                 "the rest must split evenly");
    return std::nullopt;
  }
  if (job.pipeline * v > kMaxPatternLayers) return std::nullopt;  // more stages than layers: reported as such
  std::vector<std::int64_t> stages;
  for (std::int64_t chunk = 0; chunk < v; ++chunk) {
    for (std::int64_t rank = 0; rank < job.pipeline; ++rank) {
      const bool is_first = rank == 0 && first, is_last = rank == job.pipeline - 1 && last;
      stages.push_back(is_first ? *first / v : is_last ? *last / v : rest / (ranks * v));
    }
  }
  return stages;
}

class Chunks {
 public:
  Chunks(MegatronReader& reader, MegatronJob& job) : reader_(reader), job_(job) {}

  void read(Entries& entries) {
    if (job_.pipeline == 1) return;
    if (reader_.given("pipeline_model_parallel_layout") != nullptr) return read_layout(entries);
    read_partition();
    ImportSource source;
    job_.virtual_stages = chunks(source);
    if (job_.virtual_stages > 1) entries.push_back(entry("virtual_stages", job_.virtual_stages, source));
    if (const auto stages = uneven_ends(reader_, job_)) {
      const char* name = reader_.given("decoder_first_pipeline_num_layers") != nullptr
                             ? "decoder_first_pipeline_num_layers"
                             : "decoder_last_pipeline_num_layers";
      const ImportSource from = reader_.source(name);
      entries.push_back(
          {.key = "stage_layers", .value = fragment_numbers(*stages, from.where), .comment = from.comment});
    }
    if (embedding())
      entries.push_back(flag_entry("embedding_as_layer", true,
                                   reader_.source(embeddings_count_ ? kPartition : kEmbeddingCounts)));
    if (loss())
      entries.push_back(
          flag_entry("loss_as_layer", true, reader_.source(heads_count_ ? kPartition : kLossCounts)));
    if (reader_.flag("deepspeed")) refuse_uneven_stages();
  }

 private:
  static constexpr const char *kPartition = "pp_partition_method",
                              *kEmbeddingCounts = "account_for_embedding_in_pipeline_split",
                              *kLossCounts = "account_for_loss_in_pipeline_split";

  bool embedding() { return embeddings_count_ || reader_.flag(kEmbeddingCounts); }
  bool loss() { return heads_count_ || reader_.flag(kLossCounts); }
  std::int64_t units() { return job_.layers + (embedding() ? 1 : 0) + (loss() ? 1 : 0); }

  // Of Megatron-DeepSpeed: layers alone, or the embedding among them, and the head where that is the embedding
  // once more.
  //   source  bigscience-workshop/Megatron-DeepSpeed megatron/model/gpt_model.py, GPTModelPipe
  void read_partition() {
    std::string method = lower_case(reader_.text(kPartition));
    std::erase(method, '\'');  // which an `eval` takes off
    if (method.empty() || method == "type:transformer") return;
    embeddings_count_ = method == "type:transformer|embedding" || method == "type:embedding|transformer";
    heads_count_ = embeddings_count_ && !reader_.flag("untie_embeddings_and_output_weights");
    if (!embeddings_count_)
      reader_.error(kPartition, "not-supported", in_quotes(method) + " is not supported",
                    "type:transformer and type:transformer|embedding are");
  }

  // DeepSpeed would give some ranks more than others, where Megatron-LM stops.
  void refuse_uneven_stages() {
    if (reader_.is_refused(kPartition) || units() % job_.pipeline == 0) return;
    const std::int64_t ends = units() - job_.layers;
    reader_.error("num_layers", "not-divisible",
                  fmt::format("{} layers{} do not split evenly over {} pipeline ranks", job_.layers,
                              ends > 0 ? fmt::format(" and {} of {}", counted(ends, "end"), kPartition) : "",
                              job_.pipeline),
                  "DeepSpeed deals them unevenly, which is imported of even stages alone: write them as "
                  "parallelism.stage_layers");
  }

  std::int64_t chunks(ImportSource& source) {
    source = reader_.source("virtual_pipeline_model_parallel_size");
    const auto derived = reader_.integer("virtual_pipeline_model_parallel_size", 1, kMaxDegree);
    const auto per_rank = reader_.integer("num_virtual_stages_per_pipeline_rank", 1, kMaxDegree);
    const auto layers = reader_.integer("num_layers_per_virtual_pipeline_stage", 1, kMaxPatternLayers);
    if (derived) return *derived;
    source = reader_.source("num_virtual_stages_per_pipeline_rank");
    if (per_rank) return *per_rank;
    source = reader_.source("num_layers_per_virtual_pipeline_stage");
    if (!layers) return 1;
    const std::int64_t counted = units();
    if (counted % (job_.pipeline * *layers) != 0) {
      reader_.error("num_layers_per_virtual_pipeline_stage", "not-divisible",
                    fmt::format("chunks of {} layers on {} pipeline ranks do not divide {} layers", *layers,
                                job_.pipeline, counted));
      return 1;
    }
    source.comment = fmt::format("{}: {} / ({} × {})", source.comment, counted, job_.pipeline, *layers);
    return counted / (job_.pipeline * *layers);
  }

  void read_layout(Entries& entries) {
    constexpr const char* kName = "pipeline_model_parallel_layout";
    const ImportSource source = reader_.source(kName);
    std::string mistake;
    const auto stages = read_pipeline_layout(reader_.text(kName), mistake);
    if (!stages) return reader_.error(kName, "bad-layout", mistake);
    const auto count = static_cast<std::int64_t>(stages->size());
    if (count % job_.pipeline != 0) {
      return reader_.error(kName, "not-divisible",
                           fmt::format("{} stages are no multiple of pipeline {}", count, job_.pipeline));
    }
    std::vector<std::int64_t> layers;
    for (const LayoutStage& stage : *stages) layers.push_back(stage.layers);
    // Behind the last layers, and before a stage with nothing but the loss, which is what 0 means there.
    const bool predicts_apart = count > 2 && (stages->end() - 2)->mtp_layers > 0 &&
                                (stages->end() - 2)->layers == 0 && stages->back().layers == 0;
    const auto between = stages->end() - (predicts_apart ? 2 : 1);
    if (count > 2 && std::any_of(stages->begin() + 1, between,
                                 [](const LayoutStage& stage) { return stage.layers == 0; })) {
      return reader_.error(kName, "not-supported",
                           "a stage between the first and the last without a decoder layer is not supported",
                           "put `m` on the last stage or alone before it, and a layer where it was");
    }
    const bool elsewhere =
        std::any_of(stages->begin(), between, [](const LayoutStage& stage) { return stage.mtp_layers > 0; });
    if (elsewhere) {
      reader_.warning(kName, "not-modelled",
                      "layers of multi-token prediction before the last stage are put on the last stage");
    }
    job_.virtual_stages = count / job_.pipeline;
    refuse_other_chunks("num_virtual_stages_per_pipeline_rank");
    refuse_other_chunks("virtual_pipeline_model_parallel_size");
    if (job_.virtual_stages > 1) entries.push_back(entry("virtual_stages", job_.virtual_stages, source));
    entries.push_back(
        {.key = "stage_layers", .value = fragment_numbers(layers, source.where), .comment = source.comment});
  }

  // Beside a layout, which says how many there are.
  void refuse_other_chunks(const char* name) {
    const auto said = reader_.integer(name, 1, kMaxDegree);
    if (!said || *said == job_.virtual_stages) return;
    reader_.error(name, "contradiction",
                  fmt::format("says {}, and the layout has {} stages a rank", *said, job_.virtual_stages),
                  fmt::format("keep {}", reader_.spelled("pipeline_model_parallel_layout")));
  }

  MegatronReader& reader_;
  MegatronJob& job_;
  bool embeddings_count_ = false, heads_count_ = false;  // by kPartition
};

void add_context(MegatronReader& reader, const MegatronJob& job, Entries& entries) {
  if (job.context == 1) return;
  entries.push_back(entry("context", job.context, reader.source("context_parallel_size")));
  const MegatronArgument* item = reader.given("cp_comm_type");
  if (item == nullptr || item->values.empty()) return reader.assume(reader.spelled("cp_comm_type") + " p2p");
  struct Exchange {
    std::string_view theirs, ours;
  };
  constexpr std::array<Exchange, 3> kExchanges{
      {{"p2p", "p2p"}, {"all_gather", "all-gather"}, {"a2a", "all-to-all"}}};
  const std::string& first = item->values.front();
  const auto known = std::ranges::find(kExchanges, first, &Exchange::theirs);
  const bool alike =
      std::ranges::all_of(item->values, [&](const std::string& other) { return other == first; });
  if (known == kExchanges.end() || !alike) {
    return reader.error("cp_comm_type", "not-supported",
                        in_quotes(join(item->values, " ")) + " is not supported",
                        "one of p2p, all_gather and a2a for all layers is");
  }
  entries.push_back(text_entry("context_exchange", known->ours, reader.source("cp_comm_type")));
}

// Ranks with experts of Megatron-DeepSpeed: as many as experts, or as there are; tensor ranks hold copies of
// them.
void add_deepspeed_degrees(MegatronReader& reader, MegatronJob& job, Entries& entries) {
  constexpr const char *kRanks = "moe_expert_parallel_size", *kTensor = "enable_expert_tensor_parallelism";
  const std::int64_t usual = std::min(job.deepspeed_experts, job.data);
  const auto ranks = reader.integer(kRanks, 1, kMaxDegree);
  if (!ranks) reader.assume(fmt::format("{} {}, a rank an expert", reader.spelled(kRanks), usual));
  job.expert = ranks.value_or(usual);
  if (job.data % job.expert != 0)
    reader.error(kRanks, "not-divisible",
                 fmt::format("{} data ranks are no multiple of {} expert ranks", job.data, job.expert),
                 fmt::format("give {} a divisor of {}", reader.spelled(kRanks), job.data));
  if (job.expert > 1) entries.push_back(entry("expert", job.expert, reader.source(kRanks)));
  if (job.tensor > 1 && reader.flag(kTensor))
    entries.push_back(entry("expert_tensor", job.tensor, reader.source(kTensor)));
}

// Replicas that share an optimizer, where there are several such groups.
//   source  NVIDIA/Megatron-LM: --num-distributed-optimizer-instances, copies of it across the data ranks
void add_shard_group(MegatronReader& reader, const MegatronJob& job, Entries& entries) {
  constexpr const char* kName = "num_distributed_optimizer_instances";
  const std::int64_t copies = reader.integer(kName, 1, kMaxDegree).value_or(1),
                     replicas = job.data * job.context;
  if (copies == 1) return;
  if (replicas % copies != 0)
    return reader.error(kName, "not-divisible",
                        fmt::format("{} copies do not divide data × context = {}", copies, replicas));
  ImportSource source = reader.source(kName);
  source.comment = fmt::format("{}: {} / {}", source.comment, replicas, copies);
  entries.push_back(entry("zero_group", replicas / copies, source));
}

void add_expert_degrees(MegatronReader& reader, MegatronJob& job, Entries& entries) {
  if (!job.experts) return;
  if (job.deepspeed_experts > 0) return add_deepspeed_degrees(reader, job, entries);
  job.expert = degree(reader, "expert_model_parallel_size");
  if (job.expert > 1)
    entries.push_back(entry("expert", job.expert, reader.source("expert_model_parallel_size")));
  const auto given = reader.integer("expert_tensor_parallel_size", 1, kMaxDegree);
  ImportSource source = reader.source("expert_tensor_parallel_size");
  if (!given) source.comment = "as tensor, unless expert-tensor-parallel-size says otherwise";
  if (!given && job.tensor > 1)
    reader.assume(fmt::format("expert-tensor-parallel-size {}, as tensor", job.tensor));
  const std::int64_t tensor = given.value_or(job.tensor);
  const std::int64_t one = job.expert * tensor;  // GPUs of a pipeline rank that hold all experts once
  if (const std::int64_t ranks = job.gpus / job.pipeline; ranks % one != 0) {
    reader.warning(
        "expert_model_parallel_size", "not-divisible",
        fmt::format("{} GPUs of a pipeline rank are no multiple of expert × expert_tensor = {}", ranks, one),
        "`stagecraft check` will refuse it");
  }
  if (tensor > 1) entries.push_back(entry("expert_tensor", tensor, source));
}

}  // namespace

void read_megatron_degrees(MegatronReader& reader, const ImportRequest& request, MegatronJob& job) {
  job.tensor = degree(reader, "tensor_model_parallel_size");
  job.pipeline = degree(reader, "pipeline_model_parallel_size");
  job.context = degree(reader, "context_parallel_size");
  const std::optional<std::int64_t> gpus = gpus_of(reader, request);
  const auto refused = [&](const char* name) { return reader.is_refused(name); };
  if (!gpus && (refused("world_size") || refused("nnodes") || refused("nproc_per_node"))) return;
  if (!gpus) {
    return reader.missing(Severity::kError, "cluster.nodes", "nothing says how many GPUs the job has",
                          "--gpus N; or give --nnodes and --nproc-per-node of its launcher");
  }
  job.gpus = *gpus;
  const std::int64_t one = job.tensor * job.context * job.pipeline;
  const std::string way_out =
      fmt::format("{}, a multiple of {}", request.gpus ? "--gpus N" : gpu_source(reader, request), one);
  const char* biggest = job.pipeline > 1 ? "pipeline_model_parallel_size"
                        : job.tensor > 1 ? "tensor_model_parallel_size"
                                         : "context_parallel_size";
  if (*gpus < one) {
    reader.error(biggest, "too-few-gpus",
                 fmt::format("{} GPUs are fewer than {} = {}", *gpus, product_of(job), one), way_out);
  } else if (*gpus % one != 0) {
    reader.error(biggest, "not-divisible",
                 fmt::format("{} GPUs are no multiple of {} = {}", *gpus, product_of(job), one), way_out);
  } else {
    job.data = *gpus / one;
    const auto data = reader.integer("data_parallel_size");
    if (data && *data != job.data) {
      reader.warning("data_parallel_size", "contradiction",
                     fmt::format("says {}, and {} GPUs leave {}", *data, *gpus, job.data));
    }
  }
}

Entries read_megatron_cluster(MegatronReader& reader, const ImportRequest& request, const MegatronJob& job) {
  const bool blackwell = job.fp4 || (job.fp8 && reader.text("fp8_recipe") == "mxfp8");
  const std::string node = request.node.value_or(blackwell ? "dgx-b200"
                                                 : job.fp8 ? "dgx-h100"
                                                           : "dgx-a100-80gb");
  ImportSource source{.comment = "--node", .where = reader.source("world_size").where};
  if (!request.node) {
    source.comment = "assumed";
    reader.note(fmt::format("the machine: {}", node));
    reader.missing(Severity::kWarning, "cluster.node",
                   fmt::format("nothing says which machine the job runs on: {} is assumed", node),
                   "--node NAME; `stagecraft doctor` lists them");
  }
  Entries entries{text_entry("node", node, source)};
  source.comment = gpu_source(reader, request);
  if (job.gpus % request.node_gpus == 0) {
    source.comment += fmt::format(", {} a node", request.node_gpus);
    entries.push_back(entry("nodes", job.gpus / request.node_gpus, source));
  } else if (job.gpus < request.node_gpus) {
    entries.push_back(entry("gpus", job.gpus, source));
  } else {
    reader.error("world_size", "not-divisible",
                 fmt::format("{} GPUs are no whole number of nodes of {}", job.gpus, request.node_gpus),
                 request.gpus ? "--gpus N, or --node NAME" : "--node NAME");
  }
  if (request.gpus) return entries;
  const auto per_node = reader.integer("nproc_per_node");
  if (per_node && *per_node != request.node_gpus && job.gpus > *per_node) {
    reader.warning(
        "nproc_per_node", "contradiction",
        fmt::format("the job has {} GPUs a node, and {} has {}", *per_node, node, request.node_gpus),
        "--node NAME");
  }
  return entries;
}

MegatronZero read_megatron_zero(MegatronReader& reader) {
  const int optimizer = reader.flag("use_distributed_optimizer") ? 1 : 0;
  if (reader.flag("deepspeed"))  // forks that hand the optimizer to DeepSpeed
    return {.stage = static_cast<int>(reader.integer("zero_stage", 0, 3).value_or(0)),
            .source = reader.source("zero_stage")};
  if (reader.flag("use_torch_fsdp2")) return {.stage = 3, .source = reader.source("use_torch_fsdp2")};
  if (!reader.flag("use_megatron_fsdp"))
    return {.stage = optimizer, .source = reader.source("use_distributed_optimizer")};
  constexpr const char* kStrategy = "data_parallel_sharding_strategy";
  constexpr std::array<std::string_view, 4> kStrategies{"no_shard", "optim", "optim_grads",
                                                        "optim_grads_params"};
  MegatronZero zero{.source = reader.source(kStrategy)};
  const std::string word = reader.text(kStrategy);
  const auto found = std::ranges::find(kStrategies, word);
  if (word.empty()) {
    reader.assume(reader.spelled(kStrategy) + " no_shard");
  } else if (found == kStrategies.end()) {
    reader.error(kStrategy, "unknown-name", in_quotes(word) + " is not a known strategy",
                 "no_shard, optim, optim_grads or optim_grads_params");
    zero.stage = optimizer;
  } else {
    zero.stage = static_cast<int>(found - kStrategies.begin());
  }
  return zero;
}

Entries read_megatron_parallelism(MegatronReader& reader, MegatronJob& job) {
  Entries entries;
  entries.push_back(entry("tensor", job.tensor, reader.source("tensor_model_parallel_size")));
  entries.push_back(entry("pipeline", job.pipeline, reader.source("pipeline_model_parallel_size")));
  ImportSource data = reader.source("data_parallel_size");
  if (!reader.is_dump() || reader.stated("data_parallel_size") != job.data)
    data.comment = fmt::format("what {} GPUs leave", job.gpus);
  entries.push_back(entry("data", job.data, data));
  add_context(reader, job, entries);
  add_expert_degrees(reader, job, entries);
  Chunks(reader, job).read(entries);
  if (job.tensor > 1 && reader.flag("sequence_parallel"))
    entries.push_back(flag_entry("sequence_parallel", true, reader.source("sequence_parallel")));
  if (const MegatronZero zero = read_megatron_zero(reader); zero.stage > 0 && job.data * job.context > 1) {
    entries.push_back(entry("zero_stage", zero.stage, zero.source));
    add_shard_group(reader, job, entries);
  }
  if (reader.flag("use_tp_pp_dp_mapping")) {
    FragmentEntry order{.key = "order", .comment = reader.source("use_tp_pp_dp_mapping").comment};
    order.value.kind = YamlNode::Kind::kSequence;
    for (const char* axis : {"tensor", "context", "expert", "pipeline", "data"})
      order.value.items.push_back(fragment_text(axis));
    entries.push_back(std::move(order));
  }
  return entries;
}

FragmentEntry read_megatron_schedule(MegatronReader& reader, const MegatronJob& job) {
  if (job.virtual_stages == 1) {
    return text_entry("schedule", "1f1b",
                      {.comment = job.pipeline > 1 ? "one chunk a rank" : "no pipeline", .where = {}});
  }
  const ImportSource chunks{.comment = fmt::format("{} chunks a rank", job.virtual_stages), .where = {}};
  const auto group = reader.integer("microbatch_group_size_per_vp_stage", 1, kMaxDegree);
  if (!group || *group == job.pipeline) return text_entry("schedule", "interleaved-1f1b", chunks);
  return map_entry("schedule",
                   {text_entry("name", "interleaved-1f1b", chunks),
                    entry("micro_batch_group", *group, reader.source("microbatch_group_size_per_vp_stage"))});
}

}  // namespace stagecraft
