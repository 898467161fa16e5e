#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "formats/hf_import.hpp"

namespace stagecraft {

namespace {

std::vector<std::int64_t> each_nth(std::int64_t every, std::int64_t layers) {
  std::vector<std::int64_t> full;
  for (std::int64_t layer = every - 1; layer < layers; layer += every) full.push_back(layer);
  return full;
}

}  // namespace

// The layers without a window by `layer_types`; nullopt where it is not given, or after a mistake.
std::optional<std::vector<std::int64_t>> HfImport::listed_full_layers() {
  const auto types = in_.texts("layer_types");
  if (!types || types->value.empty()) return std::nullopt;
  const auto named = static_cast<std::int64_t>(types->value.size());
  if (layers_ > 0 && named != layers_) {
    in_.error("layer_types", "contradiction",
              fmt::format("names {} layers, and the model has {}", named, layers_),
              "one kind for each layer");
    return std::nullopt;
  }
  std::vector<std::int64_t> full;
  for (std::int64_t layer = 0; layer < named; ++layer) {
    const std::string& type = types->value[static_cast<std::size_t>(layer)];
    if (type == "full_attention") full.push_back(layer);
    if (type == "full_attention" || type == "sliding_attention") continue;
    in_.error("layer_types", "not-supported-yet", fmt::format("{} is not modelled", in_quotes(type)),
              "full_attention and sliding_attention are");
    return std::nullopt;
  }
  return full;
}

// `pattern`: what the file says of it.
FragmentEntry HfImport::full_layers_entry(const std::optional<std::vector<std::int64_t>>& listed,
                                          const std::optional<HfNumber>& pattern) const {
  constexpr std::int64_t kMostLayers = 100'000;
  const std::int64_t every = pattern ? pattern->value : architecture_.full_every;
  if (listed && *listed != each_nth(every, std::min(layers_, kMostLayers)))
    return {.key = "full_layers",
            .value = fragment_numbers(*listed, in_.config().where),
            .comment = "layer_types"};
  return {.key = "full_every",
          .value = fragment_number(every, in_.config().where),
          .comment = listed    ? "layer_types"
                     : pattern ? pattern->key
                               : absent("layer_types", every)};
}

// `sliding_window: null` means all tokens in all layers, and so does a list of full layers alone.
void HfImport::read_window_pattern() {
  if (architecture_.full_every == 0) return;
  const ErrorWatch watch(in_.diagnostics());
  const auto tokens = in_.integer({"sliding_window"});
  const auto listed = listed_full_layers();
  const auto pattern = in_.integer({"sliding_window_pattern", "_sliding_window_pattern"});
  const bool all_full =
      listed ? static_cast<std::int64_t>(listed->size()) == layers_ : pattern && pattern->value == 1;
  if (all_full || in_.is_null("sliding_window"))
    return list_unread({"sliding_window"}, "no window is in use");
  if (!watch.clean()) return;
  Entries entries;
  if (tokens)
    entries.push_back(number_entry("tokens", *tokens));
  else
    entries.push_back({.key = "tokens",
                       .value = fragment_number(architecture_.window_tokens, in_.config().where),
                       .comment = absent("sliding_window", architecture_.window_tokens)});
  if (!listed || !listed->empty()) entries.push_back(full_layers_entry(listed, pattern));
  add_group("sliding_window", std::move(entries));
}

}  // namespace stagecraft
