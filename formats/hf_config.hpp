// A Hugging Face `config.json` as a model of ours.
//
// Supported: Llama, Mistral, Mixtral, Qwen2 and Qwen3 with and without experts, gpt-oss, DeepSeek, V2 and V3,
// GLM-4, Seed-OSS, MiMo, GPT-2, GPTBigCode, GPT-NeoX, StarCoder2; a model of an unknown type with the keys of
// Llama, with a warning; the language model of a multi-part model (`text_config`); sliding windows. The file
// lacks the sequence length and all training settings; the fragment lists them as missing.
//
//   refused by name   layers of another attention than full and sliding (layer_types,
//                     full_attention_interval), a window in layers that neither type nor file name, an unknown
//                     architecture, experts in a dense type or none in a type of experts, biases on some linear
//                     layers only, gated activations other than SiLU
//   never             a number that is guessed: an absent one is reported, an altered key is a warning
//   source            keys, and what an absent key means: formats/hf_tables.hpp
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"
#include "formats/fragment.hpp"
#include "models/model_spec.hpp"

namespace stagecraft {

struct HfConfig {
  Fragment fragment;      // `stagecraft: 1` and a `model:` section
  TransformerSpec model;  // the model described by the fragment
};

// Reads the text of a config.json; `name` is used in places only. All mistakes are reported at once, at their
// keys; nullopt then. The place of each value of the model goes to `origins`, under "model.".
[[nodiscard]] std::optional<HfConfig> read_hf_config(std::string_view text, const std::string& name,
                                                     Diagnostics& diagnostics, Origins* origins = nullptr);

}  // namespace stagecraft
