#include "sim/accuracy/compute_split.hpp"

#include <numeric>
#include <optional>
#include <variant>

#include "models/compute_cost.hpp"
#include "models/operators.hpp"
#include "sim/lower/stage_operators.hpp"
#include "sim/price_iteration.hpp"

namespace stagecraft {
namespace {

std::optional<KernelFamily> family_of(OpKind kind) {
  switch (kind) {
    case OpKind::kGemm:
    case OpKind::kGroupedGemm:
      return KernelFamily::kProducts;
    case OpKind::kBatchedGemm:
    case OpKind::kFlashForward:
    case OpKind::kFlashBackward:
      return KernelFamily::kAttention;
    case OpKind::kMemory:
    case OpKind::kPermutation:
      return KernelFamily::kMemory;
    case OpKind::kLoss:
      return KernelFamily::kLoss;
    case OpKind::kCollective:
      return std::nullopt;
  }
  return std::nullopt;
}

class Splitter {
 public:
  Splitter(const HardwareProfile& profile, Precision precision) : profile_(profile), precision_(precision) {}

  void add(const LayerOps& ops, double times) {
    for (const Ops* pass : ops.each()) {
      for (const Op& op : *pass) {
        if (const auto family = family_of(op.kind))
          seconds_[static_cast<std::size_t>(*family)] +=
              times * to_seconds(compute_cost(profile_, precision_, op).time);
      }
    }
  }

  [[nodiscard]] KernelShares shares() const {
    KernelShares shares = seconds_;
    const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
    if (total > 0)
      for (double& share : shares) share /= total;
    return shares;
  }

 private:
  const HardwareProfile& profile_;
  Precision precision_;
  KernelShares seconds_{};
};

}  // namespace

KernelShares split_compute(const Scenario& scenario, const ParallelPlan& plan) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr || !scenario.profile) return {};
  Splitter splitter(*scenario.profile, scenario.training.precision);
  for (const CountedOps& piece :
       stage_operators(*model, pricing_request(scenario, plan), whole_content(plan)))
    splitter.add(piece.ops, static_cast<double>(piece.times));
  return splitter.shares();
}

}  // namespace stagecraft
