// LayerNorm and RMSNorm over the T' tokens of the rank, and what joins the residual stream beside them.
#pragma once

#include <string_view>

#include "models/operators.hpp"

namespace stagecraft {

enum class Residual : std::uint8_t {
  kNone,
  kSummed
};  // whether the backward also adds the residual's gradient

void add_norm_forward(Ops& ops, std::string_view name, const TransformerSpec& model, const Shard& shard);
void add_norm_backward(Ops& ops, std::string_view name, const TransformerSpec& model, const Shard& shard,
                       Residual residual);

}  // namespace stagecraft
