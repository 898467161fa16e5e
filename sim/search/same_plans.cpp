#include "sim/search/same_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "sim/scenario/no_effect.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/search/frames.hpp"
#include "topology/rank_mesh.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kIdle = -1;  // in place of the number of a value
constexpr double kIdleSwitch = -1;  // in place of a share
constexpr std::string_view kOrderPath = "parallelism.order";

// A group that does not divide the replicas is refused even where it shards nothing, so that it is not the same
// plan.
constexpr std::string_view kGroupPath = "parallelism.zero_group";

bool may_be_idle(const SearchAxis& axis) {
  return (switch_at(axis.path) || !set_in_place(axis)) && !axis.path.starts_with("cluster.") &&
         axis.path != kGroupPath;
}

// Keys of the even split, which are refused beside a split of its own, of one stage as well.
bool goes_without_split(const std::string& path) {
  return path == "parallelism.embedding_as_layer" || path == "parallelism.loss_as_layer";
}

bool is_of_schedule(const std::string& path) {
  return path == "schedule" || path.starts_with("schedule.");
}

// All that a schedule means for one stage, but its name; empty where that depends on the costs, or it takes no
// such plan.
std::string one_stage_text(const Scenario& scenario, std::int64_t micro_batches) {
  const ScheduleSpec& spec = scenario.schedule;
  const ScheduleKind* kind = scenario.order ? nullptr : find_schedule(spec.name);
  const PipelineShape shape{.micro_batches = static_cast<int>(micro_batches),
                            .group = spec.micro_batch_group};
  if (kind == nullptr || kind->to_measure || kind->constraint(shape)) return "";
  std::string text = fmt::format("{} {} {} {} {} {} {} {}", spec.global_step, spec.rollback, spec.iterations,
                                 spec.fused_share.value_or(-1), kind->flush, kind->weight_versions,
                                 kind->kept_beside, kind->fused_pairs);
  const Schedule order = generate(*kind, shape);
  for (const Action& action : order.ranks.front()) text += (action.fused ? " +" : " ") + to_string(action);
  return text;
}

std::string text_of(std::span<const SearchFrame> kinds) {
  std::string text;
  for (const SearchFrame& frame : kinds) text += to_yaml(frame.scenario) + "\n";
  return text;
}

// The axes of more than one rank in their order, as one number.
std::int64_t order_code(const Scenario& scenario, const SearchPoint& point) {
  const std::array<int, kAxisCount> degrees = {point.tensor, point.context, point.expert, point.data,
                                               point.pipeline};
  std::int64_t code = 0;
  for (const Axis axis : scenario.parallelism.order) {
    const auto number = static_cast<std::size_t>(axis);
    if (degrees[number] > 1) code = code * 10 + static_cast<std::int64_t>(number) + 1;
  }
  return code;
}

}  // namespace

SamePlans::SamePlans(const SearchSpace& space, const std::vector<SearchFrame>& frames)
    : space_(space), frames_(frames) {
  for (const SearchAxis& axis : space.axes)
    if (!axis.usual && may_be_idle(axis)) asked_.push_back(&axis);
  std::set<std::string> texts;
  for (std::uint32_t first = 0; first < frames.size(); first += kFrameKinds)
    if (!texts.insert(text_of(std::span(frames).subspan(first, kFrameKinds))).second) repeated_.insert(first);
}

bool SamePlans::is_new(const SearchPoint& point) {
  if (asked_.empty()) return true;
  const IdleKeys idle = idle_keys(point);
  Identity plan{.choices = {}, .point = point};
  plan.point.frame %= kFrameKinds;
  const std::size_t choice = frames_[point.frame].choice;
  bool alone = true;
  const auto order = order_of_one_stage(point);
  for (const SearchAxis& axis : space_.axes) {
    if (set_in_place(axis)) continue;
    const bool is_order = axis.path == kOrderPath, is_schedule = order && is_of_schedule(axis.path);
    alone = alone && !is_order && !is_schedule;
    if (is_order)
      plan.choices.push_back(order_code(frames_[point.frame].scenario, point));
    else if (is_schedule)
      plan.choices.push_back(*order);
    else
      plan.choices.push_back(idle.contains(axis.path)
                                 ? kIdle
                                 : static_cast<std::int64_t>(value_in_choice(space_, axis, choice)));
  }
  for (std::size_t i = 0; i < kPointSwitches; ++i)
    if (idle.contains(point_switches()[i].path)) plan.point.switches[i] = kIdleSwitch;
  if (alone && idle.empty()) return true;
  return known_.insert(std::move(plan)).second;
}

// The number of the order; nullopt of several stages, and where it is like no other.
std::optional<std::int64_t> SamePlans::order_of_one_stage(const SearchPoint& point) {
  const std::int64_t at_once = std::int64_t{point.data} * point.micro_batch;
  const bool one_stage = point.pipeline == 1 && point.virtual_stages == 1;
  if (!one_stage || point.global_batch % at_once != 0) return std::nullopt;
  const std::int64_t micro_batches = point.global_batch / at_once;
  const auto [known, is_new] =
      orders_of_one_stage_.emplace(std::pair(point.frame, micro_batches), std::nullopt);
  if (!is_new) return known->second;
  const std::string text = one_stage_text(frames_[point.frame].scenario, micro_batches);
  if (!text.empty())
    known->second = orders_.emplace(text, static_cast<std::int64_t>(orders_.size())).first->second;
  return known->second;
}

// The keys that are asked for and have no effect at this point.
SamePlans::IdleKeys SamePlans::idle_keys(const SearchPoint& point) {
  auto known = scenarios_.find(point.frame);
  if (known == scenarios_.end()) {
    known = scenarios_.emplace(point.frame, frames_[point.frame].scenario).first;
    for (const SearchAxis* axis : asked_) known->second.origins.emplace(axis->path, axis->where);
  }
  fill_in(point, known->second);
  IdleKeys idle;
  for (const Diagnostic& said : keys_without_effect(known->second)) {
    const bool asked = std::ranges::find(asked_, said.path, &SearchAxis::path) != asked_.end();
    const bool refused = goes_without_split(said.path) && !point.stage_layers.empty();
    if (said.code == "no-effect" && asked && !refused) idle.insert(said.path);
  }
  return idle;
}

}  // namespace stagecraft
