#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "formats/hf_import.hpp"

namespace stagecraft {

namespace {

constexpr std::string_view kSliding = "sliding_attention";

// "attention" is the old word for "full_attention".
bool is_full(std::string_view kind) {
  return kind == "full_attention" || kind == "attention";
}

// `number`: of `max_window_layers`, or of `sliding_window_pattern`.
bool slides(HfWindowed rule, std::int64_t layer, std::int64_t number) {
  switch (rule) {
    case HfWindowed::kNone:
    case HfWindowed::kEvery:
      return true;
    case HfWindowed::kEven:
      return layer % 2 == 0;
    case HfWindowed::kFromLimit:
      return layer >= number;
    case HfWindowed::kEvenBelowLimit:
      return layer % 2 == 0 && layer < number;
    case HfWindowed::kButEachNth:
      return (layer + 1) % number != 0;
  }
  return true;
}

bool knows_limit(HfWindowed rule) {
  return rule == HfWindowed::kFromLimit || rule == HfWindowed::kEvenBelowLimit;
}

}  // namespace

// Those of `layer_types`; nullopt when it is not given. Reports kinds that are not modelled, and a list of
// another length.
std::optional<HfLayers> HfImport::named_full_layers() {
  const auto kinds = in_.texts("layer_types");
  if (!kinds || kinds->value.empty()) return std::nullopt;
  HfLayers full{.key = kinds->key, .where = kinds->where};
  const std::int64_t named = std::ssize(kinds->value);
  if (layers_ > 0 && named != layers_)
    in_.error("layer_types", "contradiction",
              fmt::format("names {} layers, and the model has {}", named, layers_),
              "one kind for each layer");
  std::map<std::string, std::size_t> others;
  for (std::int64_t layer = 0; layer < named; ++layer) {
    const std::string& kind = kinds->value[static_cast<std::size_t>(layer)];
    if (is_full(kind))
      full.value.push_back(layer);
    else if (kind != kSliding)
      ++others[kind];
  }
  for (const auto& [kind, count] : others)
    in_.error("layer_types", "not-supported-yet",
              fmt::format("{} in {} of {} layers is not modelled", in_quotes(kind), count, named),
              "full_attention and sliding_attention are");
  return full;
}

// nullopt where no window is in use.
std::optional<HfNumber> HfImport::window_tokens(const HfWindow& rule) {
  auto given = in_.integer({"sliding_window"}, 0);
  const auto used = in_.flag("use_sliding_window");
  if (used ? !used->value : rule.switched) return std::nullopt;
  if (given && given->value > 0) return given;
  const bool absent = in_.first({"sliding_window"}) == nullptr && !in_.is_null("sliding_window");
  if (!absent || rule.tokens == 0) return std::nullopt;
  return HfNumber{.value = rule.tokens,
                  .key = fmt::format("sliding_window is absent: {} of {}", rule.tokens, model_type),
                  .where = in_.config().where};
}

// `number`: what the file says in place of the number of the rule.
HfLayers HfImport::full_layers_by(const HfWindow& rule, const std::optional<HfNumber>& number) {
  HfLayers full{.key = type_comment()};
  if (rule.layers == HfWindowed::kNone || rule.layers == HfWindowed::kEvery) return full;
  if (layers_ > kMostHfLayers) {
    in_.error("num_hidden_layers", "out-of-range",
              fmt::format("{} layers, with a window in some, are more than {}", layers_, kMostHfLayers));
    return full;
  }
  const bool by_limit = knows_limit(rule.layers), by_pattern = rule.layers == HfWindowed::kButEachNth;
  const std::int64_t usual = by_limit ? kHfWindowLimit : rule.each;
  if (by_limit) full.key = absent("max_window_layers", usual);
  if (by_pattern) full.key = absent("layer_types", usual);
  if (number && (by_limit || by_pattern)) {
    full.key = number->key;
    full.where = number->where;
  }
  for (std::int64_t layer = 0; layer < layers_; ++layer)
    if (!slides(rule.layers, layer, number ? number->value : usual)) full.value.push_back(layer);
  return full;
}

// Notes a window that is no shorter than the longest sequence.
bool HfImport::cuts_nothing_off(std::int64_t tokens) {
  const auto ceiling = in_.integer({"max_position_embeddings"});
  if (!ceiling || tokens < std::max(ceiling->value, scaled_length(in_.config()))) return false;
  assumed.push_back(
      fmt::format("a sliding window of {} tokens cuts nothing off: max_position_embeddings is {}", tokens,
                  ceiling->value));
  return true;
}

// `layer_types` has windows, and nothing says of how many tokens.
void HfImport::miss_window_tokens(const HfWindow& rule, std::int64_t windowed) {
  const auto used = in_.flag("use_sliding_window");
  const bool off = used ? !used->value : rule.switched;
  const std::string_view why = !off   ? "sliding_window does not say of how many tokens"
                               : used ? "use_sliding_window is false"
                                      : "use_sliding_window, which turns it on, is not given";
  in_.error("layer_types", off ? "contradiction" : "missing-key",
            fmt::format("{} in {} of {} layers, and {}", in_quotes(kSliding), windowed, layers_, why),
            fmt::format("{}, or name full_attention in every layer",
                        off ? "set use_sliding_window to true" : "give sliding_window"));
}

// True after an error.
bool HfImport::refuse_window(const HfNumber& tokens, bool named, const HfWindow& rule) {
  if (architecture_.latent) {
    in_.error("sliding_window", "not-supported-yet",
              fmt::format("a window of {} tokens in latent attention is not modelled", tokens.value),
              "sliding_window: null leaves it out");
    return true;
  }
  if (named || rule.layers != HfWindowed::kNone) return false;
  const bool known = !architecture_.model_type.empty();
  in_.error(
      "sliding_window", "not-supported-yet",
      known ? fmt::format("attention within {} tokens, and {} has no window", tokens.value, model_type)
            : fmt::format("attention within {} tokens in layers that the file does not name", tokens.value),
      "layer_types names the layers with a window; with sliding_window: null all tokens are attended to, "
      "which takes longer on long sequences");
  return true;
}

// Reads all keys of windows, before the type is known to be readable.
void HfImport::find_window() {
  const ErrorWatch watch(in_.diagnostics());
  const bool known = !architecture_.model_type.empty();
  const HfWindow rule = known ? architecture_.window : hf_window_of_unknown(model_type);
  const auto named = named_full_layers();
  const auto limit = in_.integer({"max_window_layers"}, 0);
  const bool by_pattern = rule.layers == HfWindowed::kButEachNth;
  const auto pattern =
      by_pattern ? in_.integer({"sliding_window_pattern", "_sliding_window_pattern"}) : std::nullopt;
  const auto tokens = window_tokens(rule);
  if (!watch.clean()) return;
  HfLayers full = named ? *named : tokens ? full_layers_by(rule, by_pattern ? pattern : limit) : HfLayers{};
  const std::int64_t windowed = layers_ - std::ssize(full.value);
  if (named && windowed > 0 && !tokens) return miss_window_tokens(rule, windowed);
  if (!watch.clean()) return;
  if (!tokens || windowed <= 0)
    return list_unread({"sliding_window", "use_sliding_window", "max_window_layers"}, "no window is in use");
  if (cuts_nothing_off(tokens->value) || refuse_window(*tokens, named.has_value(), rule)) return;
  if (named || !knows_limit(rule.layers))
    list_unread({"max_window_layers"}, named ? "layer_types says it" : "the type says it");
  window_ = tokens;
  full_layers_ = std::move(full);
}

void HfImport::read_window() {
  if (!window_) return;
  model.push_back(sliding_window_entry(number_entry("tokens", *window_), full_layers_.value, layers_,
                                       {.comment = full_layers_.key, .where = full_layers_.where}));
}

}  // namespace stagecraft
