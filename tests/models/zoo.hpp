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
          .qkv_bias = false,
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

// Jiang et al. (arXiv 2401.04088): every layer has 8 experts, of which a token visits 2.
inline TransformerSpec mixtral(const LlamaShape& shape) {
  TransformerSpec model = llama(shape);
  model.experts = ExpertsSpec{.count = 8, .top_k = 2, .ffn_hidden = shape.ffn_hidden};
  return model;
}

inline TransformerSpec mixtral_8x7b() {
  return mixtral({32, 4096, 14336, 32, 8, 32000});
}
inline TransformerSpec mixtral_8x22b() {
  return mixtral({56, 6144, 16384, 48, 8, 32768});
}

// DeepSeek-AI (arXiv 2412.19437), section 4.2, with its one layer of multi-token prediction.
inline TransformerSpec deepseek_v3() {
  TransformerSpec model = llama({61, 7168, 18432, 128, 128, 129280});
  model.head_size = 192;
  model.latent_attention = LatentAttentionSpec{.query_rank = 1536,
                                               .kv_rank = 512,
                                               .nope_head_size = 128,
                                               .rope_head_size = 64,
                                               .value_head_size = 128};
  model.experts = ExpertsSpec{.count = 256,
                              .top_k = 8,
                              .groups = 8,
                              .top_groups = 4,
                              .ffn_hidden = 2048,
                              .shared = 1,
                              .shared_ffn_hidden = 2048,
                              .dense_layers = {0, 1, 2}};
  model.mtp_layers = 1;
  return model;
}

inline TransformerSpec deepseek_v3_without_mtp() {
  TransformerSpec model = deepseek_v3();
  model.mtp_layers = 0;
  return model;
}

// Yang et al. (arXiv 2407.10671): biases on Q, K and V alone.
inline TransformerSpec qwen2_7b() {
  TransformerSpec model = llama({28, 3584, 18944, 28, 4, 152064});
  model.qkv_bias = true;
  return model;
}

// Yang et al. (arXiv 2505.09388): heads of 128 whatever h is, and norms over each head of Q and of K.
inline TransformerSpec qwen3(const LlamaShape& shape) {
  TransformerSpec model = llama(shape);
  model.head_size = 128;
  model.qk_norm = QkNorm::kHead;
  return model;
}

inline TransformerSpec qwen3_0_6b() {
  TransformerSpec model = qwen3({28, 1024, 3072, 16, 8, 151936});
  model.tied_embeddings = true;
  return model;
}
inline TransformerSpec qwen3_30b_a3b() {
  TransformerSpec model = qwen3({48, 2048, 768, 32, 4, 151936});
  model.experts = ExpertsSpec{.count = 128, .top_k = 8, .ffn_hidden = 768};
  return model;
}
inline TransformerSpec qwen3_235b_a22b() {
  TransformerSpec model = qwen3({94, 4096, 1536, 64, 4, 151936});
  model.experts = ExpertsSpec{.count = 128, .top_k = 8, .ffn_hidden = 1536};
  return model;
}

// Team OLMo (arXiv 2501.00656): norms behind the blocks, and over all heads of Q and of K.
inline TransformerSpec olmo2(const LlamaShape& shape) {
  TransformerSpec model = llama(shape);
  model.norms = Norms::kAfter;
  model.qk_norm = QkNorm::kWidth;
  return model;
}
inline TransformerSpec olmo2_32b() {
  return olmo2({64, 5120, 27648, 40, 8, 100352});
}

// Gemma Team (arXiv 2408.00118): four norms a layer, a gate of GELU, every second layer in a window.
inline TransformerSpec gemma2_9b() {
  TransformerSpec model = llama({42, 3584, 14336, 16, 8, 256000});
  model.head_size = 256;
  model.activation = Activation::kGeglu;
  model.norms = Norms::kBoth;
  model.tied_embeddings = true;
  model.sliding_window = {.tokens = 4096, .full_layers = {}};
  for (std::int64_t layer = 1; layer < model.layers; layer += 2)
    model.sliding_window->full_layers.push_back(layer);
  return model;
}

// Muennighoff et al. (arXiv 2409.02060).
inline TransformerSpec olmoe() {
  TransformerSpec model = llama({16, 2048, 1024, 16, 16, 50304});
  model.qk_norm = QkNorm::kWidth;
  model.experts = ExpertsSpec{.count = 64, .top_k = 8, .ffn_hidden = 1024};
  return model;
}

}  // namespace stagecraft::zoo
