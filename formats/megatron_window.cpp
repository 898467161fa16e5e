#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "formats/megatron_grammar.hpp"
#include "formats/megatron_sections.hpp"

namespace stagecraft {

namespace {

constexpr const char *kWindow = "window_size", *kSkip = "window_attn_skip_freq";
constexpr std::int64_t kAll = -1;  // of a side of the window

// Tokens before a token, and behind it.
struct Sides {
  std::int64_t left = kAll, right = kAll;
};

// "127,0" or "(127, 0)".
std::optional<Sides> parse_sides(std::string_view text) {
  const std::vector<std::string_view> items = split(trimmed(text, " ()"), ',');
  if (items.size() != 2) return std::nullopt;
  const auto left = parse_integer(trimmed(items[0])), right = parse_integer(trimmed(items[1]));
  if (!left || !right) return std::nullopt;
  return Sides{.left = *left, .right = *right};
}

// nullopt where there is no window, and after an error.
std::optional<std::int64_t> tokens_before(MegatronReader& reader) {
  const MegatronArgument* item = reader.given(kWindow);
  if (item == nullptr) return std::nullopt;
  const std::string text = join(item->values, reader.is_dump() ? "," : " ");
  const auto sides = parse_sides(text);
  constexpr std::int64_t kMost = 999'999'999;
  if (!sides) {
    reader.error(kWindow, "bad-window", fmt::format("{} is no pair of whole numbers", in_quotes(text)),
                 "tokens before and behind a token, as in 127,0");
  } else if (sides->left < kAll || sides->left > kMost) {
    reader.error(kWindow, "out-of-range",
                 fmt::format("{} is not between {} and {}", sides->left, kAll, kMost),
                 "-1 stands for all tokens before");
  } else if (sides->right != 0 && (sides->left != kAll || sides->right != kAll)) {
    reader.error(
        kWindow, "not-supported",
        fmt::format("is not supported: {} reaches behind a token, where a decoder sees nothing", text),
        fmt::format("{},0 is", sides->left));
  } else if (sides->left != kAll) {
    return sides->left;
  }
  return std::nullopt;
}

// The layers that the window leaves out; nullopt after an error.
std::optional<std::vector<std::int64_t>> full_layers(MegatronReader& reader, const std::string& text,
                                                     std::int64_t layers) {
  std::string mistake;
  const auto pattern = read_window_pattern(text, layers, mistake);
  if (!pattern) {
    reader.error(kSkip, "bad-pattern", fmt::format("{}: {}", in_quotes(text), mistake),
                 "an integer, or a list of one 0 or 1 a layer as in ([1]*3+[0])*8");
    return std::nullopt;
  }
  std::vector<std::int64_t> full;
  for (std::size_t i = 0; i < pattern->size(); ++i)
    if (!(*pattern)[i]) full.push_back(static_cast<std::int64_t>(i));
  return full;
}

}  // namespace

// A token sees itself as well.   source  Megatron-LM @00caa53 megatron/core/transformer/utils.py:
//                                        get_sliding_window_causal_mask
std::optional<FragmentEntry> read_megatron_window(MegatronReader& reader, const MegatronJob& job) {
  const auto left = tokens_before(reader);
  if (!left) return std::nullopt;
  if (reader.flag("multi_latent_attention")) {
    reader.error(kWindow, "not-supported", "is not supported: a sliding window in latent attention");
    return std::nullopt;
  }
  ImportSource source = reader.source(kWindow);
  const FragmentEntry tokens =
      entry("tokens", *left + 1,
            {.comment = fmt::format("{}: {} before, and the token itself", source.comment, *left),
             .where = source.where});
  const std::string text = reader.pattern(kSkip);
  if (text.empty()) return sliding_window_entry(tokens, {}, job.layers, {});
  const auto full = full_layers(reader, text, job.layers);
  if (!full) return std::nullopt;
  source = reader.source(kSkip);
  source.comment += " " + text;
  if (std::ssize(*full) < job.layers) return sliding_window_entry(tokens, *full, job.layers, source);
  reader.note(fmt::format("no layer has the window: {}", source.comment));
  return std::nullopt;
}

}  // namespace stagecraft
