// Looking into operator lists: by name, in order, in sum.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
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

inline Ops of_kind(const Ops& ops, OpKind kind) {
  Ops list;
  std::copy_if(ops.begin(), ops.end(), std::back_inserter(list),
               [&](const Op& op) { return op.kind == kind; });
  return list;
}

inline std::int64_t count(const Ops& ops, std::string_view name) {
  return std::count_if(ops.begin(), ops.end(), [&](const Op& op) { return op.name == name; });
}

inline bool same(const Op& a, const Op& b) {
  const auto fields = [](const Op& op) {
    return std::tie(op.kind, op.name, op.gemm, op.attention, op.flops, op.bytes, op.collective, op.group,
                    op.beside, op.kernels);
  };
  return fields(a) == fields(b);
}

inline bool same(const LayerOps& a, const LayerOps& b) {
  const auto alike = [](const Ops& x, const Ops& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const Op& p, const Op& q) { return same(p, q); });
  };
  return alike(a.forward, b.forward) && alike(a.recompute, b.recompute) &&
         alike(a.input_gradient, b.input_gradient) && alike(a.weight_gradient, b.weight_gradient);
}

// Names of the collectives that a weight-gradient GEMM hides.
inline Names hidden(const Ops& ops) {
  Names list;
  for (const Op& op : ops) {
    if (op.beside == Beside::kWeightGradient) list.push_back(op.name);
  }
  return list;
}

// The GEMM that a collective of the list is cut into chunks with.
inline std::string_view partner(const Ops& ops, std::string_view name) {
  const auto gemm = [](const Op& op) { return op.kind == OpKind::kGemm; };
  const auto at = std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.name == name; });
  if (at->beside == Beside::kNextGemm) return std::find_if(at, ops.end(), gemm)->name;
  if (at->beside != Beside::kPreviousGemm) return "none";
  return std::find_if(std::make_reverse_iterator(at), ops.rend(), gemm)->name;
}

inline Flops total_flops(const Ops& ops) {
  Flops sum{};
  for (const Op& op : ops) sum += op.flops;
  return sum;
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
