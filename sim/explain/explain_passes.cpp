#include "sim/explain/explain_passes.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "models/by_pass.hpp"
#include "sim/explain/explain_operators.hpp"
#include "sim/explain/inputs.hpp"
#include "sim/explain/stage_pieces.hpp"
#include "sim/lower/task_names.hpp"
#include "sim/report/rank_passes.hpp"

namespace stagecraft {
namespace {

// A part of the passes as an order runs it alone, with the key that gives its time to an abstract stage.
struct PricedPass {
  Pass pass;
  std::string_view given;
  PassPrice StagePrice::*price;
  Ops LayerOps::*ops;
};
constexpr ByPass<PricedPass> kPricedPasses = {
    .forward = {Pass::kForward, "model.forward", &StagePrice::forward, &LayerOps::forward},
    .recompute = {Pass::kRecompute, "training.recompute", &StagePrice::recompute, &LayerOps::recompute},
    .input_gradient = {Pass::kInputGradient, "model.input_gradient", &StagePrice::input_gradient,
                       &LayerOps::input_gradient},
    .weight_gradient = {Pass::kWeightGradient, "model.weight_gradient", &StagePrice::weight_gradient,
                        &LayerOps::weight_gradient}};

bool is_compute(Category category) {
  return category == Category::kForward || category == Category::kBackward ||
         category == Category::kRecompute;
}

// "2 all-reduce of 48.0 MiB (tensor)", of all collectives of the list.
std::string collectives_text(const Ops& ops) {
  std::vector<std::string> words;
  static constexpr std::array<std::string_view, 4> kGroups = {"tensor", "context", "expert", "expert-tensor"};
  for (const Op& op : ops) {
    if (op.kind != OpKind::kCollective) continue;
    words.push_back(fmt::format("{} {} of {} ({}{})", op.kernels,
                                kCollectiveNames[static_cast<std::size_t>(op.collective)], human(op.bytes),
                                kGroups[static_cast<std::size_t>(op.group)],
                                op.nodes ? ", once to each node before" : ""));
  }
  return words.empty() ? "launches of kernels" : join(words, ", ") + "; what compute hides is taken off";
}

Duration time_of(const std::vector<Explanation>& inputs) {
  Duration sum{};
  for (const Explanation& input : inputs) sum += input.value.time();
  return sum;
}

// A sum of `inputs` and of the unexplained rest of `whole`.
Explanation sum_with_rest(std::string name, std::vector<Explanation> inputs, Duration whole, Origin rest) {
  if (const Duration sum = time_of(inputs); sum != whole)
    inputs.push_back(leaf("beyond that", whole - sum, std::move(rest)));
  return formula(std::move(name), Operation::kSum, std::move(inputs));
}

// What passes of a rank have in common, and the pieces into which the traffic of buckets cuts them.
struct PassName {
  std::int32_t stage = 0;
  std::string name;
  std::optional<Pass> pass;  // what the name says
  friend auto operator<=>(const PassName&, const PassName&) = default;
};

class PassExplainer {
 public:
  PassExplainer(const Scenario& scenario, const Simulation& simulation, Category category,
                StagePieces& pieces)
      : scenario_(scenario), simulation_(simulation), category_(category), pieces_(pieces) {}

  // One pass of the schedule by what is priced; nullopt where that does not say how long it lasts.
  [[nodiscard]] std::optional<Explanation> whole(const PassName& pass, std::size_t rank) const {
    const StagePlaces places = simulation_.prepared.plan.places();
    for (int copy = 0; copy < places.copies(); ++copy) {
      if (static_cast<std::size_t>(places.rank_of(pass.stage, copy)) !=
          rank % static_cast<std::size_t>(places.ranks))
        continue;
      std::vector<Explanation> inputs = parts(pass.pass, {.stage = pass.stage, .copy = copy});
      if (!inputs.empty()) return formula(name_of_one(pass), Operation::kSum, std::move(inputs));
    }
    return std::nullopt;
  }

  // One task of that name, which has `nominal` of the category.
  [[nodiscard]] Explanation task(const PassName& pass, Duration nominal) const {
    if (std::holds_alternative<StagesSpec>(scenario_.model))
      return leaf(name_of_one(pass), nominal, key_origin(scenario_, "model"));
    return leaf(name_of_one(pass), nominal,
                {.kind = OriginKind::kPrice,
                 .text = "the pass as it is priced, or a piece of it between the traffic of two buckets"});
  }

 private:
  [[nodiscard]] static std::string name_of_one(const PassName& pass) {
    return fmt::format("one {} of stage {}", pass.name, pass.stage);
  }

  // The priced passes that the pass is made of; a backward repeats the forward unless the order has a pass
  // for that.
  [[nodiscard]] std::vector<Explanation> parts(std::optional<Pass> pass, HeldStage held) const {
    if (!pass) return {};
    const StagePrice& price =
        simulation_.prices.stages[simulation_.prepared.schedule.places().index_of(held.stage, held.copy)];
    const bool apart = simulation_.prepared.plan.stages[static_cast<std::size_t>(held.stage)].recompute_pass;
    std::vector<Explanation> inputs;
    for_each_part(kPricedPasses, *pass, !apart, [&](const PricedPass& part) {
      const Duration time = (price.*part.price).of(category_);
      if (time > Duration::zero()) inputs.push_back(priced_pass(part, held, time));
    });
    const Duration unhidden = price.unhidden.of(category_);
    if (pass == Pass::kInputGradient && unhidden > Duration::zero())
      inputs.push_back(leaf("reductions that its weight gradient would hide", unhidden,
                            {.kind = OriginKind::kPrice, .text = "the weight gradient is put aside"}));
    return inputs;
  }

  [[nodiscard]] Explanation priced_pass(const PricedPass& part, HeldStage held, Duration time) const {
    const std::string name = fmt::format("{} of stage {}", word_of(part.pass), held.stage);
    if (!std::holds_alternative<TransformerSpec>(scenario_.model))
      return leaf(name, time, key_origin(scenario_, std::string(part.given)));
    std::vector<Explanation> inputs;
    for (const StagePiece& piece : pieces_.of(held)) {
      if ((piece.price.*part.price).of(category_) == Duration::zero()) continue;
      inputs.push_back(
          formula(piece.all, Operation::kProduct,
                  {leaf("times", Amount::count(piece.times),
                        {.kind = OriginKind::kModel, .text = "of the stage, as its layers are split"}),
                   one_piece(piece, part)}));
    }
    return sum_with_rest(name, std::move(inputs), time,
                         {.kind = OriginKind::kPrice, .text = "offload, waiting for the host"});
  }

  // Extra time of the slowest GPU over the mean one.
  [[nodiscard]] Explanation slowest_gpu(const std::vector<Explanation>& operators) const {
    const Duration mean = time_of(operators);
    const int gpus = simulation_.prepared.plan.gpus();
    const Sourced<double>& variability = *scenario_.profile->gpu_variability;
    return leaf(fmt::format("the slowest of {} GPUs", gpus),
                from_seconds(to_seconds(mean) * scenario_.profile->slowest_of(gpus)),
                profile_origin(*scenario_.profile, variability.provenance, variability.source));
  }

  [[nodiscard]] Explanation one_piece(const StagePiece& piece, const PricedPass& part) const {
    const Duration time = (piece.price.*part.price).of(category_);
    const Ops& ops = piece.ops.*part.ops;
    const std::string name = "one " + piece.name;
    if (!is_compute(category_))
      return leaf(name, time, {.kind = OriginKind::kPrice, .text = collectives_text(ops)});
    std::vector<Explanation> inputs;
    for (const Op& op : ops)
      if (op.kind != OpKind::kCollective)
        inputs.push_back(explain_operator(*scenario_.profile, scenario_.training.precision, op));
    if (scenario_.profile->slowest_of(simulation_.prepared.plan.gpus()) > 0)
      inputs.push_back(slowest_gpu(inputs));
    return sum_with_rest(name, std::move(inputs), time,
                         {.kind = OriginKind::kPrice, .text = "what the operators do not explain"});
  }

  const Scenario& scenario_;
  const Simulation& simulation_;
  Category category_;
  StagePieces& pieces_;
};

Duration part_of(const std::vector<TaskPart>& parts, Category category) {
  Duration time{};
  for (const TaskPart& part : parts)
    if (part.category == static_cast<std::int32_t>(category)) time += part.time;
  return time;
}

struct Alike {
  std::int64_t count = 0;
  Duration longer{};  // extra time of all together over nominal
};

// Tasks of one name by the time of the category that each has in its label.
using Tasks = std::map<Duration, Alike>;

std::map<PassName, Tasks> passes_by_name(const Simulation& simulation, RankPart part) {
  const Program& program = simulation.program;
  std::map<PassName, Tasks> passes;
  for (std::uint32_t r = 0; r < program.resources.size(); ++r) {
    const Resource& resource = program.resources[ResourceId(r)];
    if (resource.kind != ResourceKind::kStream || static_cast<std::size_t>(resource.rank) != part.rank)
      continue;
    for (std::uint32_t t = program.resource_begin[r]; t < program.resource_begin[r + 1]; ++t) {
      const TaskId task(t);
      if (!is_pass(program, task)) continue;
      const Label& label = program.labels[program.label[task]];
      const Duration nominal = part_of(label.parts, part.category);
      const Duration actual = part_of(parts_of(program, simulation.timeline, task), part.category);
      if (nominal == Duration::zero() && actual == Duration::zero()) continue;
      Alike& alike = passes[{.stage = label.stage, .name = label.name, .pass = pass_of(label)}][nominal];
      ++alike.count;
      alike.longer += actual - nominal;
    }
  }
  return passes;
}

Duration longer_of(const std::map<PassName, Tasks>& passes) {
  Duration longer{};
  for (const auto& [pass, tasks] : passes)
    for (const auto& [nominal, alike] : tasks) longer += alike.longer;
  return longer;
}

Explanation product_of(const PassName& pass, std::int64_t count, std::string where, Explanation one) {
  Explanation passes =
      leaf("passes", Amount::count(count), {.kind = OriginKind::kSimulation, .text = std::move(where)});
  return formula(fmt::format("{} passes of stage {}", pass.name, pass.stage), Operation::kProduct,
                 {std::move(passes), std::move(one)});
}

// Whole passes times one of them, where the pieces of those that are cut add up to some; else task by task.
void add_passes(std::vector<Explanation>& inputs, const PassExplainer& explainer, const PassName& pass,
                const Tasks& tasks, std::size_t rank) {
  std::string where = fmt::format("{} of stage {} on rank {}", pass.name, pass.stage, rank);
  Duration all{};
  std::int64_t count = 0;
  for (const auto& [nominal, alike] : tasks) {
    all += nominal * alike.count;
    count += alike.count;
  }
  std::optional<Explanation> whole = explainer.whole(pass, rank);
  if (!whole || all % whole->value.time() != Duration::zero()) {
    for (const auto& [nominal, alike] : tasks) {
      const bool is_whole = whole && whole->value.time() == nominal;
      inputs.push_back(
          product_of(pass, alike.count, where, is_whole ? *whole : explainer.task(pass, nominal)));
    }
    return;
  }
  const std::int64_t passes = all / whole->value.time();
  const auto uncut = tasks.find(whole->value.time());
  const std::int64_t whole_ones = uncut != tasks.end() ? uncut->second.count : 0;
  if (passes > whole_ones)
    where += fmt::format(", {} of them in {} pieces between the traffic of buckets", passes - whole_ones,
                         count - whole_ones);
  inputs.push_back(product_of(pass, passes, std::move(where), *std::move(whole)));
}

}  // namespace

Duration longer_than_priced(const Simulation& simulation, RankPart part) {
  return longer_of(passes_by_name(simulation, part));
}

std::optional<Explanation> explain_passes(const Scenario& scenario, const Simulation& simulation,
                                          RankPart part, StagePieces& pieces) {
  const auto [rank, category] = part;
  const PassExplainer explainer(scenario, simulation, category, pieces);
  const std::map<PassName, Tasks> passes = passes_by_name(simulation, part);
  std::vector<Explanation> inputs;
  for (const auto& [pass, tasks] : passes) add_passes(inputs, explainer, pass, tasks, rank);
  if (const Duration longer = longer_of(passes); longer != Duration::zero())
    inputs.push_back(leaf("longer than priced", longer,
                          {.kind = OriginKind::kSimulation,
                           .text = "passes that shared links, or computed beside other traffic"}));
  if (inputs.empty()) return std::nullopt;
  return formula(fmt::format("passes of rank {}", rank), Operation::kSum, std::move(inputs));
}

}  // namespace stagecraft
