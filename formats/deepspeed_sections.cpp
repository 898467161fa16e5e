#include "formats/deepspeed_sections.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace stagecraft {

namespace {

constexpr double kWholeShare = 1;

// `old` is the switch of before 2021, which means all of it to the host.
void read_offload(SettingsReader& reader, const std::string& section, const char* old, const char* key,
                  Entries& offload) {
  const std::string path = "zero_optimization." + section;
  const std::string device = reader.text(path + ".device");
  if (reader.flag(old, false)) {
    if (device.empty()) return offload.push_back(share_entry(key, kWholeShare, reader.source(old)));
    if (device == "none")
      reader.error(old, "contradiction", fmt::format("and {}.device says none", path), "keep one of the two");
  }
  if (device == "nvme") {
    reader.error(path + ".device", "not-supported", "offloading to 'nvme' is not supported", "'cpu' is");
  } else if (device == "cpu") {
    const auto share = reader.number(path + ".ratio", 0, 1);
    offload.push_back(
        share_entry(key, share.value_or(kWholeShare), reader.source(path + (share ? ".ratio" : ".device"))));
  } else if (!device.empty() && device != "none") {
    reader.error(path + ".device", "unknown-name", in_quotes(device) + " is not a known device",
                 "cpu or none");
  }
}

}  // namespace

Entries read_cluster(SettingsReader& reader, const ImportRequest& request, std::int64_t gpus) {
  const std::string node = request.node.value_or("dgx-a100-80gb");
  if (!request.node)
    reader.missing(Severity::kWarning, "cluster.node",
                   fmt::format("nothing says which machine the job runs on: {} is assumed", node),
                   "--node NAME");
  Entries cluster{text_entry("node", node, {.comment = request.node ? "--node" : "assumed", .where = {}})};
  const ImportSource source{.comment = "--gpus", .where = {}};
  if (gpus % request.node_gpus == 0)
    cluster.push_back(entry("nodes", gpus / request.node_gpus, source));
  else if (gpus < request.node_gpus)
    cluster.push_back(entry("gpus", gpus, source));
  else
    reader.missing(Severity::kError, "cluster.nodes",
                   fmt::format("{} GPUs are no whole number of nodes of {}", gpus, request.node_gpus),
                   "--gpus N");
  return cluster;
}

ZeroSettings read_zero(SettingsReader& reader, Entries& options, Entries& offload) {
  constexpr const char* kStage = "zero_optimization.stage";
  const std::optional<std::int64_t> stage = reader.integer(kStage, 0, 3);
  ZeroSettings zero{.stage = stage.value_or(0), .source = reader.source(kStage)};
  if (reader.is_auto(kStage))
    reader.error(kStage, "missing", "\"auto\" is filled in by the trainer", "0, 1, 2 or 3");
  // DeepSpeed overlaps by default from stage 3 on (@cbf3d661 deepspeed/runtime/zero/config.py,
  // overlap_comm_valid), and without ZeRO never (deepspeed/runtime/engine.py, allreduce_gradients).
  constexpr const char* kOverlap = "zero_optimization.overlap_comm";
  zero.overlap_source = {.comment = "stage 0 reduces after the backward", .where = {}};
  if (zero.stage > 0 || (!stage && reader.has(kStage))) {  // of a refused stage all mistakes are reported
    zero.overlaps_gradients = reader.flag(kOverlap, zero.stage == 3);
    zero.overlap_source = reader.source(kOverlap);
  }
  if (const auto bucket = reader.integer("zero_optimization.reduce_bucket_size", 1))
    options.push_back(
        entry("bucket_parameters", *bucket, reader.source("zero_optimization.reduce_bucket_size")));
  read_offload(reader, "offload_optimizer", "zero_optimization.cpu_offload", "optimizer", offload);
  read_offload(reader, "offload_param", "zero_optimization.cpu_offload_params", "weights", offload);
  if (!reader.flag("zero_optimization.reduce_scatter", true))
    reader.warning("zero_optimization.reduce_scatter", "not-modelled",
                   "gradients are reduce-scattered, not all-reduced");
  return zero;
}

void read_optimizer(SettingsReader& reader) {
  if (const auto said = priced_as_adam(reader.text("optimizer.type")))
    reader.warning("optimizer.type", "not-modelled", *said);
}

void read_precision(SettingsReader& reader, std::int64_t zero_stage, Entries& training) {
  const bool fp16 = reader.flag("fp16.enabled", false);
  const char* bf16_path = reader.has("bfloat16.enabled") ? "bfloat16.enabled" : "bf16.enabled";
  const bool bf16 = reader.flag(bf16_path, false);
  if (fp16 && bf16) reader.error("fp16.enabled", "contradiction", "fp16 and bf16 are both on", "one of them");
  if (!fp16 && !bf16 && (reader.is_auto("fp16.enabled") || reader.is_auto(bf16_path))) return;
  ImportSource source = reader.source(fp16 ? "fp16.enabled" : bf16_path);
  if (!fp16 && !bf16) source.comment = "neither fp16 nor bf16";
  add_precision(reader, zero_stage, {fp16 ? "fp16" : bf16 ? "bf16" : "fp32", source}, training);
}

namespace {

// The words of DeepSpeed for a type.
//   source  DeepSpeed deepspeed/runtime/config.py, DtypeEnum.
std::string_view type_of(std::string_view word) {
  if (word.starts_with("torch.")) word.remove_prefix(6);
  if (word == "fp32" || word == "float32" || word == "float") return "fp32";
  if (word == "fp16" || word == "float16" || word == "half") return "fp16";
  return word == "bf16" || word == "bfloat16" ? "bf16" : "";
}

//   source  DeepSpeed deepspeed/runtime/engine.py, get_data_types.
FragmentEntry gradient_type(SettingsReader& reader, std::int64_t zero_stage, const std::string& precision) {
  constexpr const char* kType = "data_types.grad_accum_dtype";
  const std::string said = reader.text(kType);
  if (!said.empty() && type_of(said).empty())
    reader.error(kType, "unknown-name", in_quotes(said) + " is no type of gradients", "fp32, fp16 or bf16");
  if (reader.flag("fp32_allreduce", false))
    return text_entry("gradient_dtype", "fp32", reader.source("fp32_allreduce"));
  if (!said.empty()) return text_entry("gradient_dtype", type_of(said), reader.source(kType));
  ImportSource from = reader.source(kType);
  const bool wide = precision == "bf16" && zero_stage == 0;
  from.comment = wide ? "DeepSpeed accumulates bf16 in fp32 where ZeRO is off"
                      : "DeepSpeed accumulates in the type it computes in";
  return text_entry("gradient_dtype", wide ? "fp32" : precision, from);
}

// Masters and moments in the type of the weights, which ZeRO alone has.
void add_narrow_states(SettingsReader& reader, std::int64_t zero_stage, const std::string& precision,
                       Entries& training) {
  const std::string section = precision == "bf16" && reader.has("bfloat16") ? "bfloat16" : precision;
  const std::string masters = fmt::format("{}.{}_master_weights_and_grads", section, precision);
  const std::string moments = section + ".bf16_optimizer_states";
  const bool narrow = reader.flag(masters, false);
  const bool narrow_moments = precision == "bf16" && reader.flag(moments, false);
  if (narrow && zero_stage == 0)
    reader.error(masters, "needs-another-key", "is for ZeRO, and ZeRO is off", "zero_optimization.stage");
  if (narrow_moments && !narrow)
    reader.error(moments, "needs-another-key", "is for masters in bf16", masters);
  if (narrow) {
    training.push_back(flag_entry("master_weights", false, reader.source(masters)));
    reader.warning(masters, "not-modelled",
                   "the weights are stepped themselves: ZeRO's copy of 2 bytes is left out");
  }
  if (narrow_moments) training.push_back(text_entry("moment_dtype", "bf16", reader.source(moments)));
}

}  // namespace

void add_precision(SettingsReader& reader, std::int64_t zero_stage, const SaidPrecision& said,
                   Entries& training) {
  training.push_back(text_entry("precision", said.word, said.source));
  if (said.word == "fp32") {
    (void)reader.flag("fp32_allreduce");
    return;
  }
  training.push_back(gradient_type(reader, zero_stage, said.word));
  add_narrow_states(reader, zero_stage, said.word, training);
}

Batch read_batch(SettingsReader& reader, std::optional<std::int64_t> data,
                 std::optional<std::int64_t> default_steps) {
  constexpr std::int64_t kMost = 100'000;  // two of them times the GPUs of a request: 64 bits
  Batch batch{.global = reader.integer("train_batch_size", 1),
              .micro = reader.integer("train_micro_batch_size_per_gpu", 1, kMost),
              .data = data};
  const auto given_steps = reader.integer("gradient_accumulation_steps", 1, kMost);
  const bool left_open = reader.is_auto("gradient_accumulation_steps");
  const std::optional<std::int64_t> steps = given_steps || left_open ? given_steps : default_steps;
  batch.steps = steps;
  if (!steps) return batch;
  if (batch.micro && batch.data) {
    const std::int64_t product = *batch.micro * *steps * *batch.data;
    if (batch.global && *batch.global != product) {
      reader.error("train_batch_size", "contradiction",
                   fmt::format("{} is not micro-batch {} × accumulation {} × {} data ranks = {}",
                               *batch.global, *batch.micro, *steps, *batch.data, product));
    }
    batch.global = product;
  } else if (batch.micro && batch.global) {
    if (*batch.global % (*batch.micro * *steps) != 0) {
      reader.error("train_batch_size", "contradiction",
                   fmt::format("{} is no multiple of micro-batch {} × accumulation {}", *batch.global,
                               *batch.micro, *steps));
    } else {
      batch.data = *batch.global / (*batch.micro * *steps);
    }
  } else if (batch.global && batch.data) {
    if (*batch.global % (*batch.data * *steps) != 0) {
      reader.error("train_batch_size", "contradiction",
                   fmt::format("{} is no multiple of accumulation {} × {} data ranks", *batch.global, *steps,
                               *batch.data));
    } else {
      batch.micro = *batch.global / (*batch.data * *steps);
    }
  }
  return batch;
}

}  // namespace stagecraft
