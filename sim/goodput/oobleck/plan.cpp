#include "sim/goodput/oobleck/plan.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace stagecraft {
namespace {

std::vector<PlannedTemplate> planned_templates(OobleckPlanner& planner) {
  const auto& groups = planner.spec().groups;
  std::vector<PlannedTemplate> out;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (int size = planner.range().min_nodes; size <= planner.range().most_nodes; ++size) {
      if (groups.size() > 1 && size > groups[group].nodes) break;
      Composition composition(groups.size());
      composition[group] = size;
      const int number = planner.templates().find(composition).value();
      const int share = planner.share(size);
      out.push_back({.group = groups.size() > 1 ? groups[group].name : std::string(),
                     .made = planner.templates().at(number),
                     .micro_batches = share,
                     .time = planner.templates().time(number, share)});
    }
  }
  return out;
}

std::vector<int> sizes_of(const Pipelines& pipelines) {
  std::vector<int> out;
  for (const auto& pipeline : pipelines) out.push_back(static_cast<int>(pipeline.size()));
  std::ranges::sort(out);
  return out;
}

int pipeline_of(const OobleckLayout& layout, int node) {
  for (std::size_t number = 0; number < layout.pipelines.size(); ++number)
    if (std::ranges::find(layout.pipelines[number], node) != layout.pipelines[number].end())
      return static_cast<int>(number);
  return -1;
}

void add_copy(PlannedFailure& row, const StateCopy& copy) {
  row.from_checkpoint = !copy.lost_layers.empty();
  if (row.from_checkpoint) return;
  row.copy = copy.time;
  row.moved = copy.moved;
  for (const auto& [node, traffic] : copy.nodes) row.receivers += traffic.messages_in > 0 ? 1 : 0;
}

PlannedFailure planned_failure(OobleckPlanner& planner, const OobleckLayout& layout, int node,
                               ReconfigureCost reconfigure) {
  OobleckFailure after = planner.fail(layout, std::vector{node});
  PlannedFailure row{.node = node,
                     .pipeline = pipeline_of(layout, node),
                     .events = std::move(after.events),
                     .sizes = sizes_of(after.layout.pipelines),
                     .runs = after.runs,
                     .guarantee_kept = after.guarantee_kept};
  if (row.pipeline >= 0) row.reconfigure = reconfigure.time;
  if (!after.runs) return row;
  std::vector<NodeLayers> before = planner.layers(layout);
  std::erase_if(before, [node](const NodeLayers& held) { return held.node == node; });
  add_copy(row, planner.copy(before, after.layout));
  if (reconfigure.copy_included) row.copy = {};
  row.step = planner.step(after.layout).duration;
  return row;
}

// Plans for all counts of nodes, from all but one down to the fewest that keep the guarantee.
std::vector<PlannedCount> planned_counts(OobleckPlanner& planner) {
  const int fewest = (planner.range().max_failures + 1) * planner.range().min_nodes;
  const int most = planner.nodes() - 1;
  std::set<int, std::greater<>> counts;
  const int rows = std::min(kPlannedCounts, most - fewest + 1);
  for (int row = 0; row < rows; ++row)
    counts.insert(rows == 1 ? most : most - row * (most - fewest) / (rows - 1));
  std::vector<PlannedCount> out;
  for (const int count : counts) {
    std::vector<int> nodes(static_cast<std::size_t>(count));
    for (int node = 0; node < count; ++node) nodes[static_cast<std::size_t>(node)] = node;
    const OobleckLayout layout = planner.compose(std::move(nodes));
    out.push_back({.nodes = count,
                   .sizes = sizes_of(layout.pipelines),
                   .idle = static_cast<int>(layout.idle.size()),
                   .step = planner.step(layout).duration});
  }
  return out;
}

}  // namespace

OobleckPlan plan_oobleck(OobleckPlanner& planner, ReconfigureCost reconfigure) {
  const OobleckSpec& spec = planner.spec();
  OobleckPlan plan{.nodes = planner.nodes(),
                   .gpus_per_node = spec.gpus_per_node,
                   .layers = planner.templates().layers(),
                   .micro_batches = spec.micro_batches,
                   .rule = spec.rule,
                   .simulated = static_cast<bool>(spec.time),
                   .range = planner.range(),
                   .warnings = check_oobleck(spec),
                   .templates = planned_templates(planner)};
  std::vector<int> nodes(static_cast<std::size_t>(plan.nodes));
  for (int node = 0; node < plan.nodes; ++node) nodes[static_cast<std::size_t>(node)] = node;
  const OobleckLayout layout = planner.compose(std::move(nodes));
  const OobleckStep& step = planner.step(layout);
  for (std::size_t number = 0; number < layout.pipelines.size(); ++number)
    plan.pipelines.push_back(
        {.nodes = layout.pipelines[number],
         .made = planner.templates().at(step.templates[number]),
         .micro_batches = step.shares.micro_batches[number],
         .time = planner.templates().time(step.templates[number], step.shares.micro_batches[number])});
  plan.idle = layout.idle;
  plan.step = step.duration;
  plan.least_step = planner.least_step();
  for (int node = 0; node < plan.nodes; ++node)
    plan.failures.push_back(planned_failure(planner, layout, node, reconfigure));
  plan.counts = planned_counts(planner);
  return plan;
}

}  // namespace stagecraft
