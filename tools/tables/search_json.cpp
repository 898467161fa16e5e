#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/yaml_json.hpp"
#include "sim/search/frames.hpp"
#include "sim/search/plan_figures.hpp"
#include "tools/tables/search_columns.hpp"
#include "tools/tables/search_table.hpp"

namespace stagecraft {
namespace {

constexpr const char* kChunksPath = "parallelism.virtual_stages";

class SearchJson {
 public:
  explicit SearchJson(const SearchAnswer& answer)
      : answer_(answer), plans_(answer), figures_(answer.plans, answer.space.price) {}

  [[nodiscard]] std::string render() {
    const SearchResult& result = answer_.result;
    json_.begin_object().field("schema", "stagecraft.search/1").field("scenario", answer_.file);
    json_.field("plans", answer_.plans.points.size()).field("placed", result.placed);
    json_.field("fitting", result.fitting).field("bounded", result.bounded);
    json_.field("simulated", result.ranked.size()).field("exhaustive", answer_.exhaustive);
    write_space();
    write_refusals(result.refusals);
    write_refused_values();
    write_left_aside();
    json_.field("kept", answer_.space.kept);
    write_dropped();
    write_unused();
    write_plans("ranked", first_plans(result.ranked, answer_.top));
    write_plans("pareto", result.pareto);
    write_scaling();
    json_.end_object();
    return json_.str();
  }

 private:
  void write_space() {
    json_.key("space").begin_object();
    for (const SearchAxis& axis : answer_.space.axes) {
      json_.key(axis.path);
      if (axis.all()) {
        json_.begin_object().field("all", true).field("at_most", axis.at_most);
        json_.field("tokens_each", axis.tokens_each).end_object();
        continue;
      }
      json_.begin_array();
      for (const YamlNode& value : axis.values) write_json(json_, value);
      json_.end_array();
    }
    json_.end_object();
  }

  void write_refusals(const std::vector<SearchRefusal>& refusals) {
    json_.key("rejected").begin_array();
    for (const SearchRefusal& refusal : refusals) {
      json_.begin_object().field("code", refusal.code);
      json_.field("path", refusal.path).field("count", refusal.count);
      json_.field("example", refusal.message).field("hint", refusal.hint);
      write_plan("plan", refusal.point);
      json_.end_object();
    }
    json_.end_array();
  }

  void write_refused_values() {
    json_.key("refused_values").begin_array();
    for (const RefusedChoices& refused : answer_.plans.refused) {
      json_.begin_object().field("code", refused.reason.code).field("path", refused.reason.path);
      json_.field("choices", refused.count).field("example", refused.reason.message);
      json_.field("hint", refused.reason.hint).key("values").begin_object();
      for (const SearchAxis& axis : answer_.space.axes)
        if (!set_in_place(axis))
          write_json(json_.key(axis.path), axis.values[value_in_choice(answer_.space, axis, refused.choice)]);
      json_.end_object().end_object();
    }
    json_.end_array();
  }

  void write_left_aside() {
    json_.key("left_aside").begin_array();
    for (const LeftAside& aside : orders_left_aside(answer_.plans)) {
      json_.begin_object().field("software", aside.software);
      json_.field("schedules", aside.orders).field("plans", aside.plans).end_object();
    }
    json_.end_array();
  }

  void write_dropped() {
    json_.key("dropped").begin_array();
    if (answer_.plans.without_own_layers > 0) {
      json_.begin_object().field("path", kLayersPath).key("value");
      write_numbers(plans_.own_layers());
      json_.field("plans", answer_.plans.without_own_layers).end_object();
    }
    json_.end_array();
  }

  void write_unused() {
    json_.key("unused").begin_array();
    for (const UnusedDegree& unused : answer_.plans.unused)
      json_.begin_object().field("path", unused.path).field("value", unused.value).end_object();
    json_.end_array();
  }

  void write_numbers(const std::vector<std::int64_t>& numbers) {
    numbers.empty() ? json_.null() : json_.value(numbers);
  }

  // Numbers of GPUs are no axis of the space.
  void write_nodes(std::size_t point) {
    if (answer_.space.gpus.empty()) return;
    const ClusterSpec& cluster = *answer_.plans.frames[answer_.plans.points[point].frame].scenario.cluster;
    const bool part = cluster.gpus_used > 0;
    json_.key("cluster.nodes");
    part ? json_.null() : json_.value(cluster.groups.front().count);
    json_.key("cluster.gpus");
    part ? json_.value(cluster.gpus_used) : json_.null();
  }

  // Chunks of abstract stages that nobody counts are the order's: where they were written, each would cost what
  // the scenario says of a rank.
  [[nodiscard]] bool follows_order(std::size_t point) const {
    const Scenario& scenario = answer_.plans.frames[answer_.plans.points[point].frame].scenario;
    return std::holds_alternative<StagesSpec>(scenario.model) && !scenario.origins.contains(kChunksPath);
  }

  // A whole comes before its parts, which overrule it.
  void write_plan(const char* key, std::size_t point) {
    json_.key(key).begin_object();
    write_nodes(point);
    std::vector<PlanCell> cells = plans_.cells(point);
    std::ranges::stable_sort(cells, std::ranges::less(),
                             [](const PlanCell& cell) { return std::ranges::count(cell.path, '.'); });
    for (const PlanCell& cell : cells) {
      if (cell.path == kChunksPath && follows_order(point)) continue;
      json_.key(cell.path);
      const auto number = parse_number(cell.value);
      if (cell.node != nullptr)
        write_json(json_, *cell.node);
      else if (cell.numbers != nullptr)
        write_numbers(*cell.numbers);
      else if (cell.text || (!number && cell.value != "true" && cell.value != "false"))
        json_.value(cell.value);
      else if (!number)
        json_.value(cell.value == "true");
      else if (const auto whole = parse_integer(cell.value))
        json_.value(*whole);
      else
        json_.value(*number);
    }
    json_.end_object();
  }

  void write_plans(const char* key, const std::vector<RankedPlan>& plans) {
    json_.key(key).begin_array();
    for (const RankedPlan& plan : plans) write_ranked(plan);
    json_.end_array();
  }

  // Of the numbers of GPUs that were asked for also those without a plan, with the reasons.
  void write_scaling() {
    json_.key("scaling").begin_array();
    for (const RankedPlan& plan : best_by_gpus(answer_.plans, answer_.result.ranked)) write_ranked(plan);
    for (const GpusWithoutPlan& without : planless(answer_)) {
      json_.begin_object().field("gpus", without.gpus).key("plan").null();
      write_refusals(without.refusals);
      json_.end_object();
    }
    json_.end_array();
  }

  void write_ranked(const RankedPlan& plan) {
    const int gpus = plans_.point(plan).gpus();
    json_.begin_object().field("gpus", gpus);
    write_plan("plan", plan.point);
    json_.field("iteration_time_s", plan.time);
    json_.field("samples_per_s", figures_.samples_per_s(plan));
    json_.field("tokens_per_s", figures_.tokens_per_s(plan));
    json_.field("tokens_per_s_per_gpu", figures_.tokens_per_s(plan) / gpus).field("mfu", figures_.mfu(plan));
    json_.field("peak_bytes", plan.memory.peak).field("peak_stage", plan.memory.rank);
    json_.field("verdict", name_of(plan.memory.verdict()));
    write_overlap(plan.point);
    if (const auto cost = figures_.cost_per_million_tokens(plan)) {
      json_.field("cost_per_million_tokens", *cost);
      json_.field("currency", answer_.space.price->currency);
    }
    json_.end_object();
  }

  // What the plan would be with overlap.tensor, where that was tried; null where it cannot be.
  void write_overlap(std::size_t point) {
    const auto trial = std::ranges::find(answer_.overlaps, point, &OverlapTrial::point);
    if (trial == answer_.overlaps.end()) return;
    json_.key("with_tensor_overlap");
    if (!trial->plan) {
      json_.null();
      return;
    }
    json_.begin_object().field("iteration_time_s", trial->plan->time);
    json_.field("peak_bytes", trial->plan->memory.peak).field("peak_stage", trial->plan->memory.rank);
    json_.field("verdict", name_of(trial->plan->memory.verdict())).end_object();
  }

  const SearchAnswer& answer_;
  PlanColumns plans_;
  PlanFigures figures_;
  JsonWriter json_;
};

}  // namespace

std::string render_json(const SearchAnswer& answer) {
  return SearchJson(answer).render();
}

}  // namespace stagecraft
