#include "sim/accuracy/measurement_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "calibrate/fit/gemm_fit.hpp"
#include "models/operators.hpp"
#include "sim/lower/prices.hpp"
#include "sim/price_iteration.hpp"
#include "sim/scenario/device_modes.hpp"
#include "sim/shaped_operators.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {
namespace {

// Points by the key of their sample; `value`: seconds of an iteration of one GPU that depend on it.
using Wanted = std::map<std::string, WantedPoint>;

// Gradients are e5m2, as in the GPU suite.
std::string dtype_of(Precision precision, bool backward) {
  if (precision == Precision::kFp32) return "tf32";
  if (precision == Precision::kFp8) return backward ? "e5m2" : "e4m3";
  return std::string(kPrecisionNames[static_cast<std::size_t>(precision)]);
}

// cuBLASLt supports fp8 in one layout only: operands are transposed during the cast.
Sample gemm_sample(const Op& op, Precision precision) {
  Sample sample;
  sample.family = sample.op = "gemm";
  sample.shape = {{"m", op.gemm.m}, {"n", op.gemm.n}, {"k", op.gemm.k}, {"batch", op.gemm.batch}};
  const GemmLayout layout = precision == Precision::kFp8 ? GemmLayout::kTN : op.gemm.layout;
  sample.tags = {{"dtype", dtype_of(precision, op.gemm.layout != GemmLayout::kTN)},
                 {"layout", std::string(kGemmLayoutNames[static_cast<std::size_t>(layout)])}};
  if (op.kind == OpKind::kGroupedGemm) sample.tags["grouped"] = "strided";
  return sample;
}

// Heads are those of the op: tensor ranks and an exchange of heads over context ranks leave a part of the
// model's. The suite measures squares with one head size, in 16 bit: of blocks of a context ring and of latent
// attention that of their keys and values, whose length and size their price is of.
Sample attention_sample(const Op& op, std::int64_t length, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t heads = op.attention.batch / shard.micro_batch;
  const Precision precision = shard.precision == Precision::kFp8 ? Precision::kBf16 : shard.precision;
  Sample sample;
  sample.family = "attention";
  sample.op = op.kind == OpKind::kFlashForward ? "flash_forward" : "flash_backward";
  sample.shape = {{"batch", shard.micro_batch},
                  {"heads", heads},
                  {"kv_heads", std::max<std::int64_t>(heads * model.kv_heads / model.heads, 1)},
                  {"head_size", op.attention.value_size},
                  {"sequence", length}};
  sample.tags = {{"dtype", dtype_of(precision, false)}, {"causal", op.attention.causal ? "true" : "false"}};
  return sample;
}

class ShapePlanner {
 public:
  ShapePlanner(const HardwareProfile& profile, const Scenario& scenario, const TransformerSpec& model,
               const ParallelPlan& plan)
      : profile_(profile), model_(model), plan_(plan), request_(pricing_request(scenario, plan)) {}

  // Published rows are included, because a fitted table replaces the published one; and measured ones, where
  // it replaces them for the sake of one that is not.
  void add_to(Wanted& wanted) const {
    const std::vector<ShapedOperator> operators = shaped_operators(model_, plan_, request_, profile_);
    const auto is_unmeasured = [](const ShapedOperator& shaped) {
      return shaped.cost.provenance != Provenance::kMeasured;
    };
    const bool new_table = std::ranges::any_of(operators, [&](const ShapedOperator& shaped) {
      return shaped.op.kind == OpKind::kGemm && is_unmeasured(shaped);
    });
    for (const ShapedOperator& shaped : operators)
      if (is_unmeasured(shaped) || (new_table && shaped.op.kind == OpKind::kGemm))
        add(shaped.op, shaped.times * to_seconds(shaped.cost.time), wanted);
  }

 private:
  void add(const Op& op, double seconds, Wanted& wanted) const {
    if (op.kind != OpKind::kFlashForward && op.kind != OpKind::kFlashBackward)
      return add(gemm_sample(op, op.precision.value_or(request_.shard.precision)), seconds, wanted);
    if (op.attention.window > 0) return;  // the suite has no windows; their price is of the curve
    if (op.attention.operands != FlashOperands::kSixteenBit) return;  // nor attention in fp8
    // A curve is fitted to three lengths; all have a part in the price.
    for (const std::int64_t part : {1, 2, 4})
      add(attention_sample(op, std::max<std::int64_t>(op.attention.keys / part, 1), model_, request_.shard),
          seconds / 3, wanted);
  }

  static void add(Sample sample, double seconds, Wanted& wanted) {
    const std::string key = sample_key(sample);
    WantedPoint& entry =
        wanted.try_emplace(key, WantedPoint{.point = std::move(sample), .value = 0}).first->second;
    entry.value += seconds;
  }

  const HardwareProfile& profile_;
  const TransformerSpec& model_;
  const ParallelPlan& plan_;
  PricingRequest request_;
};

// A row of the table that a fit makes (calibrate/fit/gemm_samples.hpp): a GEMM in 16 bit, alone.
bool is_table_row(const WantedPoint& wanted) {
  const Sample& sample = wanted.point;
  const std::string& dtype = sample.tags.at("dtype");
  return sample.family == "gemm" && !sample.tags.contains("grouped") && sample.shape.at("batch") == 1 &&
         (dtype == "bf16" || dtype == "fp16");
}

// A part of the tokens of a GEMM: rows of the result, or what a weight gradient sums over.
WantedPoint of_fewer_tokens(WantedPoint wanted, std::int64_t part) {
  std::int64_t& tokens = wanted.point.shape.at(wanted.point.tags.at("layout") == "NT" ? "k" : "m");
  tokens = std::max<std::int64_t>(tokens / part, 1);
  wanted.value = 0;  // no iteration has it
  return wanted;
}

// Where a scenario has fewer shapes than a table needs, they are wanted for fewer tokens too, as attention is
// at shorter lengths.
void add_fewer_tokens(Wanted& wanted) {
  std::vector<WantedPoint> rows;
  for (const auto& [key, point] : wanted)
    if (is_table_row(point)) rows.push_back(point);
  std::size_t count = rows.size();
  constexpr std::int64_t kLeastPart = 4096;
  for (std::int64_t part = 2; part <= kLeastPart && count < kMinGemmPoints; part *= 2) {
    for (const WantedPoint& row : rows) {
      WantedPoint fewer = of_fewer_tokens(row, part);
      const std::string key = sample_key(fewer.point);
      if (count < kMinGemmPoints && wanted.try_emplace(key, std::move(fewer)).second) ++count;
    }
  }
}

}  // namespace

void MeasurementPlan::add(const Scenario& scenario, Diagnostics& diagnostics) {
  const std::optional<Prepared> prepared = prepare(scenario, diagnostics);
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (!prepared || model == nullptr) return;
  for (const HardwareProfile* profile : profiles_of(scenario))
    ShapePlanner(*profile, scenario, *model, prepared->plan).add_to(wanted_);
}

std::vector<WantedPoint> MeasurementPlan::points() const {
  std::vector<WantedPoint> points;
  double total = 0;
  Wanted wanted = wanted_;
  add_fewer_tokens(wanted);
  for (const auto& [key, point] : wanted) {
    points.push_back(point);
    total += point.value;
  }
  std::ranges::stable_sort(points, std::ranges::greater(), &WantedPoint::value);
  for (WantedPoint& point : points) point.value = 100 * point.value / total;
  return points;
}

}  // namespace stagecraft
