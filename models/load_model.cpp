#include "models/load_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "models/load_blocks.hpp"

namespace stagecraft {

namespace {

// Above it, products of the numbers could exceed 64 bits (see check_size).
constexpr double kMaxParameters = 1e15;

// Defaults of a model family.
struct FamilyDefaults {
  Activation activation;
  Normalization normalization;
  Position position;
  bool tied_embeddings, biases, dropout;
  std::int64_t vocab;
  std::string_view vocab_of;
};

// source  Radford et al. (2019) and Brown et al. (arXiv 2005.14165), section 2.1, as trained by Megatron-LM;
//         vocabulary: Narayanan et al. (SC'21), section 5.
constexpr FamilyDefaults kGptDefaults{.activation = Activation::kGelu,
                                      .normalization = Normalization::kLayerNorm,
                                      .position = Position::kLearned,
                                      .tied_embeddings = true,
                                      .biases = true,
                                      .dropout = true,
                                      .vocab = 51'200,
                                      .vocab_of = "that of GPT in Megatron-LM"};
// source  Touvron et al. (arXiv 2302.13971), section 2.2.
constexpr FamilyDefaults kLlamaDefaults{.activation = Activation::kSwiglu,
                                        .normalization = Normalization::kRmsNorm,
                                        .position = Position::kRope,
                                        .tied_embeddings = false,
                                        .biases = false,
                                        .dropout = false,
                                        .vocab = 32'000,
                                        .vocab_of = "that of the first Llamas"};

const FamilyDefaults& defaults_of(Family family) {
  return family == Family::kGpt ? kGptDefaults : kLlamaDefaults;
}

// True or false, or the word for the vectors that are normalised; `true` is over each head.
QkNorm load_qk_norm(YamlMap& map) {
  constexpr std::array<std::string_view, 6> kBooleans = {"true", "True", "TRUE", "false", "False", "FALSE"};
  constexpr std::array<std::string_view, 2> kWords = {"head", "width"};
  const YamlNode* said = map.get("qk_norm");
  const bool is_word = said != nullptr && said->kind == YamlNode::Kind::kScalar &&
                       std::ranges::find(kBooleans, said->text) == kBooleans.end();
  if (!is_word) return map.boolean("qk_norm", false) ? QkNorm::kHead : QkNorm::kNone;
  return map.choice("qk_norm", to_strings(kWords), 0) == 0 ? QkNorm::kHead : QkNorm::kWidth;
}

void load_choices(YamlMap& map, TransformerSpec& model) {
  const FamilyDefaults& defaults = defaults_of(model.family);
  model.activation = map.choose("activation", kActivationNames, defaults.activation);
  model.normalization = map.choose("normalization", kNormalizationNames, defaults.normalization);
  model.norms = map.choose("norms", kNormsNames, Norms::kBefore);
  model.position = map.choose("position", kPositionNames, defaults.position);
  model.tied_embeddings = map.boolean("tied_embeddings", defaults.tied_embeddings);
  model.biases = map.boolean("biases", defaults.biases);
  model.qkv_bias = map.boolean("qkv_bias", model.biases && !model.latent_attention);
  model.qk_norm = load_qk_norm(map);
  model.attention_sinks = map.boolean("attention_sinks", false);
  model.clamped_activation = map.boolean("clamped_activation", false);
  model.dropout = map.boolean("dropout", defaults.dropout);
}

// "1, 2, 3, 4 or 6": divisors of n, as many as a line holds.
std::string divisors(std::int64_t n) {
  constexpr std::size_t kMost = 16;
  std::vector<std::int64_t> found, partners;
  for (std::int64_t d = 1; d * d <= n && found.size() < kMost; ++d) {
    if (n % d != 0) continue;
    found.push_back(d);
    if (d * d != n) partners.push_back(n / d);
  }
  found.insert(found.end(), partners.rbegin(), partners.rend());
  found.resize(std::min(found.size(), kMost));
  std::vector<std::string> words;
  for (const std::int64_t d : found) words.push_back(std::to_string(d));
  if (words.size() == 1) return words.front();
  const std::string last = std::move(words.back());
  words.pop_back();
  return join(words, ", ") + " or " + last;
}

// A key that latent attention settles: it may be repeated, not contradicted.
std::int64_t settled(YamlMap& map, std::string_view key, std::int64_t value, std::string_view why) {
  const std::int64_t given = read_count(map, key, value);
  if (given != value)
    map.error(key, "contradiction", fmt::format("{} contradicts latent_attention, {} {}", given, why, value),
              fmt::format("leave {} out", key));
  return value;
}

void load_latent_heads(YamlMap& map, TransformerSpec& model, bool known) {
  if (!known) {  // the placeholder of a refused number would contradict everything
    (void)map.has("kv_heads"), (void)map.has("head_size");
    return;
  }
  const LatentAttentionSpec& latent = *model.latent_attention;
  model.kv_heads = settled(map, "kv_heads", model.heads, "which expands keys and values to all heads:");
  model.head_size = settled(map, "head_size", latent.nope_head_size + latent.rope_head_size,
                            "where nope_head_size + rope_head_size is");
}

// Options without meaning under latent attention; DeepSeek-V2 and -V3 train without them.
void check_latent_choices(YamlMap& map, const TransformerSpec& model) {
  if (!model.latent_attention) return;
  if (model.qkv_bias)
    map.error("qkv_bias", "contradiction", "latent attention projects Q, K and V without biases",
              "leave qkv_bias out");
  if (model.qk_norm != QkNorm::kNone)
    map.error("qk_norm", "contradiction", "latent attention has norms of its own, on the compressed vectors",
              "leave qk_norm out");
  if (model.attention_sinks)
    map.error("attention_sinks", "contradiction", "no model with latent attention has them",
              "leave attention_sinks out");
  if (model.sliding_window)
    map.error("sliding_window", "contradiction", "no model with latent attention has one",
              "leave sliding_window out");
}

void load_heads(YamlMap& map, TransformerSpec& model) {
  const ErrorWatch watch(map.diagnostics());
  model.hidden = read_count(map, "hidden");
  model.heads = read_count(map, "heads");
  model.latent_attention = load_latent_attention(map);
  if (model.latent_attention) return load_latent_heads(map, model, watch.clean());
  model.kv_heads = read_count(map, "kv_heads", model.heads);
  model.head_size = read_count(map, "head_size", std::max<std::int64_t>(1, model.hidden / model.heads));
  // The placeholder of a refused number would fit nothing.
  if (!watch.clean()) return;
  if (!map.has("head_size") && model.hidden % model.heads != 0) {
    map.error("hidden", "not-divisible",
              fmt::format("{} is not divisible by heads = {}", model.hidden, model.heads),
              "give head_size, or change hidden or heads");
  }
  if (model.heads % model.kv_heads != 0) {
    map.error("kv_heads", "not-divisible",
              fmt::format("{} does not divide heads = {}", model.kv_heads, model.heads),
              "use " + divisors(model.heads));
  }
}

// The widths of the MLP and of the experts, each of which may give the other. Llama's follows no rule of h:
// rounding and multipliers differ by size.
void load_widths(YamlMap& map, TransformerSpec& model, std::int64_t layers) {
  std::optional<std::int64_t> width;
  if (model.family == Family::kGpt) width = 4 * model.hidden;
  const bool given = map.has("ffn_hidden");
  if (given) width = read_count(map, "ffn_hidden", width);
  model.experts = load_experts(map, layers, width);
  if (!given && model.experts && model.experts->dense_layers.empty()) width = model.experts->ffn_hidden;
  model.ffn_hidden = given ? *width : read_count(map, "ffn_hidden", width);
}

// Weights of the attention of one layer.
double attention_size(const TransformerSpec& model) {
  const auto h = static_cast<double>(model.hidden), a = static_cast<double>(model.heads),
             q = static_cast<double>(model.head_size);
  if (!model.latent_attention) return h * q * 2 * (a + static_cast<double>(model.kv_heads));
  const LatentAttentionSpec& latent = *model.latent_attention;
  const auto query = static_cast<double>(latent.query_rank), kv = static_cast<double>(latent.kv_rank),
             value = static_cast<double>(latent.value_head_size);
  return h * (query + kv + q) + (query > 0 ? query : h) * a * q + kv * a * (q + value) + h * a * value;
}

// Weights of the experts of one layer.
double experts_size(const TransformerSpec& model, double matrices) {
  if (!model.experts) return 0;
  const ExpertsSpec& experts = *model.experts;
  const auto count = static_cast<double>(experts.count), width = static_cast<double>(experts.ffn_hidden);
  const double shared = static_cast<double>(experts.shared) * static_cast<double>(experts.shared_ffn_hidden);
  return static_cast<double>(model.hidden) * (count + matrices * (count * width + shared));
}

// Products of the numbers stay inside 64 bits below this size. In doubles, which do not overflow; biases and
// norms are left out, and predictions count as layers of both kinds.
void check_size(YamlMap& map, const TransformerSpec& model) {
  const auto h = static_cast<double>(model.hidden), predictions = static_cast<double>(model.mtp_layers);
  const double matrices = is_gated(model.activation) ? 3 : 2;
  const double dense = static_cast<double>(model.numbers().without_experts()) + predictions;
  const double sparse = static_cast<double>(model.numbers().with_experts()) + predictions;
  const double ends =
      h * (2 * static_cast<double>(model.vocab) + static_cast<double>(model.max_sequence_length));
  const double parameters = (static_cast<double>(model.layers) + predictions) * attention_size(model) +
                            std::max(1.0, dense) * matrices * h * static_cast<double>(model.ffn_hidden) +
                            sparse * experts_size(model, matrices) + predictions * 2 * h * h + ends;
  if (parameters > kMaxParameters) {
    map.error("layers", "out-of-range",
              fmt::format("the model would have about {:.1e} parameters, more than {:.0e}", parameters,
                          kMaxParameters),
              "check layers, hidden, heads, ffn_hidden, vocab and experts");
  }
}

// Of no family that is known it is read as a GPT, for which the fewest keys are required.
TransformerSpec load_transformer(YamlMap& map, std::optional<Family> known_family) {
  TransformerSpec model;
  const Family family = model.family = known_family.value_or(Family::kGpt);
  model.name = map.name("name", std::string(kFamilyNames[static_cast<std::size_t>(family)]));
  const ErrorWatch watch(map.diagnostics());
  model.layers = map.integer("layers", {.min = 1, .max = kMaxLayers});
  const bool known = watch.clean();
  load_heads(map, model);
  load_widths(map, model, known ? model.layers : kMaxLayers);
  const FamilyDefaults& usual = defaults_of(family);
  model.sliding_window = load_sliding_window(map, known ? model.layers : kMaxLayers);
  model.vocab = known_family ? assumed_count(map, "vocab", usual.vocab, usual.vocab_of)
                             : read_count(map, "vocab", usual.vocab);
  model.max_sequence_length = map.integer("max_sequence_length", {.min = 0, .max = kMaxCount, .fallback = 0});
  model.mtp_layers = map.integer("mtp_layers", {.min = 0, .max = kMaxLayers, .fallback = 0});
  load_choices(map, model);
  check_latent_choices(map, model);
  // Placeholders of refused numbers are small, but lists of layers may not fit them.
  if (watch.clean()) check_size(map, model);
  return model;
}

// State is some times the gradients, and counted in 64 bits.
constexpr Bytes kMostStageBytes{1'000'000'000'000'000};

// Sizes may be left out: messages and reductions are then free and no memory is counted.
std::vector<Bytes> sizes(YamlMap& map, std::string_view key) {
  if (!map.has(key)) return {Bytes(0)};
  const std::vector<Bytes> all = map.byte_sizes(key);
  if (std::ranges::any_of(all, [](Bytes size) { return size > kMostStageBytes; }))
    map.error(key, "out-of-range",
              fmt::format("{} is more than {} a stage", human(std::ranges::max(all)), human(kMostStageBytes)),
              "bytes of one stage on one rank");
  return all;
}

std::vector<Duration> costs(YamlMap& map, std::string_view key) {
  if (!map.has(key)) map.error(key, "missing-key", "is required, but not given");
  return map.durations(key);
}

// One entry stands for all stages; two lists of two or more must agree.
void check_lengths(YamlMap& map, const StagesSpec& model) {
  struct Named {
    std::string_view key;
    std::size_t size;
  };
  const std::array<Named, 7> lists{{{"forward", model.forward.size()},
                                    {"input_gradient", model.input_gradient.size()},
                                    {"weight_gradient", model.weight_gradient.size()},
                                    {"activation", model.activation.size()},
                                    {"gradient", model.gradient.size()},
                                    {"recompute", model.recompute.size()},
                                    {"message", model.message.size()}}};
  const Named* first = nullptr;
  for (const Named& list : lists) {
    const bool optional = list.key == "recompute" || list.key == "message";
    if (list.size == 0 && (!optional || map.has(list.key))) {
      map.error(list.key, "empty-list", "has no entry", "give one entry per stage, or one for all");
    }
    if (list.size < 2) continue;
    if (first == nullptr) first = &list;
    if (list.size == first->size) continue;
    map.error(list.key, "length-mismatch",
              fmt::format("has {} entries, {} has {}", list.size, first->key, first->size),
              "give every list one entry per stage, or one for all");
  }
}

StagesSpec load_stages(YamlMap& map) {
  const ErrorWatch watch(map.diagnostics());
  StagesSpec model{.name = map.name("name", "stages"),
                   .forward = costs(map, "forward"),
                   .input_gradient = costs(map, "input_gradient"),
                   .weight_gradient = costs(map, "weight_gradient"),
                   .activation = sizes(map, "activation"),
                   .gradient = sizes(map, "gradient")};
  if (map.has("recompute")) model.recompute = map.durations("recompute");
  if (map.has("message")) model.message = sizes(map, "message");
  // A refused entry is missing from its list: lengths mean nothing then.
  if (watch.clean()) check_lengths(map, model);
  return model;
}

// What else is wrong is said as well.
ModelSpec load_without_family(YamlMap& map) {
  const bool stages = map.has("forward") || map.has("input_gradient") || map.has("weight_gradient");
  ModelSpec model = stages ? ModelSpec(load_stages(map)) : load_transformer(map, std::nullopt);
  map.finish();
  return model;
}

}  // namespace

ModelSpec load_model(YamlMap& map) {
  std::vector<std::string> families = to_strings(kFamilyNames);
  families.emplace_back("stages");
  const ErrorWatch watch(map.diagnostics());
  const std::size_t family = map.choice("family", families);
  if (!watch.clean()) return load_without_family(map);
  ModelSpec model = family == kFamilyNames.size() ? ModelSpec(load_stages(map))
                                                  : load_transformer(map, static_cast<Family>(family));
  map.finish();
  return model;
}

}  // namespace stagecraft
