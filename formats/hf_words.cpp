#include "formats/hf_words.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/text.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

namespace {

constexpr std::string_view kSection = "model.";

// The usual keys, for what the file does not say.
struct UsualKey {
  std::string_view ours, theirs;
};
constexpr UsualKey kUsual[] = {{"layers", "num_hidden_layers"},
                               {"hidden", "hidden_size"},
                               {"heads", "num_attention_heads"},
                               {"kv_heads", "num_key_value_heads"},
                               {"head_size", "head_dim"},
                               {"ffn_hidden", "intermediate_size"},
                               {"vocab", "vocab_size"},
                               {"tied_embeddings", "tie_word_embeddings"},
                               {"experts.top_k", "num_experts_per_tok"},
                               {"experts.ffn_hidden", "moe_intermediate_size"},
                               {"experts.groups", "n_group"},
                               {"experts.top_groups", "topk_group"},
                               {"experts.shared", "n_shared_experts"},
                               {"experts.first_dense_layers", "first_k_dense_replace"}};

bool is_of_key(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '_';
}

bool is_of_path(char c) {
  return is_of_key(c) || c == '.';
}

// The key that a comment begins with: "num_key_value_heads is absent: …".
std::string first_key(std::string_view comment) {
  const auto end = std::ranges::find_if_not(comment, is_of_key);
  const std::string key(comment.begin(), end);
  return key == "model_type" ? std::string() : key;
}

// The file's key for "hidden" or "experts.top_groups"; empty where there is none.
std::string key_of(std::string_view ours, const Entries& model) {
  const std::size_t dot = ours.find('.');
  const FragmentEntry* entry = find_entry(model, ours.substr(0, dot));
  if (entry != nullptr && dot != std::string_view::npos)
    entry = find_entry(entry->entries, ours.substr(dot + 1));
  if (entry != nullptr && !first_key(entry->comment).empty()) return first_key(entry->comment);
  const auto* const usual = std::ranges::find(kUsual, ours, &UsualKey::ours);
  return usual == std::end(kUsual) ? std::string() : std::string(usual->theirs);
}

// Is the word a key, and not one of the sentence ("12 layers")? Hints name keys alone.
bool names_key(std::string_view word, std::string_view behind, bool hint) {
  return hint || behind.starts_with(" = ") || word.find_first_of("._") != std::string_view::npos;
}

// `section`: "" or "experts.", in which the words are looked up first.
std::string in_their_words(std::string_view text, std::string_view section, const Entries& model, bool hint) {
  std::string said;
  while (!text.empty()) {
    const auto end = static_cast<std::size_t>(std::ranges::find_if_not(text, is_of_path) - text.begin());
    const std::string word(text.substr(0, end));
    text.remove_prefix(end);
    std::string key;
    if (!word.empty() && names_key(word, text, hint)) {
      if (!section.empty()) key = key_of(std::string(section) + word, model);
      if (key.empty()) key = key_of(word, model);
    }
    said += key.empty() ? word : key;
    if (text.empty()) break;
    said += text.front();
    text.remove_prefix(1);
  }
  return said;
}

}  // namespace

Diagnostic in_words_of_config(Diagnostic mistake, const Entries& model, std::string_view config) {
  if (!mistake.path.starts_with(kSection)) return mistake;
  const std::string ours = mistake.path.substr(kSection.size());
  const std::string section = ours.substr(0, ours.rfind('.') + 1);
  if (const std::string key = key_of(ours, model); !key.empty())
    mistake.path = config.empty() ? key : std::string(config) + '.' + key;
  mistake.message = in_their_words(mistake.message, section, model, false);
  mistake.hint = in_their_words(mistake.hint, section, model, true);
  return mistake;
}

}  // namespace stagecraft
