// LayerNorm and RMSNorm, and the additions to the residual stream.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/op_builder.hpp"
#include "models/operators.hpp"

namespace stagecraft {

// A norm over `rows` vectors of `width` elements: residual stream, latent vectors, or heads.
struct Norm {
  std::string_view name;
  std::int64_t rows = 0, width = 0;
  bool feeds_products = false;  // of the same module, which may want them in fp8
  bool of_stream = false;       // reads the residual stream, which autocast has in fp32
};
// Is it one kernel, which also adds the gradient of the residual?
[[nodiscard]] bool fuses_norm(const TransformerSpec& model, const Shard& shard);
// How the products of the module get what a norm wrote: only a fused one knows of fp8.
[[nodiscard]] Fp8Source from_norm(const TransformerSpec& model, const Shard& shard);
[[nodiscard]] GatherOf gather_of_norm(const TransformerSpec& model, const Shard& shard);
// The same of a product whose input is that of its block: a norm's output, or the residual stream itself.
[[nodiscard]] Fp8Source from_block_input(const TransformerSpec& model, const Shard& shard);
[[nodiscard]] GatherOf gather_of_block_input(const TransformerSpec& model, const Shard& shard);

// A norm over the T' tokens of the rank, h wide.
[[nodiscard]] Norm residual_norm(std::string_view name, const TransformerSpec& model, const Shard& shard);

enum class Residual : std::uint8_t {
  kNone,
  kSummed
};  // whether the backward also adds the residual's gradient

void add_norm_forward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard);
void add_norm_backward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard,
                       Residual residual);

// Around attention or a feed-forward block, where the model has norms there. The one before it: backward the gradients of
// block and residual stream are summed, by the norm or without it. The one behind it: between the block's output and the
// residual stream, a kernel of its own in each pass.
void add_norm_before_forward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard);
void add_norm_before_backward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard);
void add_norm_behind_forward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard);
void add_norm_behind_backward(Ops& ops, const Norm& norm, const TransformerSpec& model, const Shard& shard);

// Bias, dropout and the residual, after a row-parallel linear layer.
void add_residual_forward(Ops& ops, const TransformerSpec& model, const Shard& shard);
void add_residual_backward(Ops& ops, const TransformerSpec& model, const Shard& shard);

}  // namespace stagecraft
