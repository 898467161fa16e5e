// Mistakes that only the whole model shows, in the words of the config.json that it was read from.
//
//   model.hidden: 4096 is not divisible by heads = 30       hidden_size: … by num_attention_heads = 30
//   hint: give head_size, or change hidden or heads         hint: give head_dim, or change hidden_size or …
#pragma once

#include <string_view>

#include "base/diagnostic.hpp"
#include "formats/import_entries.hpp"

namespace stagecraft {

// `model`: the entries of the section, whose comments begin with the keys that they are from. `config`: the
// path of the mapping in the file, "" for the whole.
[[nodiscard]] Diagnostic in_words_of_config(Diagnostic mistake, const Entries& model,
                                            std::string_view config);

}  // namespace stagecraft
