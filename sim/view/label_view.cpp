#include "sim/view/label_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "sim/lower/task_names.hpp"

namespace stagecraft {
namespace {

// The category that most of its time is of.
Category main_category(const Label& label) {
  const auto most = std::ranges::max_element(label.parts, {}, &TaskPart::time);
  return most == label.parts.end() ? Category::kOther : static_cast<Category>(most->category);
}

Paint paint_of_pass(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return Paint::kForward;
    case Pass::kWeightGradient:
      return Paint::kWeightGradient;
    case Pass::kRecompute:
      return Paint::kRecompute;
    case Pass::kBackward:
    case Pass::kInputGradient:
      break;
  }
  return Paint::kBackward;
}

Paint paint_of_category(Category category) {
  switch (category) {
    case Category::kForward:
      return Paint::kForward;
    case Category::kBackward:
      return Paint::kBackward;
    case Category::kRecompute:
      return Paint::kRecompute;
    case Category::kPipelineComm:
      return Paint::kMessage;
    case Category::kDataComm:
      return Paint::kDataTraffic;
    case Category::kTensorComm:
    case Category::kContextComm:
    case Category::kExpertComm:
      return Paint::kOtherTraffic;
    case Category::kOptimizer:
      return Paint::kOptimizer;
    case Category::kBubble:
    case Category::kOther:
      return Paint::kOther;
  }
  return Paint::kOther;
}

// requires a pass.
const StageContent& content_of(const Label& label, const ParallelPlan& plan) {
  return plan.stages[static_cast<std::size_t>(label.stage)];
}

void take(ByProvenance& sum, const PassPrice& price) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += price.seconds_by_provenance()[i];
}

void take_units(ByProvenance& sum, const IterationPrices& prices, PassPrice UnitPrice::*which) {
  for (const StagePrice& stage : prices.stages)
    for (const UnitPrice& unit : stage.units) take(sum, unit.*which);
}

void take_buckets(ByProvenance& sum, const IterationPrices& prices,
                  std::vector<std::vector<PassPrice>> RankPrice::*which) {
  for (const RankPrice& rank : prices.ranks)
    for (const std::vector<PassPrice>& chunk : rank.*which)
      for (const PassPrice& bucket : chunk) take(sum, bucket);
}

void take_ranks(ByProvenance& sum, const IterationPrices& prices, PassPrice RankPrice::*which) {
  for (const RankPrice& rank : prices.ranks) take(sum, rank.*which);
}

void take_edges(ByProvenance& sum, const IterationPrices& prices, PassPrice EdgePrice::*which) {
  for (const EdgePrice& edge : prices.edges) take(sum, edge.*which);
}

void take_beside(ByProvenance& sum, BesideTask task, const IterationPrices& prices) {
  switch (task) {
    case BesideTask::kSendForward:
      return take_edges(sum, prices, &EdgePrice::forward);
    case BesideTask::kSendBackward:
      return take_edges(sum, prices, &EdgePrice::backward);
    case BesideTask::kSendNorm:
      return take_ranks(sum, prices, &RankPrice::norm_message);
    case BesideTask::kParameterGather:
      take_buckets(sum, prices, &RankPrice::parameter_buckets);
      return take_units(sum, prices, &UnitPrice::gather);
    case BesideTask::kGradientReduction:
      take_buckets(sum, prices, &RankPrice::gradient_buckets);
      return take_units(sum, prices, &UnitPrice::reduce);
    case BesideTask::kGradientReplication:
      return take_units(sum, prices, &UnitPrice::replicate);
    case BesideTask::kCopySum:
      for (const RankPrice& rank : prices.ranks)
        for (const PassPrice& copy : rank.copies) take(sum, copy);
      return;
    case BesideTask::kEmbeddingSum:
      return take_ranks(sum, prices, &RankPrice::tied_embedding);
    case BesideTask::kGradientNorm:
      return take_ranks(sum, prices, &RankPrice::gradient_norm);
    case BesideTask::kPartialNorm:
      return take_ranks(sum, prices, &RankPrice::partial_norm);
    case BesideTask::kOptimizer:
      return take_ranks(sum, prices, &RankPrice::optimizer);
    case BesideTask::kHost:
      return take(sum, prices.host);
    case BesideTask::kRollback:  // an expected share of an iteration, which the scenario gives
      sum[static_cast<std::size_t>(Provenance::kAssumed)] += 1;
      return;
  }
}

bool carries_activations(const Label& label) {
  const std::optional<BesideTask> task = beside_task(label.name);
  return task == BesideTask::kSendForward || task == BesideTask::kSendBackward;
}

}  // namespace

Paint paint_of(const PackedLabel& packed, const Program& program) {
  if (packed.kind == SliceKind::kBubble) return Paint::kBubble;
  if (packed.kind == SliceKind::kExposed) return Paint::kExposed;
  const Label& label = program.labels[packed.label];
  const std::optional<Pass> pass = pass_of(label);
  return pass ? paint_of_pass(*pass) : paint_of_category(main_category(label));
}

std::string stage_text(const Label& label, const Scenario& scenario, const ParallelPlan& plan) {
  if (!pass_of(label) || plan.stages.empty()) return {};
  if (!std::holds_alternative<TransformerSpec>(scenario.model)) return {};
  const StageContent& content = content_of(label, plan);
  std::vector<std::string> holds;
  if (content.embedding) holds.push_back("embedding");
  std::int64_t first = 0, all = 0;
  for (const StageContent& other : plan.stages) {
    if (&other < &content) first += other.layers.all();
    all += other.layers.all();
  }
  const std::int64_t layers = content.layers.all(), experts = content.layers.with_experts();
  const std::int64_t windows = content.layers.with_window();
  if (layers == 1) holds.push_back(fmt::format("layer {} of {}", first, all));
  if (layers > 1) holds.push_back(fmt::format("layers {}–{} of {}", first, first + layers - 1, all));
  if (experts > 0) holds.push_back(fmt::format("{} with experts", experts));
  if (windows > 0) holds.push_back(fmt::format("{} in a window", windows));
  if (content.mtp_layers > 0)
    holds.push_back(fmt::format("{} of multi-token prediction", content.mtp_layers));
  if (content.head) holds.push_back("head");
  return join(holds, ", ");
}

std::string shape_text(const Label& label, const Scenario& scenario, const ParallelPlan& plan) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr || (!pass_of(label) && !carries_activations(label))) return {};
  const TrainingSpec& training = scenario.training;
  std::string text = fmt::format("s × b × h = {} × {} × {}", training.sequence_length / plan.context,
                                 training.micro_batch_size, model->hidden);
  if (plan.context > 1)
    text += fmt::format(" (s of {} over context {})", training.sequence_length, plan.context);
  if (plan.tensor > 1) text += fmt::format(", on {} tensor ranks", plan.tensor);
  return text + ", " + std::string(kPrecisionNames[static_cast<std::size_t>(training.precision)]);
}

ByProvenance provenance_of(const Label& label, const IterationPrices& prices, const ParallelPlan& plan) {
  ByProvenance sum{};
  if (const std::optional<Pass> pass = pass_of(label); pass && !prices.stages.empty()) {
    const StagePrice& stage = prices.stages[static_cast<std::size_t>(label.stage)];
    take(sum, pass_price(stage, *pass, !content_of(label, plan).recompute_pass));
  } else if (const std::optional<BesideTask> task = beside_task(label.name)) {
    take_beside(sum, *task, prices);
  }
  double all = 0;
  for (const double seconds : sum) all += seconds;
  if (all > 0)
    for (double& seconds : sum) seconds /= all;
  return sum;
}

}  // namespace stagecraft
