// The architecture of a model, as numbers.
//
//   l layers, h hidden, a heads, k key/value heads, q head size, f feed-forward width, V vocabulary.
//   Families `gpt` and `llama` only set defaults; every number can be set alone.
//   source  parameter formulas: op-count tables of Narayanan et al., SC'21, eq. 2 and the Llama papers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

enum class Family : std::uint8_t { kGpt, kLlama };
enum class Activation : std::uint8_t { kGelu, kSwiglu };
enum class Normalization : std::uint8_t { kLayerNorm, kRmsNorm };
enum class Position : std::uint8_t { kLearned, kRope };

struct TransformerSpec {
  std::string name;
  Family family = Family::kGpt;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  std::int64_t ffn_hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t max_sequence_length = 0;  // 0: not given; no learned position is counted then
  Activation activation = Activation::kGelu;
  Normalization normalization = Normalization::kLayerNorm;
  Position position = Position::kLearned;
  bool tied_embeddings = true;
  bool biases = true;   // of linear layers; GPT has them, Llama has not
  bool dropout = true;  // masks are stored and dropout kernels run; GPT trains with it, Llama without

  friend bool operator==(const TransformerSpec&, const TransformerSpec&) = default;
};

// An abstract pipeline: costs per global stage given directly. A list has one entry per stage, or one for
// all.
struct StagesSpec {
  std::string name;
  std::vector<Duration> forward, input_gradient, weight_gradient;
  // Of one micro-batch through one stage, kept for backward; also the message to the next stage.
  std::vector<Bytes> activation;
  std::vector<Bytes> gradient;  // to reduce over data-parallel replicas at the end

  friend bool operator==(const StagesSpec&, const StagesSpec&) = default;
};

using ModelSpec = std::variant<TransformerSpec, StagesSpec>;

// Reads the mapping at `map` (contract section 1) and finishes it. Defaults by family: gpt: kv_heads = heads,
// head_size = hidden/heads, ffn_hidden = 4 hidden, gelu, layernorm, learned, tied, biases, dropout. llama:
// swiglu, rmsnorm, rope, untied, no biases, no dropout; ffn_hidden is required. `experts:` is refused as not
// supported yet. Of abstract stages the three times are required. After a mistake the value is harmless, and
// its diagnostics say not to use it.
[[nodiscard]] ModelSpec load_model(YamlMap& map);

// Parameters of the whole model, exact. Tied embeddings count once; learned positions count
// max_sequence_length rows.
[[nodiscard]] std::int64_t parameter_count(const TransformerSpec& model);

}  // namespace stagecraft
