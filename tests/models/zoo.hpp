// Models that several tests use, written out so that a reader need not open scenarios/models/.
#pragma once

#include <cstdint>

#include "models/model_spec.hpp"

namespace stagecraft::zoo {

inline TransformerSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {.name = "gpt",
          .family = Family::kGpt,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = heads,
          .head_size = hidden / heads,
          .ffn_hidden = 4 * hidden,
          .vocab = 51200,
          .max_sequence_length = 2048};
}

inline TransformerSpec gpt_22b() {
  return gpt(48, 6144, 64);
}
inline TransformerSpec gpt3_175b() {
  return gpt(96, 12288, 96);
}
inline TransformerSpec gpt_530b() {
  return gpt(105, 20480, 128);
}
inline TransformerSpec gpt_1t() {
  return gpt(128, 25600, 160);
}

struct LlamaShape {
  std::int64_t layers = 0, hidden = 0, ffn_hidden = 0, heads = 0, kv_heads = 0, vocab = 0;
};

inline TransformerSpec llama(const LlamaShape& shape) {
  return {.name = "llama",
          .family = Family::kLlama,
          .layers = shape.layers,
          .hidden = shape.hidden,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .head_size = shape.hidden / shape.heads,
          .ffn_hidden = shape.ffn_hidden,
          .vocab = shape.vocab,
          .max_sequence_length = 8192,
          .activation = Activation::kSwiglu,
          .normalization = Normalization::kRmsNorm,
          .position = Position::kRope,
          .tied_embeddings = false,
          .biases = false,
          .dropout = false};
}

inline TransformerSpec llama3_8b() {
  return llama({32, 4096, 14336, 32, 8, 128256});
}
inline TransformerSpec llama3_70b() {
  return llama({80, 8192, 28672, 64, 8, 128256});
}
inline TransformerSpec llama31_405b() {
  return llama({126, 16384, 53248, 128, 8, 128256});
}

}  // namespace stagecraft::zoo
