// Looking into operator lists: by name, in order, in sum.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "models/operators.hpp"

namespace stagecraft::op_lists {

using Names = std::vector<std::string_view>;

// The first operator of that name. throws std::out_of_range when there is none.
inline const Op& find(const Ops& ops, std::string_view name) {
  const auto at = std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.name == name; });
  if (at == ops.end()) throw std::out_of_range(std::string(name));
  return *at;
}

inline Names names(const Ops& ops) {
  Names list;
  for (const Op& op : ops) list.push_back(op.name);
  return list;
}

// Names of the collectives that a weight-gradient GEMM hides.
inline Names hidden(const Ops& ops) {
  Names list;
  for (const Op& op : ops) {
    if (op.beside == Beside::kWeightGradient) list.push_back(op.name);
  }
  return list;
}

inline Bytes total_bytes(const Ops& ops) {
  Bytes sum;
  for (const Op& op : ops) sum += op.bytes;
  return sum;
}

// Bytes of the collectives alone.
inline Bytes payload(const Ops& ops) {
  Bytes sum;
  for (const Op& op : ops) sum += op.kind == OpKind::kCollective ? op.bytes : Bytes(0);
  return sum;
}

}  // namespace stagecraft::op_lists
