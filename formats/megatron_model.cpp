#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "formats/input_text.hpp"
#include "formats/megatron_grammar.hpp"
#include "formats/megatron_sections.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kGpt2Tokens = 50'257;  // Radford et al. (2019), section 2.3

// source  Megatron-LM @00ee9667 megatron/training/tokenizer/tokenizer.py: build_tokenizer pads the size that
//         the tokenizer has. Those of files have it from there, the null tokenizer has --vocab-size and one
//         more.
constexpr std::string_view kGpt2Tokenizer = "GPT2BPETokenizer", kNullTokenizer = "NullTokenizer";
constexpr std::string_view kTokenizersOfFiles[] = {kGpt2Tokenizer, "HuggingFaceTokenizer", "Llama2Tokenizer",
                                                   "SentencePieceTokenizer", "GPTSentencePieceTokenizer"};

// The type, without marking it as read: of most it says nothing. Empty where it is absent.
std::string_view stated_tokenizer(const MegatronArguments& arguments) {
  const MegatronArgument* item = arguments.find("tokenizer_type");
  return item == nullptr || item->values.empty() ? std::string_view()
                                                 : std::string_view(item->values.front());
}

// Where no option says it, the script's.   source  Megatron-LM pretrain_gpt.py: args_defaults
constexpr std::string_view kGptScript = "pretrain_gpt.py";
std::string_view tokenizer_of(const MegatronArguments& arguments) {
  const std::string_view stated = stated_tokenizer(arguments);
  if (!stated.empty() || !arguments.program) return stated;
  const std::string_view file = arguments.program->file;
  return file.substr(file.rfind('/') + 1) == kGptScript ? kGpt2Tokenizer : "";
}

constexpr std::int64_t kMaxDivisor = 1'000'000;
constexpr const char* kDevices = "moe_router_topk_limited_devices";

// A number with its source, or what follows from the others.
FragmentEntry number_or(MegatronReader& reader, std::string_view name, std::string key, std::int64_t derived,
                        const std::string& rule) {
  if (const auto value = reader.integer(name)) return entry(std::move(key), *value, reader.source(name));
  ImportSource source = reader.source(name);
  source.comment = fmt::format("{}, {}", reader.spelled(name), rule);
  reader.assume(fmt::format("{} {} = {}", reader.spelled(name), rule, derived));
  return entry(std::move(key), derived, source);
}

std::int64_t ffn_default(MegatronReader& reader, std::int64_t hidden) {
  return reader.flag("swiglu") ? hidden * 8 / 3 / 64 * 64 : 4 * hidden;
}

class ModelSection {
 public:
  ModelSection(MegatronReader& reader, const ImportRequest& request, MegatronJob& job)
      : reader_(reader), request_(request), job_(job) {}

  Entries read() {
    warn_of_checkpoint_sizes();
    swiglu_ = reader_.flag("swiglu");
    geglu_ = reader_.flag("quick_geglu");
    rms_ = reads_rms();
    add(text_entry("family", (swiglu_ || geglu_) && rms_ ? "llama" : "gpt",
                   {.comment = "sets nothing that is not written below", .where = {}}));
    job_.layers = reader_.required("num_layers", kMaxPatternLayers);
    add(entry("layers", job_.layers, reader_.source("num_layers")));
    hidden_ = reader_.required("hidden_size");
    add(entry("hidden", hidden_, reader_.source("hidden_size")));
    add_heads();
    ffn_ = ffn_default(reader_, hidden_);
    add(number_or(reader_, "ffn_hidden_size", "ffn_hidden", ffn_,
                  swiglu_ ? "8/3 of hidden to 64" : "4 hidden"));
    ffn_ = reader_.integer("ffn_hidden_size").value_or(ffn_);
    add_vocab();
    add_choices();
    add_latent_attention();
    add_experts();
    if (auto window = read_megatron_window(reader_, job_)) add(std::move(*window));
    if (const auto mtp = reader_.integer("mtp_num_layers", 0); mtp && *mtp > 0)
      add(entry("mtp_layers", *mtp, reader_.source("mtp_num_layers")));
    return std::move(entries_);
  }

 private:
  void add(FragmentEntry item) { entries_.push_back(std::move(item)); }

  // A dump is printed after the checkpoint was asked.
  void warn_of_checkpoint_sizes() {
    if (reader_.is_dump()) return;
    for (const char* name : {"use_checkpoint_args", "use_mp_args_from_checkpoint_args"})
      if (reader_.flag(name))
        reader_.warning(name, "not-modelled",
                        "the checkpoint's arguments count in place of those given, and it is not read");
  }

  bool reads_rms() {
    const std::string word = reader_.text("normalization");
    if (word.empty()) reader_.assume(reader_.spelled("normalization") + " LayerNorm");
    const std::string any_case = lower_case(word);  // forks write rmsnorm
    if (!word.empty() && any_case != "layernorm" && any_case != "rmsnorm")
      reader_.error("normalization", "unknown-name", in_quotes(word) + " is neither LayerNorm nor RMSNorm");
    return any_case == "rmsnorm";
  }

  void add_heads() {
    latent_ = reader_.flag("multi_latent_attention");
    const std::int64_t heads = reader_.required("num_attention_heads");
    add(entry("heads", heads, reader_.source("num_attention_heads")));
    if (latent_) return;  // its head sizes are its own
    // Names of Megatron-DeepSpeed and Megatron-LLM.
    const auto of_forks = reader_.integer("num_key_value_heads");
    const char* fork = of_forks ? "num_key_value_heads" : "num_attention_heads_kv";
    if (reader_.flag("group_query_attention")) {
      add(number_or(reader_, "num_query_groups", "kv_heads", 1, "default"));
    } else if (const auto kv_heads = reader_.integer(fork)) {
      add(entry("kv_heads", *kv_heads, reader_.source(fork)));
    } else {
      add(entry("kv_heads", heads,
                {.comment = reader_.source("num_attention_heads").comment + ", no grouped queries",
                 .where = reader_.source("num_attention_heads").where}));
    }
    add(number_or(reader_, "kv_channels", "head_size", std::max<std::int64_t>(1, hidden_ / heads),
                  "hidden / heads"));
  }

  std::optional<std::int64_t> tokens(std::string& from, SourceLocation& where) {
    const std::string_view tokenizer = tokenizer_of(reader_.arguments());
    const bool of_files = std::ranges::find(kTokenizersOfFiles, tokenizer) != std::end(kTokenizersOfFiles);
    if (request_.vocab && (of_files || reader_.given("vocab_size") == nullptr)) {
      from = fmt::format("{} tokens given", *request_.vocab);
      return request_.vocab;
    }
    if (const auto size = reader_.integer("vocab_size")) {
      from = fmt::format("{} {}", reader_.spelled("vocab_size"), *size);
      where = reader_.source("vocab_size").where;
      if (request_.vocab && *request_.vocab != *size)
        reader_.refuse_option("--vocab", *request_.vocab, "vocab_size", from);
      if (of_files && (tokenizer != kGpt2Tokenizer || *size != kGpt2Tokens))
        reader_.warning("vocab_size", "assumed",
                        fmt::format("a {} has the tokens of its files, whatever is given here", tokenizer),
                        "--vocab N says how many they are");
      if (tokenizer != kNullTokenizer) return size;
      from += ", and one that ends a document";
      return *size + 1;
    }
    const bool stated = !reader_.text("tokenizer_type").empty();
    if (tokenizer == kGpt2Tokenizer) {
      from = fmt::format("{} {}: {} tokens", stated ? reader_.spelled("tokenizer_type") : kGptScript,
                         kGpt2Tokenizer, kGpt2Tokens);
      where = stated ? reader_.source("tokenizer_type").where : reader_.arguments().program->where;
      reader_.warning(
          "tokenizer_type", "assumed",
          fmt::format("no size of the vocabulary is given: GPT-2's {} tokens are assumed", kGpt2Tokens),
          "--vocab N, if its files were others");
      return kGpt2Tokens;
    }
    return std::nullopt;
  }

  std::int64_t divisor() {
    return reader_.integer("make_vocab_size_divisible_by", 1, kMaxDivisor).value_or(128);
  }

  void add_vocab() {
    // BigScience's name: what it pads to, whatever the tokenizer has.
    const bool given = reader_.given("padded_vocab_size") != nullptr;
    const char* name = given ? "padded_vocab_size" : "pad_vocab_size_to";
    if (const auto padded = reader_.integer(name)) {
      if (request_.vocab && *request_.vocab != *padded &&
          padded_vocab(*request_.vocab, divisor() * job_.tensor) != *padded)
        reader_.refuse_option("--vocab", *request_.vocab, name,
                              fmt::format("{} {}", reader_.spelled(name), *padded));
      return add(entry("vocab", *padded, reader_.source(name)));
    }
    std::string from;
    SourceLocation where = reader_.source("hidden_size").where;
    const std::optional<std::int64_t> size = tokens(from, where);
    const std::int64_t multiple = divisor();
    if (!size) return;
    add(entry(
        "vocab", padded_vocab(*size, multiple * job_.tensor),
        {.comment = fmt::format("{}, padded to a multiple of {} × tensor {}", from, multiple, job_.tensor),
         .where = where}));
  }

  // "PositionEmbeddingType.absolute" in the dumps of forks.
  bool reads_rope() {
    if (reader_.flag("use_rotary_position_embeddings")) return true;
    std::string word = reader_.text("position_embedding_type");
    word.erase(0, word.rfind('.') + 1);
    if (word.empty()) reader_.assume(reader_.spelled("position_embedding_type") + " learned_absolute");
    if (word.empty() || word == "learned_absolute" || word == "absolute") return false;
    if (word != "rope" && word != "rotary" && word != "yarn" && word != "mrope")
      reader_.error("position_embedding_type", "not-supported",
                    in_quotes(word) + " positions are not supported", "learned_absolute and rope are");
    return true;
  }

  void add_positions() {
    const bool rope = reads_rope();
    job_.learned_positions = !rope;
    if (!rope) {
      const auto most = reader_.integer("max_position_embeddings");
      if (!most) {
        reader_.missing(
            Severity::kWarning, "model.max_sequence_length",
            "nothing says how many positions are learned: as many as the sequence has are assumed",
            "max-position-embeddings says it");
      }
      add(entry("max_sequence_length", most ? *most : reader_.required("seq_length"),
                reader_.source(most ? "max_position_embeddings" : "seq_length")));
    }
    const bool legacy = reader_.flag("use_rotary_position_embeddings");
    add(text_entry("position", rope ? "rope" : "learned",
                   reader_.source(legacy ? "use_rotary_position_embeddings" : "position_embedding_type")));
  }

  void add_choices() {
    add_positions();
    add_activation();
    add(text_entry("normalization", rms_ ? "rmsnorm" : "layernorm", reader_.source("normalization")));
    const bool untied = reader_.flag("untie_embeddings_and_output_weights");
    add(flag_entry("tied_embeddings", !untied, reader_.source("untie_embeddings_and_output_weights")));
    const MegatronArgument* bias = reader_.given("add_bias_linear");
    const bool biases = bias == nullptr || reader_.flag("add_bias_linear");
    add(flag_entry("biases", biases, reader_.source("add_bias_linear")));
    if (!biases && reader_.flag("add_qkv_bias"))
      add(flag_entry("qkv_bias", true, reader_.source("add_qkv_bias")));
    if (!latent_ && reader_.flag("qk_layernorm"))
      add(flag_entry("qk_norm", true, reader_.source("qk_layernorm")));
    add_sinks();
    add_dropout();
  }

  void add_activation() {
    const char* const said_by = geglu_ ? "quick_geglu" : "swiglu";
    add(text_entry("activation", geglu_ ? "geglu" : swiglu_ ? "swiglu" : "gelu", reader_.source(said_by)));
    constexpr const char* kClamp = "activation_func_clamp_value";
    if ((swiglu_ || geglu_) && reader_.number(kClamp, 0, 1e9))
      add(flag_entry("clamped_activation", true, reader_.source(kClamp)));
  }

  // A learned score more in each head's softmax. That of off-by-one is a constant.
  void add_sinks() {
    const std::string word = reader_.text("softmax_type");
    if (word.empty() || word == "vanilla") return;
    if (word == "off-by-one")
      return reader_.note(reader_.spelled("softmax_type") + " off-by-one: its constant is not counted");
    if (word != "learnable")
      return reader_.error("softmax_type", "unknown-name",
                           in_quotes(word) + " is none of vanilla, off-by-one and learnable");
    if (latent_)
      return reader_.error("softmax_type", "not-supported",
                           "is not supported: learned scores in latent attention", "vanilla is");
    add(flag_entry("attention_sinks", true, reader_.source("softmax_type")));
  }

  void add_dropout() {
    double most = 0;
    ImportSource from;
    for (const char* name : {"attention_dropout", "hidden_dropout"}) {
      const bool absent = reader_.given(name) == nullptr;
      const double share = absent ? 0.1 : reader_.number(name, 0, 1).value_or(0);
      if (absent) reader_.assume(reader_.spelled(name) + " 0.1");
      if (share >= most) from = reader_.source(name);
      most = std::max(most, share);
    }
    add(flag_entry("dropout", most > 0, from));
  }

  // A size without its switch contradicts it, unless it is the default that a dump has anyway.
  void refuse_sizes_of_latent() {
    constexpr std::pair<const char*, std::int64_t> kDefaults[] = {{"q_lora_rank", 0},
                                                                  {"kv_lora_rank", 32},
                                                                  {"qk_head_dim", 128},
                                                                  {"qk_pos_emb_head_dim", 64},
                                                                  {"v_head_dim", 128}};
    for (const auto& [name, usual] : kDefaults)
      if (const auto size = reader_.stated(name); size && *size != usual)
        reader_.error(
            name, "contradiction",
            fmt::format("{} is a size of latent attention, and there is no multi-latent-attention", *size),
            "add --multi-latent-attention, or leave it out");
  }

  void add_latent_attention() {
    if (!latent_) return refuse_sizes_of_latent();
    Entries latent;
    const auto query = reader_.integer("q_lora_rank", 0).value_or(0);
    latent.push_back(entry("query_rank", query, reader_.source("q_lora_rank")));
    latent.push_back(number_or(reader_, "kv_lora_rank", "kv_rank", 32, "default"));
    latent.push_back(number_or(reader_, "qk_head_dim", "nope_head_size", 128, "default"));
    latent.push_back(number_or(reader_, "qk_pos_emb_head_dim", "rope_head_size", 64, "default"));
    latent.push_back(number_or(reader_, "v_head_dim", "value_head_size", 128, "default"));
    add(map_entry("latent_attention", std::move(latent)));
  }

  // Megatron-DeepSpeed has names and defaults of its own; a capacity it always has, and buffers of that size.
  //   source  deepspeedai/Megatron-DeepSpeed @207b2d5 megatron/arguments.py, @4e98c73
  //           megatron/model/transformer.py (get_num_experts_per_layer: of layers that count from 1, those
  //           that the interval divides)
  void add_deepspeed_experts(std::int64_t count) {
    job_.deepspeed_experts = count;
    const std::int64_t interval = reader_.integer("expert_interval").value_or(2);
    Entries experts{entry("count", count, reader_.source("num_experts")),
                    number_or(reader_, "topk", "top_k", 1, "default"),
                    number_or(reader_, "moe_ffn_hidden_size", "ffn_hidden", ffn_, "as ffn-hidden-size")};
    std::vector<std::int64_t> dense;
    for (std::int64_t layer = 1; layer <= job_.layers; ++layer)
      if (layer % interval != 0) dense.push_back(layer - 1);
    const ImportSource source = reader_.source("expert_interval");
    if (reader_.given("expert_interval") == nullptr)
      reader_.assume(fmt::format("{} {}", reader_.spelled("expert_interval"), interval));
    if (std::ssize(dense) == job_.layers)
      reader_.error("expert_interval", "contradiction",
                    fmt::format("no layer of {} has experts with an interval of {}", job_.layers, interval));
    if (!dense.empty())
      experts.push_back({.key = "dense_layers",
                         .value = fragment_numbers(dense, source.where),
                         .comment = fmt::format("{} {}", reader_.spelled("expert_interval"), interval)});
    if (reader_.given("moe_token_dropping") == nullptr || reader_.flag("moe_token_dropping")) {
      const char* name = "moe_train_capacity_factor";
      experts.push_back(
          share_entry("capacity_factor", reader_.number(name, 0, 1e6).value_or(1), reader_.source(name)));
      if (reader_.given(name) == nullptr) reader_.assume(reader_.spelled(name) + " 1");
      experts.push_back(flag_entry("pad_to_capacity", true, {.comment = "as DeepSpeed has it", .where = {}}));
    }
    if (const std::string type = reader_.text("mlp_type"); !type.empty() && type != "standard")
      reader_.error("mlp_type", "not-supported",
                    in_quotes(type) + ": experts beside a dense block are not modelled", "standard is");
    for (const char* other : {"moe_router_topk", "moe_layer_freq", "expert_model_parallel_size"})
      if (reader_.given(other) != nullptr)
        reader_.error(other, "contradiction", "is of Megatron-LM, and --deepspeed is of Megatron-DeepSpeed",
                      "which has --topk, --expert-interval and --moe-expert-parallel-size");
    add(map_entry("experts", std::move(experts)));
  }

  void add_experts() {
    const std::int64_t count = reader_.integer("num_experts", 0).value_or(0);
    const bool deepspeed = reader_.flag("deepspeed");
    job_.experts = count > (deepspeed ? 1 : 0);  // there 1 is the default
    if (deepspeed)
      for (const char* name :
           {"topk", "expert_interval", "mlp_type", "moe_expert_parallel_size", "moe_train_capacity_factor",
            "moe_token_dropping", "enable_expert_tensor_parallelism"})
        (void)reader_.given(name);
    if (!job_.experts) return;
    if (deepspeed) return add_deepspeed_experts(count);
    Entries experts;
    experts.push_back(entry("count", count, reader_.source("num_experts")));
    experts.push_back(number_or(reader_, "moe_router_topk", "top_k", 2, "default"));
    add_routing_groups(experts);
    experts.push_back(number_or(reader_, "moe_ffn_hidden_size", "ffn_hidden", ffn_, "as ffn-hidden-size"));
    if (const auto width = reader_.integer("moe_shared_expert_intermediate_size")) {
      const ImportSource source = reader_.source("moe_shared_expert_intermediate_size");
      experts.push_back(entry(
          "shared", 1, {.comment = source.comment + " is the width of all together", .where = source.where}));
      experts.push_back(entry("shared_ffn_hidden", *width, source));
      if (reader_.flag("moe_shared_expert_gate"))
        experts.push_back(flag_entry("shared_gate", true, reader_.source("moe_shared_expert_gate")));
    }
    add_dense_layers(experts);
    // Below zero it is none, as Megatron-LM's TransformerConfig takes it.
    if (const auto factor = reader_.number("moe_expert_capacity_factor", -1e6, 1e6); factor && *factor >= 0) {
      experts.push_back(
          share_entry("capacity_factor", *factor, reader_.source("moe_expert_capacity_factor")));
      if (reader_.flag("moe_pad_expert_input_to_capacity"))
        experts.push_back(
            flag_entry("pad_to_capacity", true, reader_.source("moe_pad_expert_input_to_capacity")));
    }
    add(map_entry("experts", std::move(experts)));
  }

  // Without --moe-router-group-topk no group is left out.
  void add_routing_groups(Entries& experts) {
    constexpr const char *kGroups = "moe_router_num_groups", *kChosen = "moe_router_group_topk";
    const auto chosen = reader_.integer(kChosen);
    if (const auto devices = reader_.integer(kDevices)) return add_device_groups(experts, *devices, chosen);
    if (!chosen) return;
    const auto groups = reader_.integer(kGroups);
    if (!groups)
      return reader_.error(kChosen, "needs-another-key",
                           "chooses among groups, and their number is not given",
                           "add --moe-router-num-groups");
    experts.push_back(entry("groups", *groups, reader_.source(kGroups)));
    experts.push_back(entry("top_groups", *chosen, reader_.source(kChosen)));
  }

  // An option of 2024 that limits the ranks: the experts of a rank are a group.
  void add_device_groups(Entries& experts, std::int64_t devices, std::optional<std::int64_t> chosen) {
    constexpr const char* kRanks = "expert_model_parallel_size";
    if (chosen)
      return reader_.error(kDevices, "contradiction", "limits the ranks, and the groups are limited as well",
                           "keep --moe-router-group-topk");
    const std::int64_t ranks = reader_.integer(kRanks).value_or(1);
    if (ranks == 1) return;
    ImportSource source = reader_.source(kRanks);
    source.comment += ", a group for each rank";
    experts.push_back(entry("groups", ranks, source));
    experts.push_back(entry("top_groups", devices, reader_.source(kDevices)));
  }

  void add_dense_layers(Entries& experts) {
    if (reader_.given("moe_layer_freq") == nullptr) return;
    const std::string text = reader_.pattern("moe_layer_freq");
    std::string mistake;
    const auto pattern = read_layer_pattern(text, job_.layers, mistake);
    if (!pattern) {
      return reader_.error("moe_layer_freq", "bad-pattern", fmt::format("{}: {}", in_quotes(text), mistake),
                           "an integer, or a list of one 0 or 1 a layer as in [0]*3+[1]*58");
    }
    std::vector<std::int64_t> dense;
    for (std::size_t i = 0; i < pattern->size(); ++i)
      if (!(*pattern)[i]) dense.push_back(static_cast<std::int64_t>(i));
    if (dense.empty()) return;
    ImportSource source = reader_.source("moe_layer_freq");
    source.comment += " " + text;
    const auto first = static_cast<std::int64_t>(dense.size());
    if (dense.back() == first - 1)
      experts.push_back(entry("first_dense_layers", first, source));
    else
      experts.push_back(
          {.key = "dense_layers", .value = fragment_numbers(dense, source.where), .comment = source.comment});
  }

  MegatronReader& reader_;
  const ImportRequest& request_;
  MegatronJob& job_;
  Entries entries_;
  std::int64_t hidden_ = 1, ffn_ = 1;
  bool swiglu_ = false, geglu_ = false, rms_ = false, latent_ = false;
};

void refuse_program(MegatronReader& reader) {
  const auto& program = reader.arguments().program;
  const MegatronScript* script = program ? find_megatron_script(program->file) : nullptr;
  if (script == nullptr) return;
  reader.refuse(program->where, program->file, script->model);
}

}  // namespace

// A dump has BERT's options whatever it trains.
void refuse_megatron_models(MegatronReader& reader) {
  refuse_program(reader);
  if (stated_tokenizer(reader.arguments()).starts_with("BertWordPiece"))
    reader.refuse(reader.source("tokenizer_type").where, reader.spelled("tokenizer_type"),
                  "the tokenizer of BERT, an encoder");
  if (reader.is_dump()) return;
  for (const MegatronArgument& item : reader.arguments().items)
    if (item.name.starts_with("bert_"))
      reader.refuse(item.where, item.spelled, "an option of BERT, an encoder");
}

Entries read_megatron_model(MegatronReader& reader, const ImportRequest& request, MegatronJob& job) {
  return ModelSection(reader, request, job).read();
}

}  // namespace stagecraft
