// One Hugging Face `config.json` on its way from keys to the entries of a model section.
//
// Each of its files reads one part: the family and unread keys (hf_import.cpp), refusals (hf_refusals.cpp),
// sliding windows (hf_windows.cpp), layers and ends (hf_layers.cpp), experts (hf_experts.cpp). Mistakes go to
// the reader's diagnostics; later readers treat a reported value as absent.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"
#include "formats/fragment.hpp"
#include "formats/hf_reader.hpp"
#include "formats/hf_tables.hpp"
#include "formats/import_entries.hpp"

namespace stagecraft {

using HfNumber = HfValue<std::int64_t>;
using HfLayers = HfValue<std::vector<std::int64_t>>;

// Layers that are named one by one are not more than these.
inline constexpr std::int64_t kMostHfLayers = 100'000;

// `key: number  # the file's key`
[[nodiscard]] FragmentEntry number_entry(std::string key, const HfNumber& number);

// The length that a scaled rotation is for; 0 where nothing says so.
[[nodiscard]] std::int64_t scaled_length(const YamlNode& config);

class HfImport {
 public:
  HfImport(const YamlNode& config, const std::string& path, Diagnostics& diagnostics)
      : in_(config, path, diagnostics) {}

  // Reads everything that there is to read. False after a mistake, reported.
  bool run();

  Entries model = {};
  std::vector<std::string> assumed = {};
  std::vector<std::string> ignored = {};
  std::string model_type = {};
  std::string training_hint = {};        // of sequence length and precision
  std::vector<Diagnostic> altered = {};  // warnings of keys of altered files; their hint comes later

 private:
  void add(std::string key, YamlNode value, std::string comment) {
    model.push_back({.key = std::move(key), .value = std::move(value), .comment = std::move(comment)});
  }
  void add(std::string key, const std::optional<HfNumber>& number) {
    if (number) model.push_back(number_entry(std::move(key), *number));
  }
  void add_word(std::string key, std::string_view word, std::string comment) {
    add(std::move(key), fragment_text(word), std::move(comment));
  }
  void add_flag(std::string key, bool flag, std::string comment) {
    add(std::move(key), fragment_flag(flag), std::move(comment));
  }

  void add_group(std::string key, Entries entries) {
    if (!entries.empty()) model.push_back(map_entry(std::move(key), std::move(entries)));  // else reported
  }

  // hf_import.cpp: which family, and what is left over.
  const HfArchitecture* named_architecture();
  [[nodiscard]] std::string unknown_type() const;
  bool refuse_unlike_llama();
  void accept_as_llama();
  void warn_of_other_head(std::int64_t tokens);
  void list_unread(std::initializer_list<std::string_view> keys, std::string_view why);
  void note_altered(const YamlEntry& entry, std::string_view meant, const std::string& read);
  void note_the_rest();
  void warn_of_unknown_keys(const std::vector<std::string>& all_known);

  // hf_refusals.cpp: what is not modelled, or contradicts the family.
  [[nodiscard]] std::vector<std::string> unlike_llama() const;
  void refuse_other_layers();
  void refuse_shape_words();
  void refuse_experts();

  // hf_windows.cpp: which layers attend to all tokens, and which to the last ones.
  void find_window();
  void read_window();
  std::optional<HfLayers> named_full_layers();
  std::optional<HfNumber> window_tokens(const HfWindow& rule);
  HfLayers full_layers_by(const HfWindow& rule, const std::optional<HfNumber>& number);
  [[nodiscard]] bool cuts_nothing_off(std::int64_t tokens);
  void miss_window_tokens(const HfWindow& rule, std::int64_t windowed);
  bool refuse_window(const HfNumber& tokens, bool named, const HfWindow& rule);

  // hf_layers.cpp: keys of layers and ends.
  void read_sizes();
  std::optional<HfNumber> required_or(std::initializer_list<std::string_view> keys, std::int64_t of_type);
  void read_heads();
  std::optional<HfNumber> read_kv_heads();
  void read_positions();
  void read_activation();
  void read_biases();
  void read_qk_norm();
  void read_sinks();
  void read_clamp();
  void warn_of_unpriced();
  void read_ends();
  void read_dropout();
  void warn_of_other_dropout(std::string_view source);
  void read_latent_switch();
  void read_latent_attention();
  void read_feed_forward();

  // hf_experts.cpp: keys of experts.
  void read_experts(const std::optional<HfNumber>& width);
  std::optional<HfNumber> expert_count();
  std::optional<HfNumber> read_top_k();
  void add_routing_groups(Entries& entries);
  void add_shared_experts(Entries& entries);
  void add_dense_of_deepseek(Entries& entries);
  void add_dense_of_kinds(Entries& entries, const HfValue<std::vector<std::string>>& kinds);
  void add_dense_of_qwen(Entries& entries);
  void add_dense_list(Entries& entries, const std::vector<std::int64_t>& dense, const std::string& comment,
                      const SourceLocation& where);
  void note_routing();

  [[nodiscard]] bool is_llama() const { return architecture_.shape == HfShape::kLlama; }
  // "head_dim is absent: 256 of gemma2"
  [[nodiscard]] std::string absent(std::string_view key, std::int64_t number) const {
    return fmt::format("{} is absent: {} of {}", key, number, architecture_.model_type);
  }
  [[nodiscard]] std::string type_comment() const { return fmt::format("model_type: {}", model_type); }

  HfReader in_;
  HfArchitecture architecture_ = {};
  bool unknown_ = false;                 // read as Llama, whose keys it has
  std::string other_head_ = {};          // the class, where it has not the head of a language model
  std::optional<HfNumber> window_ = {};  // tokens of the sliding window
  HfLayers full_layers_ = {};            // layers that it leaves out
  std::int64_t layers_ = 0;              // 0 here and below: not known, reported
  std::int64_t hidden_ = 0;
};

}  // namespace stagecraft
