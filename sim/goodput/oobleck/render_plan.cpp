#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "sim/goodput/oobleck/plan.hpp"

namespace stagecraft {
namespace {

// "0-3, 7, 12-14": numbers ascending.
std::string ranges(const std::vector<int>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    parts.push_back(last == i ? std::to_string(numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]));
    i = last + 1;
  }
  return join(parts, ", ");
}

// "3 x 4 nodes, 2 x 5": ascending sizes, equal ones together.
std::string runs_of(const std::vector<int>& sizes) {
  std::map<int, int> counts;
  for (const int size : sizes) ++counts[size];
  std::vector<std::string> parts;
  for (const auto& [size, count] : counts) parts.push_back(fmt::format("{} x {}", count, size));
  return join(parts, ", ");
}

// "3 3 2 2", or "16 x 2" where all stages are equal; cut off where there are many.
std::string stages(const Partition& partition, int layers) {
  const std::vector<int> counts = layers_per_stage(partition, layers);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < counts.size();) {
    std::size_t end = i;
    while (end < counts.size() && counts[end] == counts[i]) ++end;
    parts.push_back(end - i > 3 ? fmt::format("{}x{}", end - i, counts[i]) : std::to_string(counts[i]));
    i += end - i > 3 ? end - i : 1;
  }
  return join(parts, " ");
}

std::string head(const OobleckPlan& plan) {
  std::string out = fmt::format(
      "Oobleck: {} of {}, {}, {} a step\n"
      "  the model needs {}; {} at once {} survived: templates of {} to {} nodes\n"
      "  times by {}\n",
      counted(plan.nodes, "node"), counted(plan.gpus_per_node, "GPU"), counted(plan.layers, "layer"),
      counted(plan.micro_batches, "micro-batch"), counted(plan.range.min_nodes, "node"),
      counted(plan.range.max_failures, "failure"), plan.range.max_failures == 1 ? "is" : "are",
      plan.range.min_nodes, plan.range.most_nodes,
      plan.simulated                          ? "simulation"
      : plan.rule == PipelineRule::kCorrected ? "the paper's equations, corrected"
                                              : "the paper's equations, as published");
  for (const Diagnostic& warning : plan.warnings)
    out += fmt::format("  warning: {}\n{}", warning.message,
                       warning.hint.empty() ? "" : fmt::format("    hint: {}\n", warning.hint));
  return out;
}

std::string templates(const OobleckPlan& plan) {
  const bool grouped = !plan.templates.empty() && !plan.templates.front().group.empty();
  TextTable table({Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                   Align::kLeft});
  table.row({"nodes", grouped ? "group" : "", "stages", "GPUs/stage", "micro-batches", "time",
             "layers of the stages"});
  for (const PlannedTemplate& row : plan.templates)
    table.row({std::to_string(row.made.nodes()), row.group, std::to_string(row.made.stages()),
               std::to_string(row.made.gpus_per_stage), std::to_string(row.micro_batches), human(row.time),
               stages(row.made.partition, plan.layers)});
  return "\nTemplates, each at its share of the micro-batches\n" + table.str(2);
}

// Pipelines of the same template, micro-batches and time are one row.
std::string pipelines(const OobleckPlan& plan) {
  TextTable table({Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  table.row({"pipelines", "nodes", "micro-batches", "time", "on nodes"});
  for (std::size_t i = 0; i < plan.pipelines.size();) {
    const PlannedPipeline& first = plan.pipelines[i];
    std::vector<int> nodes;
    std::size_t end = i;
    for (; end < plan.pipelines.size(); ++end) {
      const PlannedPipeline& other = plan.pipelines[end];
      if (other.made.composition != first.made.composition || other.micro_batches != first.micro_batches)
        break;
      nodes.insert(nodes.end(), other.nodes.begin(), other.nodes.end());
    }
    std::ranges::sort(nodes);
    table.row({std::to_string(end - i), std::to_string(first.nodes.size()),
               std::to_string(first.micro_batches), human(first.time), ranges(nodes)});
    i = end;
  }
  return fmt::format("\nPipelines at the start: a step takes {} ({} of the fastest)\n", human(plan.step),
                     percent(to_seconds(plan.least_step) / to_seconds(plan.step))) +
         table.str(2) + (plan.idle.empty() ? "" : fmt::format("  nodes {} stand by\n", ranges(plan.idle)));
}

std::string what_happens(const PlannedFailure& row) {
  if (row.pipeline < 0) return "it stood by";
  if (!row.runs) return "the job stops";
  std::map<PipelineChange, int> counts;
  for (const PipelineEvent& event : row.events) ++counts[event.change];
  std::vector<std::string> parts;
  if (counts.contains(PipelineChange::kAnew)) {
    counts.clear();
    parts.push_back("all are composed anew");
  }
  if (counts.contains(PipelineChange::kReplace)) parts.push_back("a node that stood by takes its place");
  if (counts.contains(PipelineChange::kBorrow))
    parts.push_back("borrows " + counted(counts[PipelineChange::kBorrow], "node"));
  if (counts.contains(PipelineChange::kMerge)) parts.push_back("merges");
  if (counts.contains(PipelineChange::kGone)) parts.push_back("the pipeline is gone");
  if (counts.contains(PipelineChange::kSimple)) parts.push_back("takes a smaller template");
  if (row.from_checkpoint) parts.push_back("loads a checkpoint");
  if (!row.guarantee_kept) parts.push_back("the guarantee is lost");
  return join(parts, "; ");
}

std::string failures(const OobleckPlan& plan) {
  using Row = std::vector<std::string>;
  std::vector<std::pair<Row, std::vector<int>>> rows;  // in the order of their first node
  for (const PlannedFailure& failure : plan.failures) {
    const bool stood_by = failure.pipeline < 0;
    Row row{stood_by
                ? "-"
                : std::to_string(plan.pipelines.at(static_cast<std::size_t>(failure.pipeline)).nodes.size()),
            what_happens(failure),
            runs_of(failure.sizes),
            stood_by ? "-" : human(failure.reconfigure + failure.copy),
            failure.moved == Bytes{} ? "-" : human(failure.moved),
            std::to_string(failure.receivers),
            failure.runs ? human(failure.step) : "-"};
    const auto same = std::ranges::find(rows, row, &std::pair<Row, std::vector<int>>::first);
    if (same != rows.end())
      same->second.push_back(failure.node);
    else
      rows.push_back({std::move(row), {failure.node}});
  }
  TextTable table({Align::kRight, Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight, Align::kLeft});
  table.row({"pipeline of", "what happens", "pipelines x nodes after", "stall", "moved", "to nodes", "step",
             "when this node fails"});
  for (auto& [row, nodes] : rows) {
    row.push_back(ranges(nodes));
    table.row(row);
  }
  return "\nWhat each failure would do (stall: after detection; the step in flight is lost)\n" + table.str(2);
}

std::string counts(const OobleckPlan& plan) {
  if (plan.counts.empty()) return {};
  TextTable table({Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  table.row({"nodes", "step", "throughput", "idle", "pipelines x nodes"});
  for (const PlannedCount& row : plan.counts)
    table.row({std::to_string(row.nodes), human(row.step),
               percent(to_seconds(plan.step) / to_seconds(row.step)), std::to_string(row.idle),
               runs_of(row.sizes)});
  return "\nThe best pipelines of fewer nodes (throughput: of the start)\n" + table.str(2);
}

}  // namespace

std::string render_plan(const OobleckPlan& plan) {
  return head(plan) + templates(plan) + pipelines(plan) + failures(plan) + counts(plan);
}

}  // namespace stagecraft
