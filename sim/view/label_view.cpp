#include "sim/view/label_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "sim/schedule/notation.hpp"

namespace stagecraft {
namespace {

bool is_pass(const Label& label) {
  return label.stage >= 0 && label.name.size() == 1;
}

// The category that most of its time is of.
Category main_category(const Label& label) {
  const auto most = std::max_element(label.parts.begin(), label.parts.end(),
                                     [](const TaskPart& a, const TaskPart& b) { return a.time < b.time; });
  return most == label.parts.end() ? Category::kOther : static_cast<Category>(most->category);
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

// Global stages count through both copies where there are two.
const StageContent& content_of(const Label& label, const ParallelPlan& plan) {
  return plan.stages[static_cast<std::size_t>(label.stage) % plan.stages.size()];
}

using Seconds = std::array<double, 5>;

void take(Seconds& sum, const PassPrice& price) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += price.seconds_by_provenance()[i];
}

void take_units(Seconds& sum, const IterationPrices& prices, PassPrice UnitPrice::*which) {
  for (const StagePrice& stage : prices.stages)
    for (const UnitPrice& unit : stage.units) take(sum, unit.*which);
}

void take_buckets(Seconds& sum, const IterationPrices& prices,
                  std::vector<std::vector<PassPrice>> RankPrice::*which) {
  for (const RankPrice& rank : prices.ranks)
    for (const std::vector<PassPrice>& chunk : rank.*which)
      for (const PassPrice& bucket : chunk) take(sum, bucket);
}

void take_tail(Seconds& sum, const std::string& name, const IterationPrices& prices) {
  if (name == "host") take(sum, prices.host);
  for (const RankPrice& rank : prices.ranks) {
    if (name == "optimizer") take(sum, rank.optimizer);
    if (name == "gradient norm") take(sum, rank.gradient_norm);
    if (name == "embedding all-reduce") take(sum, rank.tied_embedding);
    if (name == "sum of both copies")
      for (const PassPrice& copy : rank.copies) take(sum, copy);
  }
}

}  // namespace

Paint paint_of(const PackedLabel& packed, const Program& program) {
  if (packed.kind == SliceKind::kBubble) return Paint::kBubble;
  if (packed.kind == SliceKind::kExposed) return Paint::kExposed;
  const Label& label = program.labels[packed.label];
  if (!is_pass(label)) return paint_of_category(main_category(label));
  switch (label.name.front()) {
    case 'F':
      return Paint::kForward;
    case 'W':
      return Paint::kWeightGradient;
    case 'R':
      return Paint::kRecompute;
    default:
      return Paint::kBackward;
  }
}

std::string stage_text(const Label& label, const Scenario& scenario, const ParallelPlan& plan) {
  if (!is_pass(label) || plan.stages.empty()) return {};
  if (!std::holds_alternative<TransformerSpec>(scenario.model)) return {};
  const StageContent& content = content_of(label, plan);
  std::vector<std::string> holds;
  if (content.embedding) holds.push_back("embedding");
  std::int64_t first = 0, all = 0;
  for (const StageContent& other : plan.stages) {
    if (&other < &content) first += other.layers;
    all += other.layers;
  }
  if (content.layers == 1) holds.push_back(fmt::format("layer {} of {}", first, all));
  if (content.layers > 1)
    holds.push_back(fmt::format("layers {}–{} of {}", first, first + content.layers - 1, all));
  if (content.expert_layers > 0) holds.push_back(fmt::format("{} with experts", content.expert_layers));
  if (content.mtp_layers > 0)
    holds.push_back(fmt::format("{} of multi-token prediction", content.mtp_layers));
  if (content.head) holds.push_back("head");
  return join(holds, ", ");
}

std::string shape_text(const Label& label, const Scenario& scenario, const ParallelPlan& plan) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  const bool message = label.name.starts_with("send");
  if (model == nullptr || (!is_pass(label) && !message)) return {};
  const TrainingSpec& training = scenario.training;
  std::string text = fmt::format("s × b × h = {} × {} × {}", training.sequence_length / plan.context,
                                 training.micro_batch_size, model->hidden);
  if (plan.context > 1)
    text += fmt::format(" (s of {} over context {})", training.sequence_length, plan.context);
  if (plan.tensor > 1) text += fmt::format(", on {} tensor ranks", plan.tensor);
  return text + ", " + std::string(kPrecisionNames[static_cast<std::size_t>(training.precision)]);
}

std::array<double, 5> provenance_of(const Label& label, const IterationPrices& prices,
                                    const ParallelPlan& plan) {
  Seconds sum{};
  if (const std::optional<Pass> pass = is_pass(label) ? pass_of(label.name.front()) : std::nullopt;
      pass && !prices.stages.empty()) {
    const StagePrice& stage = prices.stages[static_cast<std::size_t>(label.stage) % prices.stages.size()];
    take(sum, pass_price(stage, *pass, !content_of(label, plan).recompute_pass));
  } else if (label.name.starts_with("send")) {
    for (const EdgePrice& edge : prices.edges)
      take(sum, label.name == "send backward" ? edge.backward : edge.forward);
  } else if (label.name == "gradient reduction") {
    take_buckets(sum, prices, &RankPrice::gradient_buckets);
    take_units(sum, prices, &UnitPrice::reduce);
  } else if (label.name == "parameter gather") {
    take_buckets(sum, prices, &RankPrice::parameter_buckets);
    take_units(sum, prices, &UnitPrice::gather);
  } else {
    take_tail(sum, label.name, prices);
  }
  double all = 0;
  for (const double seconds : sum) all += seconds;
  if (all > 0)
    for (double& seconds : sum) seconds /= all;
  return sum;
}

}  // namespace stagecraft
