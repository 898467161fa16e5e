#include "sim/diff/tie_operators.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>

namespace stagecraft {
namespace {

// Roles of the model that an operator of a trace may belong to, the likeliest first.
std::span<const OperatorRole> fitting(OperatorRole measured) {
  using enum OperatorRole;
  static constexpr OperatorRole kOfSoftmax[] = {kSoftmax, kLoss};
  static constexpr OperatorRole kOfDropout[] = {kDropout};
  static constexpr OperatorRole kOfAdd[] = {kAdd, kDropout, kRope};
  static constexpr OperatorRole kOfMultiply[] = {kActivation, kNorm, kRope};
  static constexpr OperatorRole kOfElementwise[] = {kNorm, kActivation, kRope};
  static constexpr OperatorRole kOfMove[] = {kMove, kRope, kNorm};
  static constexpr OperatorRole kItself[] = {kAttention, kNorm, kActivation, kRope,
                                             kEmbedding, kLoss, kOptimizer};
  switch (measured) {
    case kNone:
      return {};
    case kSoftmax:
      return kOfSoftmax;
    case kDropout:
      return kOfDropout;
    case kAdd:
      return kOfAdd;
    case kMultiply:
      return kOfMultiply;
    case kElementwise:
      return kOfElementwise;
    case kMove:
      return kOfMove;
    case kAttention:
    case kNorm:
    case kActivation:
    case kRope:
    case kEmbedding:
    case kLoss:
    case kOptimizer:
      break;
  }
  return std::span(std::ranges::find(kItself, measured), 1);
}

// Does the name alone say which operator of the model it is? A lookup of other rows is no embedding.
bool told_by_name(const OtherKey& measured) {
  if (measured.role == OperatorRole::kEmbedding || measured.role == OperatorRole::kDropout)
    return measured.elements == 0;
  return measured.role != OperatorRole::kNone && measured.role < OperatorRole::kAdd;
}

// Operators of the model of one role and pass; by shape, also of one size.
using Group = std::tuple<OperatorRole, bool, std::int64_t>;
constexpr std::int64_t kAnySize = -1;

class Tier {
 public:
  Tier(const RankOps& predicted, const RankOps& measured) {
    for (const auto& [key, total] : predicted.others) {
      if (key.role == OperatorRole::kNone) {
        out_.only_predicted.emplace_back(key, total);
        continue;
      }
      sizes_.emplace(key.role, key.backward, key.elements);
      sizes_.emplace(key.role, key.backward, kAnySize);
    }
    for (const auto& [key, total] : measured.others) choose(key);
    for (const auto& [key, total] : measured.others) place(key, total);
    for (const auto& [key, total] : predicted.others)
      if (key.role != OperatorRole::kNone) join(key, total);
  }

  OperatorTies result() {
    for (auto& [group, row] : rows_) out_.tied.push_back(std::move(row));
    return std::move(out_);
  }

 private:
  // A role of a pass with an operator matched by name only is one row, because the assignment of the others
  // is unknown.
  void choose(const OtherKey& measured) {
    if (by_shape(measured) || !told_by_name(measured)) return;
    const Group whole{measured.role, measured.backward, kAnySize};
    if (sizes_.contains(whole)) whole_.insert(whole);
  }

  [[nodiscard]] std::optional<Group> by_shape(const OtherKey& measured) const {
    if (measured.elements == 0) return std::nullopt;
    for (const OperatorRole role : fitting(measured.role)) {
      const Group group{role, measured.backward, measured.elements};
      if (sizes_.contains(group)) return group;
    }
    return std::nullopt;
  }

  [[nodiscard]] static Group whole_of(Group group) {
    std::get<2>(group) = kAnySize;
    return group;
  }

  void place(const OtherKey& key, const OpTotal& total) {
    std::optional<Group> group = by_shape(key);
    if (!group && told_by_name(key)) group = Group{key.role, key.backward, kAnySize};
    if (!group || !sizes_.contains(*group)) {
      out_.only_measured.emplace_back(key, total);
      return;
    }
    const bool whole = whole_.contains(whole_of(*group));
    if (whole) group = whole_of(*group);
    TiedOperators& row = rows_[*group];
    row.tie = whole ? Tie::kName : Tie::kShape;
    row.backward = key.backward;
    row.elements = whole ? 0 : key.elements;
    row.theirs.insert(key.name);
    row.measured.add(total.count, total.seconds);
  }

  void join(const OtherKey& key, const OpTotal& total) {
    const Group whole{key.role, key.backward, kAnySize};
    const auto found =
        rows_.find(whole_.contains(whole) ? whole : Group{key.role, key.backward, key.elements});
    if (found == rows_.end()) {
      out_.only_predicted.emplace_back(key, total);
      return;
    }
    found->second.kind = key.kind;
    found->second.ours.insert(key.name);
    found->second.predicted.add(total.count, total.seconds);
  }

  std::set<Group> sizes_;  // sizes of the model's operators
  std::set<Group> whole_;  // roles and passes that are one row
  std::map<Group, TiedOperators> rows_;
  OperatorTies out_;
};

}  // namespace

OperatorTies tie_operators(const RankOps& predicted, const RankOps& measured) {
  return Tier(predicted, measured).result();
}

}  // namespace stagecraft
