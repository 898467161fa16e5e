// A model from YAML, with what is said of it.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/yaml.hpp"
#include "models/load_model.hpp"

namespace stagecraft {

struct ReadLlama {
  TransformerSpec model;
  std::vector<std::string> messages;  // "path: message (hint)"
};

// A small Llama of six layers with `keys` of its own.
inline ReadLlama read_llama(std::string_view keys) {
  const std::string text = "{family: llama, layers: 6, hidden: 64, heads: 8, ffn_hidden: 96, vocab: 100, " +
                           std::string(keys) + "}";
  Diagnostics diagnostics;
  const auto root = parse_yaml(text, "model.yaml", diagnostics);
  diagnostics.throw_if_errors();
  YamlMap map(&root.value(), "model", {.file = "model.yaml", .line = 1, .column = 1}, diagnostics);
  ReadLlama read{.model = std::get<TransformerSpec>(load_model(map)), .messages = {}};
  for (const Diagnostic& d : diagnostics.sorted())
    read.messages.push_back(d.path + ": " + d.message + (d.hint.empty() ? "" : " (" + d.hint + ")"));
  return read;
}

}  // namespace stagecraft
