#include "formats/deepspeed_neox.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/ceil_div.hpp"
#include "base/text.hpp"
#include "formats/deepspeed_sections.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kMaxWays = 1'000'000;
constexpr std::int64_t kMaxCount = 1'000'000'000;

class NeoxImport {
 public:
  NeoxImport(SettingsReader& reader, const ImportRequest& request, Diagnostics& diagnostics)
      : reader_(reader), request_(request), diagnostics_(diagnostics) {}

  std::optional<Fragment> run() {
    const ErrorWatch watch(diagnostics_);
    fragment_.head.push_back(fmt::format("From {}: a configuration of GPT-NeoX", reader_.file()));
    fragment_.entries.push_back(entry("stagecraft", 1, {}));
    read_degrees();
    add_section(fragment_, "model", model());
    if (complete_ && watch.clean())
      if (auto line = parameters_line(fragment_.entries.back().entries, reader_.file(), diagnostics_))
        fragment_.head.push_back(std::move(*line));
    add_section(fragment_, "cluster", read_cluster(reader_, request_, gpus_));
    zero_ = read_zero(reader_, options_, offload_);
    add_section(fragment_, "parallelism", parallelism());
    fragment_.entries.push_back(
        text_entry("schedule", "1f1b", {.comment = "DeepSpeed's pipeline engine", .where = {}}));
    Entries trained = training();
    add_software(trained);
    add_section(fragment_, "training", std::move(trained));
    add_section(fragment_, "overlap", overlap());
    add_section(fragment_, "options", std::move(options_));
    add_section(fragment_, "offload", std::move(offload_));
    read_optimizer(reader_);
    refuse_other_layers();
    fragment_.ignored = reader_.finish();
    fragment_.assumed = reader_.assumed;
    return std::move(fragment_);
  }

 private:
  std::int64_t required(std::string_view path) {
    const ErrorWatch watch(diagnostics_);
    const auto value = reader_.integer(path, 1, kMaxCount);
    if (!value && watch.clean()) reader_.error(path, "missing", "is required, but not given");
    return value.value_or(1);
  }

  // 0 and 1 both mean no pipeline, and no tensor ranks.
  std::int64_t degree(std::string_view path) {
    return std::max<std::int64_t>(1, reader_.integer(path, 0, kMaxWays).value_or(1));
  }

  void read_degrees() {
    tensor_ = degree("model_parallel_size");
    pipeline_ = degree("pipe_parallel_size");
    if (degree("context_parallel_size") > 1)
      reader_.error("context_parallel_size", "not-supported", "context ranks of GPT-NeoX are not supported");
    const std::int64_t one = tensor_ * pipeline_;
    const std::string way_out = one == 1 ? "--gpus N" : fmt::format("--gpus N, a multiple of {}", one);
    if (!request_.gpus) {
      return reader_.missing(Severity::kError, "cluster.nodes", "nothing says how many GPUs the job has",
                             way_out);
    }
    gpus_ = *request_.gpus;
    if (gpus_ % one != 0) {
      reader_.error("pipe_parallel_size", "not-divisible",
                    fmt::format("{} GPUs are {} tensor × pipeline = {}", gpus_,
                                gpus_ < one ? "fewer than" : "no multiple of", one),
                    way_out);
    }
    data_ = std::max<std::int64_t>(1, gpus_ / one);
  }

  void add_vocab(Entries& model) {
    ImportSource source = reader_.source("padded_vocab_size");
    const std::int64_t step =
        reader_.integer("make_vocab_size_divisible_by", 1, kMaxWays).value_or(128) * tensor_;
    const auto padded = reader_.integer("padded_vocab_size", 1, kMaxCount);
    const auto asked = request_.vocab ? std::optional(padded_vocab(*request_.vocab, step)) : std::nullopt;
    if (padded && asked && *padded != *asked && *padded != *request_.vocab)
      diagnostics_.error(contradicted_option("--vocab", std::to_string(*request_.vocab),
                                             fmt::format("padded_vocab_size {}", *padded), source.where));
    if (!padded && asked)
      source.comment = fmt::format("{} tokens given, padded to a multiple of {}", *request_.vocab, step);
    if (padded || asked) return model.push_back(entry("vocab", padded ? *padded : *asked, source));
    complete_ = false;
    miss_vocabulary(reader_, fragment_);
  }

  // A gated block has two thirds of the width that is given, half of them for the gate, so that its parameters
  // are those of a plain one.
  //   source  GPT-NeoX megatron/model/transformer.py, ParallelMLP.
  FragmentEntry ffn_hidden(std::int64_t hidden) {
    const auto given = reader_.integer("intermediate_size", 1, kMaxCount);
    const auto factor = reader_.number("expansion_factor", 0, 1e6);
    const char* from = given || !factor ? "intermediate_size" : "expansion_factor";
    std::int64_t width = given.value_or(4 * hidden);
    if (!given && factor) width = static_cast<std::int64_t>(*factor * static_cast<double>(hidden));
    if (!given && !factor) reader_.assume(fmt::format("intermediate_size 4 hidden_size = {}", width));
    ImportSource source = reader_.source(from);
    const bool gated = reader_.text("activation") == "swiglu";
    if (gated) source.comment += fmt::format(": two thirds of {}, half of them the gate's", width);
    const std::int64_t step = 2 * reader_.integer("mlp_multiple_of", 1, kMaxWays).value_or(1);
    const std::int64_t wide = gated ? width * 2 / 3 : width;
    const std::int64_t whole = ceil_div(wide, step) * step;
    return entry("ffn_hidden", std::max<std::int64_t>(1, gated ? whole / 2 : whole), source);
  }

  Entries model() {
    Entries model{
        text_entry("family", "gpt", {.comment = "sets nothing that is not written below", .where = {}})};
    const auto number = [&](const char* key, std::int64_t value, std::string_view path) {
      model.push_back(entry(key, value, reader_.source(path)));
    };
    const std::int64_t hidden = required("hidden_size"), heads = required("num_attention_heads");
    number("layers", required("num_layers"), "num_layers");
    number("hidden", hidden, "hidden_size");
    number("heads", heads, "num_attention_heads");
    number("kv_heads", reader_.integer("num_kv_heads", 1, kMaxCount).value_or(heads), "num_kv_heads");
    model.push_back(ffn_hidden(hidden));
    add_vocab(model);
    add_choices(model);
    return model;
  }

  std::string word(std::string_view path, const char* fallback) {
    std::string text = reader_.text(path);
    if (!text.empty()) return text;
    reader_.assume(fmt::format("{} {}", path, fallback));
    return fallback;
  }

  void add_choices(Entries& model) {
    const std::string positions = word("pos_emb", "learned");
    if (positions == "learned")
      model.push_back(entry("max_sequence_length", required("max_position_embeddings"),
                            reader_.source("max_position_embeddings")));
    else if (positions != "rotary")
      reader_.error("pos_emb", "not-supported", in_quotes(positions) + " positions are not supported",
                    "learned and rotary are");
    (void)reader_.get("max_position_embeddings");
    model.push_back(
        text_entry("position", positions == "learned" ? "learned" : "rope", reader_.source("pos_emb")));
    const std::string activation = word("activation", "gelu");
    if (activation != "gelu" && activation != "swiglu")
      reader_.error("activation", "not-supported", in_quotes(activation) + " is not supported",
                    "gelu and swiglu are");
    model.push_back(
        text_entry("activation", activation == "swiglu" ? "swiglu" : "gelu", reader_.source("activation")));
    const std::string norm = word("norm", "layernorm");
    if (norm != "layernorm" && norm != "rmsnorm")
      reader_.error("norm", "not-supported", in_quotes(norm) + " is not supported",
                    "layernorm and rmsnorm are");
    model.push_back(
        text_entry("normalization", norm == "rmsnorm" ? "rmsnorm" : "layernorm", reader_.source("norm")));
    model.push_back(flag_entry("tied_embeddings", !reader_.flag("no_weight_tying", false),
                               reader_.source("no_weight_tying")));
    add_biases(model);
    if (reader_.flag("use_qk_layernorm", false)) {
      model.push_back(flag_entry("qk_norm", true, reader_.source("use_qk_layernorm")));
      reader_.assume("the norm of Q and K is one for all heads, as those of models since");
    }
    const double hidden = reader_.number("hidden_dropout", 0, 1).value_or(0);
    const double attention = reader_.number("attention_dropout", 0, 1).value_or(0);
    model.push_back(flag_entry("dropout", hidden > 0 || attention > 0, reader_.source("hidden_dropout")));
  }

  // Of attention and of the feed-forward block together: one without the other is not modelled.
  void add_biases(Entries& model) {
    constexpr const char *kAttention = "use_bias_in_attn_linear", *kMlp = "use_bias_in_mlp";
    const bool attention = reader_.flag(kAttention, true);
    const bool mlp = reader_.flag(kMlp, true);
    model.push_back(flag_entry("biases", attention, reader_.source(kAttention)));
    if (attention == mlp) return;
    if (reader_.has(kMlp))
      return reader_.error(kMlp, "not-supported",
                           "biases in one of attention and feed-forward block are not modelled",
                           fmt::format("as {}", kAttention));
    reader_.warning(
        kAttention, "not-modelled",
        "leaves the biases of the feed-forward block, which are not counted: use_bias_in_mlp is absent",
        "use_bias_in_mlp: false, if it has none");
  }

  Entries parallelism() {
    Entries parallelism{
        entry("tensor", tensor_, reader_.source("model_parallel_size")),
        entry("pipeline", pipeline_, reader_.source("pipe_parallel_size")),
        entry("data", data_, {.comment = fmt::format("what {} GPUs leave", gpus_), .where = {}})};
    if (tensor_ > 1 && reader_.flag("sequence_parallel", false))
      parallelism.push_back(flag_entry("sequence_parallel", true, reader_.source("sequence_parallel")));
    if (zero_.stage > 0) parallelism.push_back(entry("zero_stage", zero_.stage, zero_.source));
    return parallelism;
  }

  // "flash" stands inside a list of lists: [[["flash"], 44]].
  static bool mentions(const YamlNode& node, std::string_view word) {
    return node.text.find(word) != std::string::npos ||
           std::ranges::any_of(node.items, [&](const YamlNode& item) { return mentions(item, word); });
  }

  std::string one_of(std::string_view path, std::initializer_list<std::string_view> words) {
    std::string word = reader_.text(path);
    if (!word.empty() && std::ranges::find(words, word) == words.end())
      reader_.error(path, "unknown-name", in_quotes(word) + " is no precision of GPT-NeoX",
                    fmt::format("one of {}", fmt::join(words, ", ")));
    return word;
  }

  // `precision`, or the section `fp16`, whose `type` once said bfloat16. By neither it is fp32.
  //   source  GPT-NeoX @0097a39e and later, megatron/neox_arguments/arguments.py, "derive precision".
  void add_precision_to(Entries& training) {
    const std::string said = one_of("precision", {"fp16", "bfloat16", "fp32"});
    const std::string type = one_of("fp16.type", {"fp16", "bfloat16"});
    if (said.empty() && type != "bfloat16") {
      if (!reader_.has("fp16.enabled") && reader_.get("fp16") != nullptr) {
        reader_.assume("fp16.enabled true");
        return add_precision(reader_, zero_.stage, {"fp16", reader_.source("fp16")}, training);
      }
      if (!reader_.has("fp16") && !reader_.has("bf16") && !reader_.has("bfloat16"))
        reader_.assume("precision fp32");
      return read_precision(reader_, zero_.stage, training);
    }
    const bool half = reader_.flag("fp16.enabled", false);
    if ((said == "fp32" && half) || (!said.empty() && said != "bfloat16" && type == "bfloat16"))
      reader_.error("precision", "contradiction", in_quotes(said) + ", and the section fp16 says otherwise",
                    "one of them");
    const std::string name = said.empty() ? type : said;
    add_precision(
        reader_, zero_.stage,
        {name == "bfloat16" ? "bf16" : name, reader_.source(said.empty() ? "fp16.type" : "precision")},
        training);
  }

  Entries training() {
    const Batch batch = read_batch(reader_, data_, 1);
    if (!reader_.has("gradient_accumulation_steps")) reader_.assume("gradient_accumulation_steps 1");
    Entries training;
    if (!batch.global || !batch.micro)
      reader_.error("train_micro_batch_size_per_gpu", "missing", "is required, but not given");
    training.push_back(
        entry("global_batch_size", batch.global.value_or(1),
              reader_.source_or("train_batch_size", "micro-batch × accumulation × data ranks")));
    training.push_back(entry("micro_batch_size", batch.micro.value_or(1),
                             reader_.source_or("train_micro_batch_size_per_gpu",
                                               "train_batch_size / (accumulation × data ranks)")));
    training.push_back(entry("sequence_length", required("seq_length"), reader_.source("seq_length")));
    add_precision_to(training);
    training.push_back(text_entry("recompute",
                                  reader_.flag("checkpoint_activations", false) ? "full" : "none",
                                  reader_.source("checkpoint_activations")));
    const auto group = reader_.integer("checkpoint_num_layers", 1, kMaxCount);
    if (group && *group > 1 && training.back().value.text == "full") {
      training.back() =
          map_entry("recompute", {text_entry("granularity", "full", reader_.source("checkpoint_activations")),
                                  text_entry("method", "uniform", reader_.source("checkpoint_activations")),
                                  entry("layers", *group, reader_.source("checkpoint_num_layers"))});
    }
    const YamlNode* attention = reader_.get("attention_config");
    training.push_back(text_entry("attention",
                                  attention != nullptr && mentions(*attention, "flash") ? "flash" : "unfused",
                                  reader_.source("attention_config")));
    return training;
  }

  // The pipeline engine reduces after the last micro-batch, and its messages block.
  //   source  DeepSpeed @83fd8f87 deepspeed/runtime/pipe/schedule.py, TrainSchedule.
  Entries overlap() {
    Entries overlap;
    const ImportSource engine{.comment = "DeepSpeed's pipeline engine reduces at the end", .where = {}};
    if (data_ > 1) {
      overlap.push_back(flag_entry("gradients", pipeline_ == 1 && zero_.overlaps_gradients,
                                   pipeline_ == 1 ? zero_.overlap_source : engine));
      if (zero_.stage > 0)
        overlap.push_back(flag_entry("parameters", zero_.stage == 3 && zero_.overlaps_gradients,
                                     {.comment = "gathered after the step, but for stage 3", .where = {}}));
    }
    if (pipeline_ > 1)
      overlap.push_back(flag_entry("pipeline", false, {.comment = "DeepSpeed's messages wait", .where = {}}));
    return overlap;
  }

  void add_software(const Entries& training) {
    const auto text = [&](std::string_view key) {
      const FragmentEntry* found = find_entry(training, key);
      return found == nullptr ? std::string() : found->value.text;
    };
    options_.insert(options_.begin(),
                    text_entry("software", megatron_on_deepspeed(text("attention") == "flash", zero_.stage),
                               {.comment = "layers of Megatron-LM on DeepSpeed", .where = {}}));
    Entries memory;
    add_bucket_copies(zero_.stage, text("precision"), data_, memory);
    if (!memory.empty()) options_.push_back(map_entry("memory", std::move(memory)));
  }

  void refuse_other_layers() {
    if (const auto experts = reader_.integer("moe_num_experts", 0); experts && *experts > 1)
      reader_.error("moe_num_experts", "not-supported", "experts of GPT-NeoX are not supported");
    const YamlNode* attention = reader_.get("attention_config");
    if (attention == nullptr) return;
    for (const char* other : {"mamba", "rwkv", "local", "sparse", "bslongformer", "bigbird", "gmlp", "amlp"})
      if (mentions(*attention, other))
        reader_.error("attention_config", "not-supported",
                      fmt::format("layers of '{}' are not supported", other), "global and flash are");
  }

  SettingsReader& reader_;
  const ImportRequest& request_;
  Diagnostics& diagnostics_;
  Fragment fragment_;
  Entries options_, offload_;
  ZeroSettings zero_;
  std::int64_t tensor_ = 1, pipeline_ = 1, gpus_ = 1, data_ = 1;
  bool complete_ = true;
};

}  // namespace

std::optional<Fragment> import_neox(SettingsReader& reader, const ImportRequest& request,
                                    Diagnostics& diagnostics) {
  return NeoxImport(reader, request, diagnostics).run();
}

}  // namespace stagecraft
