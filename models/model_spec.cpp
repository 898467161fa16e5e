#include "models/model_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace stagecraft {

namespace {

// Far above any model, and low enough that no product of them overflows unnoticed (see check_size).
constexpr std::int64_t kMaxCount = 1'000'000'000;
constexpr double kMaxParameters = 1e15;

// What a family sets unless the file says otherwise.
struct FamilyDefaults {
  Activation activation;
  Normalization normalization;
  Position position;
  bool tied_embeddings, biases, dropout;
};

// source  Radford et al. (2019) and Brown et al. (arXiv 2005.14165), section 2.1, as trained by Megatron-LM.
constexpr FamilyDefaults kGptDefaults{.activation = Activation::kGelu,
                                      .normalization = Normalization::kLayerNorm,
                                      .position = Position::kLearned,
                                      .tied_embeddings = true,
                                      .biases = true,
                                      .dropout = true};
// source  Touvron et al. (arXiv 2302.13971), section 2.2.
constexpr FamilyDefaults kLlamaDefaults{.activation = Activation::kSwiglu,
                                        .normalization = Normalization::kRmsNorm,
                                        .position = Position::kRope,
                                        .tied_embeddings = false,
                                        .biases = false,
                                        .dropout = false};

template <class Enum, std::size_t n>
Enum choose(YamlMap& map, std::string_view key, const std::array<std::string, n>& names, Enum fallback) {
  return static_cast<Enum>(map.choice(key, names, static_cast<std::size_t>(fallback)));
}

void load_choices(YamlMap& map, TransformerSpec& model) {
  const FamilyDefaults& defaults = model.family == Family::kGpt ? kGptDefaults : kLlamaDefaults;
  model.activation =
      choose(map, "activation", std::array<std::string, 2>{"gelu", "swiglu"}, defaults.activation);
  model.normalization = choose(map, "normalization", std::array<std::string, 2>{"layernorm", "rmsnorm"},
                               defaults.normalization);
  model.position = choose(map, "position", std::array<std::string, 2>{"learned", "rope"}, defaults.position);
  model.tied_embeddings = map.boolean("tied_embeddings", defaults.tied_embeddings);
  model.biases = map.boolean("biases", defaults.biases);
  model.dropout = map.boolean("dropout", defaults.dropout);
}

// "1, 2, 3, 4 or 6": divisors of n, as many as a line holds.
std::string divisors(std::int64_t n) {
  constexpr std::size_t kMost = 16;
  std::vector<std::string> found;
  for (std::int64_t d = 1; d <= n && found.size() < kMost; ++d) {
    if (n % d == 0) found.push_back(std::to_string(d));
  }
  if (found.size() == 1) return found.front();
  const std::string last = std::move(found.back());
  found.pop_back();
  return join(found, ", ") + " or " + last;
}

std::int64_t count(YamlMap& map, std::string_view key, std::optional<std::int64_t> fallback = {}) {
  return map.integer(key, {.min = 1, .max = kMaxCount, .fallback = fallback});
}

void load_heads(YamlMap& map, TransformerSpec& model) {
  const std::size_t mistakes = map.diagnostics().error_count();
  model.hidden = count(map, "hidden");
  model.heads = count(map, "heads");
  model.kv_heads = count(map, "kv_heads", model.heads);
  model.head_size = count(map, "head_size", std::max<std::int64_t>(1, model.hidden / model.heads));
  if (map.diagnostics().error_count() > mistakes) return;  // what stands in for a refused number fits nothing
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

// Products of the numbers stay inside 64 bits below this size.
void check_size(YamlMap& map, const TransformerSpec& model) {
  const auto h = static_cast<double>(model.hidden), q = static_cast<double>(model.head_size);
  const double attention = h * q * 2 * static_cast<double>(model.heads + model.kv_heads);
  const double matrices = model.activation == Activation::kSwiglu ? 3 : 2;
  const double ffn = matrices * h * static_cast<double>(model.ffn_hidden);
  const double ends =
      h * (2 * static_cast<double>(model.vocab) + static_cast<double>(model.max_sequence_length));
  const double parameters = static_cast<double>(model.layers) * (attention + ffn) + ends;
  if (parameters > kMaxParameters) {
    map.error("layers", "out-of-range",
              fmt::format("the model would have about {:.1e} parameters, more than {:.0e}", parameters,
                          kMaxParameters),
              "check layers, hidden, heads, ffn_hidden and vocab");
  }
}

TransformerSpec load_transformer(YamlMap& map, Family family) {
  TransformerSpec model;
  model.family = family;
  model.name = map.text("name", family == Family::kGpt ? "gpt" : "llama");
  model.layers = count(map, "layers");
  load_heads(map, model);
  // Llama's width follows no rule of h: rounding and multipliers differ by size.
  const auto ffn_default = family == Family::kGpt ? std::optional(4 * model.hidden) : std::nullopt;
  model.ffn_hidden = count(map, "ffn_hidden", ffn_default);
  model.vocab = count(map, "vocab");
  model.max_sequence_length = map.integer("max_sequence_length", {.min = 0, .max = kMaxCount, .fallback = 0});
  load_choices(map, model);
  map.not_supported_yet("experts", "describe a dense model: leave experts out");
  check_size(map, model);
  return model;
}

// Sizes may be left out: messages and reductions are then free and no memory is counted.
std::vector<Bytes> sizes(YamlMap& map, std::string_view key) {
  return map.has(key) ? map.byte_sizes(key) : std::vector<Bytes>{Bytes(0)};
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
  const std::array<Named, 5> lists{{{"forward", model.forward.size()},
                                    {"input_gradient", model.input_gradient.size()},
                                    {"weight_gradient", model.weight_gradient.size()},
                                    {"activation", model.activation.size()},
                                    {"gradient", model.gradient.size()}}};
  const Named* first = nullptr;
  for (const Named& list : lists) {
    if (list.size == 0) {
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
  const std::size_t mistakes = map.diagnostics().error_count();
  StagesSpec model{.name = map.text("name", "stages"),
                   .forward = costs(map, "forward"),
                   .input_gradient = costs(map, "input_gradient"),
                   .weight_gradient = costs(map, "weight_gradient"),
                   .activation = sizes(map, "activation"),
                   .gradient = sizes(map, "gradient")};
  // A refused entry is missing from its list: lengths mean nothing then.
  if (map.diagnostics().error_count() == mistakes) check_lengths(map, model);
  return model;
}

}  // namespace

ModelSpec load_model(YamlMap& map) {
  const std::array<std::string, 3> families{"gpt", "llama", "stages"};
  const std::size_t mistakes = map.diagnostics().error_count();
  const std::size_t family = map.choice("family", families);
  if (map.diagnostics().error_count() > mistakes) return {};  // which keys are right depends on the family
  ModelSpec model = family == 2 ? ModelSpec(load_stages(map))
                                : load_transformer(map, family == 1 ? Family::kLlama : Family::kGpt);
  map.finish();
  return model;
}

}  // namespace stagecraft
