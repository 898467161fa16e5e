#include "sim/shaped_operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <variant>

#include "sim/lower/stage_operators.hpp"
#include "sim/price_iteration.hpp"
#include "sim/scenario/device_modes.hpp"

namespace stagecraft {
namespace {

bool has_shape(const Op& op) {
  switch (op.kind) {
    case OpKind::kGemm:
    case OpKind::kBatchedGemm:
    case OpKind::kGroupedGemm:
    case OpKind::kFlashForward:
    case OpKind::kFlashBackward:
      return true;
    default:
      return false;  // memory kernels have a rate, and collectives fits
  }
}

std::string text_of(const Op& op, Precision precision) {
  const std::string_view in = kPrecisionNames[static_cast<std::size_t>(op.precision.value_or(precision))];
  if (op.kind == OpKind::kFlashForward || op.kind == OpKind::kFlashBackward)
    return fmt::format(
        "flash {} {} x {} x {} of {}{}", op.kind == OpKind::kFlashForward ? "forward" : "backward",
        op.attention.batch, op.attention.queries, op.attention.keys, op.attention.query_size,
        op.attention.operands == FlashOperands::kSixteenBit
            ? ""
            : fmt::format(" in {}", kFlashOperandNames[static_cast<std::size_t>(op.attention.operands)]));
  const std::string several = op.gemm.batch == 1 ? "" : fmt::format("{} of ", op.gemm.batch);
  return fmt::format("{}{} {}{}", several, shape_text(op.gemm), in,
                     op.kind == OpKind::kGroupedGemm ? " grouped" : "");
}

}  // namespace

std::vector<ShapedOperator> shaped_operators(const TransformerSpec& model, const ParallelPlan& plan,
                                             const PricingRequest& request, const HardwareProfile& profile) {
  const double times = static_cast<double>(plan.micro_batches) / plan.pipeline;
  const Precision precision = request.shard.precision;
  std::vector<ShapedOperator> found;
  for (const CountedOps& piece : stage_operators(model, request, whole_content(plan))) {
    for (const Ops* pass : piece.ops.each())
      for (const Op& op : *pass)
        if (has_shape(op))
          found.push_back({.op = op,
                           .cost = compute_cost(profile, precision, op),
                           .times = static_cast<double>(piece.times) * times});
  }
  return found;
}

std::string shape_text(const GemmShape& shape) {
  return fmt::format("{} x {} x {} {}", shape.m, shape.n, shape.k,
                     kGemmLayoutNames[static_cast<std::size_t>(shape.layout)]);
}

std::vector<ShapeReport> priced_shapes(const Scenario& scenario, const ParallelPlan& plan) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr) return {};
  const PricingRequest request = pricing_request(scenario, plan);
  const std::vector<const HardwareProfile*> profiles = profiles_of(scenario);
  std::map<std::pair<std::string, Provenance>, double> seconds;
  double total = 0;
  for (const HardwareProfile* profile : profiles)
    for (const ShapedOperator& shaped : shaped_operators(*model, plan, request, *profile)) {
      std::string text = text_of(shaped.op, scenario.training.precision);
      if (profiles.size() > 1) text += " on " + profile->name;
      const double time = shaped.times * to_seconds(shaped.cost.time);
      seconds[{std::move(text), shaped.cost.provenance}] += time;
      total += time;
    }
  std::vector<ShapeReport> shapes;
  for (const auto& [shape, time] : seconds)
    shapes.push_back({.shape = shape.first, .provenance = shape.second, .share = time / total});
  std::ranges::stable_sort(shapes, std::ranges::greater(), &ShapeReport::share);
  return shapes;
}

}  // namespace stagecraft
