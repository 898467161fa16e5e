// Matches operators of a trace to the model's: norms, attention, activations, the loss, embeddings, sums, the
// optimizer. trace_diff itself matches GEMMs and collectives.
//
//   by shape   the same pass, a role that fits, and as many elements: 2,048 x 4,096 of an addition are those
//              of the residual. Several operators of a trace may be parts of one of the model: a gate's
//              product of its activation, unfused.
//   by name    what it does is told by its name, and no shape was recorded or none is the model's: all
//              operators of that role and pass are one row.
//   neither    stays on its side, and is compared by family alone. Sums, copies and other plain operators are
//              tied by shape or not at all.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/diff/rank_ops.hpp"

namespace stagecraft {

enum class Tie : std::uint8_t { kShape, kName };
inline constexpr std::array<std::string_view, 2> kTieNames = {"shape", "name"};

struct TiedOperators {
  Tie tie = Tie::kShape;
  WorkKind kind = WorkKind::kMemory;  // the model's
  bool backward = false;
  std::int64_t elements = 0;           // elements of a match by shape
  std::set<std::string> ours, theirs;  // "ffn norm"; "aten::native_layer_norm"
  OpTotal predicted, measured;
};

using OneSidedOperator = std::pair<OtherKey, OpTotal>;

struct OperatorTies {
  std::vector<TiedOperators> tied;
  std::vector<OneSidedOperator> only_predicted, only_measured;
};

[[nodiscard]] OperatorTies tie_operators(const RankOps& predicted, const RankOps& measured);

}  // namespace stagecraft
