#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "formats/megatron_sections.hpp"
#include "models/shard.hpp"

namespace stagecraft {

namespace {

bool is_bf16(const std::string& dtype) {
  return dtype == "bf16" || dtype == "torch.bfloat16";
}

// The scenario's word for a type of the optimizer's states; fp32 where it is not given or another.
std::string_view moment_word(const std::string& dtype) {
  if (is_bf16(dtype)) return "bf16";
  if (dtype == "fp16" || dtype == "torch.float16") return "fp16";
  if (dtype == "fp8" || dtype == "torch.uint8") return "fp8";
  return "fp32";
}

void add_batches(MegatronReader& reader, MegatronJob& job, Entries& entries) {
  job.micro_batch_size = reader.required("micro_batch_size", 1'000'000);  // times the data ranks: 64 bits
  if (const auto global = reader.integer("global_batch_size")) {
    entries.push_back(entry("global_batch_size", *global, reader.source("global_batch_size")));
  } else {
    const std::int64_t samples = job.micro_batch_size * job.data;
    reader.assume(
        fmt::format("{} = micro-batch-size × data ranks = {}", reader.spelled("global_batch_size"), samples));
    entries.push_back(entry("global_batch_size", samples,
                            {.comment = "default: micro-batch-size × data ranks",
                             .where = reader.source("micro_batch_size").where}));
  }
  entries.push_back(entry("micro_batch_size", job.micro_batch_size, reader.source("micro_batch_size")));
  entries.push_back(entry("sequence_length", reader.required("seq_length"), reader.source("seq_length")));
  for (const char* name : {"rampup_batch_size", "step_batch_size_schedule"}) {
    const MegatronArgument* item = reader.given(name);
    if (item == nullptr) continue;
    reader.note(fmt::format("the batch grows ({} {}): global_batch_size is the final one", item->spelled,
                            join(item->values, " ")));
  }
}

// The argument that turns fp8 on, or fp4, which is a recipe of it; empty where none does.
std::string_view read_narrow_format(MegatronReader& reader, MegatronJob& job) {
  const std::string_view fp8 = reader.fp8_switch();
  job.fp4 = reader.given("fp4") != nullptr;
  job.fp8 = job.fp4 || !fp8.empty();
  if (job.fp4 && !fp8.empty()) reader.refuse_both("fp4", fp8);
  return job.fp4 ? "fp4" : fp8;
}

// The first and last layers that stay in 16 bit; numbers of more than there are mean all of them.
//   source  NVIDIA/Megatron-LM megatron/core/fp8_utils.py: is_first_last_bf16_layer
void add_sixteen_bit_layers(MegatronReader& reader, const MegatronJob& job, Entries& entries) {
  constexpr const char* kFlag = "first_last_layers_bf16";
  if (!job.fp8 || !reader.flag(kFlag)) return;
  std::int64_t others = job.layers;
  const auto end = [&](std::string key, const char* name) {
    const bool given = reader.given(name) != nullptr;
    if (!given) reader.assume(reader.spelled(name) + " 1");
    const std::int64_t layers = std::min(reader.integer(name, 0).value_or(1), others);
    others -= layers;
    return entry(std::move(key), layers, reader.source(given ? name : kFlag));
  };
  Entries ends{end("first", "num_layers_at_start_in_bf16"), end("last", "num_layers_at_end_in_bf16")};
  if (others == 0)
    reader.note(fmt::format("{}: all {} layers stay in 16 bit", reader.spelled(kFlag), job.layers));
  entries.push_back(map_entry("sixteen_bit_layers", std::move(ends)));
}

void add_precision(MegatronReader& reader, MegatronJob& job, Entries& entries) {
  const bool bf16 = reader.flag("bf16"), fp16 = reader.flag("fp16");
  const std::string_view narrow_format = read_narrow_format(reader, job);
  job.fp16 = fp16 && !job.fp8;
  if (bf16 && fp16) reader.error("fp16", "contradiction", "fp16 and bf16 are both on", "one of them");
  const std::string_view from = job.fp8 ? narrow_format : fp16 ? "fp16" : "bf16";
  ImportSource source = reader.source(from);
  if (!job.fp8 && !fp16 && !bf16) source.comment = "neither fp16 nor bf16";
  entries.push_back(text_entry("precision",
                               job.fp8 ? "fp8"
                               : fp16  ? "fp16"
                               : bf16  ? "bf16"
                                       : "fp32",
                               source));
  add_sixteen_bit_layers(reader, job, entries);
  // fp16 accumulates in fp16 and bf16 in fp32 by default.
  const bool wide = reader.flag("accumulate_allreduce_grads_in_fp32");
  const char* narrow = nullptr;
  if (is_bf16(reader.text("main_grads_dtype"))) narrow = "main_grads_dtype";
  if (is_bf16(reader.text("megatron_fsdp_main_grads_dtype"))) narrow = "megatron_fsdp_main_grads_dtype";
  if (reader.flag("grad_reduce_in_bf16")) narrow = "grad_reduce_in_bf16";
  ImportSource gradient = reader.source("accumulate_allreduce_grads_in_fp32");
  if (job.fp16) {
    if (!wide) gradient.comment = "without accumulate-allreduce-grads-in-fp32";
    entries.push_back(text_entry("gradient_dtype", wide ? "fp32" : "fp16", gradient));
  } else if (bf16 || job.fp8) {
    if (!wide) gradient.comment = "as Megatron-LM trains in bf16";
    entries.push_back(narrow != nullptr ? text_entry("gradient_dtype", "bf16", reader.source(narrow))
                                        : text_entry("gradient_dtype", "fp32", gradient));
  }
}

// One type for both moments: where they differ, the first's, which is the wider in every recipe we know.
// Beside narrow moments, masters of 16 bits are the default.
void add_moments(MegatronReader& reader, Entries& entries) {
  constexpr const char* kAware = "use_precision_aware_optimizer";
  const std::string_view first = moment_word(reader.text("exp_avg_dtype"));
  const std::string_view second = moment_word(reader.text("exp_avg_sq_dtype"));
  if (first != second)
    reader.note(fmt::format("the moments differ ({} and {}): both are read as {}", first, second, first));
  const bool aware = reader.flag(kAware);
  if (first == "fp32") {
    if (aware) entries.push_back(flag_entry("master_remainders", true, reader.source(kAware)));
    return;
  }
  ImportSource source = reader.source("exp_avg_dtype");
  if (aware) source.comment += ", " + reader.source(kAware).comment;
  entries.push_back(text_entry("moment_dtype", first, source));
}

class RecomputeSection {
 public:
  explicit RecomputeSection(MegatronReader& reader) : reader_(reader) {}

  FragmentEntry read() {
    find_granularity();
    if (granularity_ == "full") return full();
    if (granularity_ == "selective") return selective();
    return text_entry("recompute", "none", source_);
  }

 private:
  void find_granularity() {
    source_ = reader_.source("recompute_granularity");
    granularity_ = reader_.text("recompute_granularity");
    if (!granularity_.empty() && granularity_ != "full" && granularity_ != "selective") {
      reader_.error("recompute_granularity", "unknown-name",
                    in_quotes(granularity_) + " is neither full nor selective");
    }
    if (reader_.flag("recompute_activations")) say("selective", "recompute_activations");
    if (reader_.flag("moe_layer_recompute")) {
      if (granularity_.empty()) say("selective", "moe_layer_recompute");
      moe_ = true;
    }
    if (reader_.flag("checkpoint_activations")) say("full", "checkpoint_activations");
    old_method_ = reader_.text("activations_checkpoint_method");
    if (!old_method_.empty()) say("full", "activations_checkpoint_method");
  }

  void say(const char* granularity, const char* name) {
    granularity_ = granularity;
    source_ = reader_.source(name);
  }

  FragmentEntry full() {
    const std::string method = old_method_.empty() ? reader_.text("recompute_method") : old_method_;
    const std::int64_t layers = reader_.integer("recompute_num_layers").value_or(1);
    if (!method.empty() && method != "uniform" && method != "block")
      reader_.error("recompute_method", "unknown-name", in_quotes(method) + " is neither uniform nor block");
    if (method != "block" && layers == 1) return text_entry("recompute", "full", source_);
    return map_entry("recompute",
                     {text_entry("granularity", "full", source_),
                      text_entry("method", method == "block" ? "block" : "uniform",
                                 reader_.source(old_method_.empty() ? "recompute_method"
                                                                    : "activations_checkpoint_method")),
                      entry("layers", layers, reader_.source("recompute_num_layers"))});
  }

  FragmentEntry selective() {
    const MegatronArgument* given = reader_.given("recompute_modules");
    std::vector<std::string> modules =
        given == nullptr ? std::vector<std::string>{"core_attn"} : given->values;
    if (given == nullptr) reader_.assume(reader_.spelled("recompute_modules") + " core_attn");
    if (moe_ && std::ranges::find(modules, "moe") == modules.end()) modules.emplace_back("moe");
    for (const std::string& module : modules) {
      const auto& known = kRecomputeModuleNames;
      if (std::ranges::find(known, module) != known.end()) continue;
      const std::vector<std::string> names(known.begin(), known.end());
      reader_.error("recompute_modules", "unknown-name", in_quotes(module) + " is not supported",
                    suggest(module, names));
    }
    if (modules == std::vector<std::string>{"core_attn"})
      return text_entry("recompute", "selective", source_);
    FragmentEntry list{
        .key = "modules",
        .comment = reader_.source(given == nullptr ? "moe_layer_recompute" : "recompute_modules").comment};
    list.value.kind = YamlNode::Kind::kSequence;
    for (const std::string& module : modules) list.value.items.push_back(fragment_text(module));
    return map_entry("recompute", {text_entry("granularity", "selective", source_), std::move(list)});
  }

  MegatronReader& reader_;
  ImportSource source_;
  std::string granularity_, old_method_;
  bool moe_ = false;
};

FragmentEntry read_attention(MegatronReader& reader) {
  std::string backend = reader.text("attention_backend");
  if (const std::size_t dot = backend.find('.'); dot != std::string::npos) backend.erase(0, dot + 1);
  if (reader.flag("use_flash_attn")) return text_entry("attention", "flash", reader.source("use_flash_attn"));
  if (!backend.empty()) {
    const bool unfused = backend == "unfused" || backend == "local";
    if (!unfused && backend != "auto" && backend != "flash" && backend != "fused")
      reader.error("attention_backend", "unknown-name", in_quotes(backend) + " is not a known backend",
                   "flash, fused, unfused, local or auto");
    return text_entry("attention", unfused ? "unfused" : "flash", reader.source("attention_backend"));
  }
  const bool old = reader.is_old();
  if (!reader.is_dump() || !old)
    reader.assume(old ? "attention unfused" : reader.spelled("attention_backend") + " auto, taken as flash");
  return text_entry(
      "attention", old ? "unfused" : "flash",
      {.comment = old ? fmt::format("no flash attention in Megatron-LM {}", megatron_era_name(reader.era()))
                      : "attention-backend auto",
       .where = {}});
}

}  // namespace

Entries read_megatron_training(MegatronReader& reader, MegatronJob& job) {
  Entries entries;
  add_batches(reader, job, entries);
  add_precision(reader, job, entries);
  add_moments(reader, entries);
  entries.push_back(RecomputeSection(reader).read());
  entries.push_back(read_attention(reader));
  job.unfused_attention = entries.back().value.text == "unfused";
  if (const auto said = priced_as_adam(reader.text("optimizer")))
    reader.warning("optimizer", "not-modelled", *said);
  return entries;
}

}  // namespace stagecraft
