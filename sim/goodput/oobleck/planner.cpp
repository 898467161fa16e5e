#include "sim/goodput/oobleck/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"

namespace stagecraft {
namespace {

int nodes_in(const OobleckSpec& spec) {
  int nodes = 0;
  for (const AlikeNodes& group : spec.groups) nodes += group.nodes;
  return nodes;
}

int layers_in(const OobleckSpec& spec) {
  return static_cast<int>(spec.groups.at(0).options.at(0).layers.size());
}

// GPUs of a stage of the widest option.
int widest_stage(const OobleckSpec& spec) {
  int widest = 1;
  for (const StageOption& option : spec.groups.at(0).options) widest = std::max(widest, option.gpus);
  return widest;
}

// The most nodes of a pipeline: as many as there are layers for the stages of the widest option. 0: one node
// has more stages than that.
int stage_limit(const OobleckSpec& spec) {
  return layers_in(spec) / (spec.gpus_per_node / widest_stage(spec));
}

// "13, 14 and 17 to 19"
std::string listed(const std::vector<int>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - i > 2)
      parts.push_back(fmt::format("{} to {}", numbers[i], numbers[end - 1]));
    else
      for (std::size_t k = i; k < end; ++k) parts.push_back(std::to_string(numbers[k]));
    i = end;
  }
  if (parts.size() < 2) return parts.empty() ? std::string() : parts.front();
  const std::string last = parts.back();
  parts.pop_back();
  return fmt::format("{} and {}", fmt::join(parts, ", "), last);
}

Diagnostic too_many_failures(int nodes, int n0, int f) {
  const int needed = (f + 1) * n0;
  const std::string enough = fmt::format("at least {} nodes", needed);
  return {.code = "too-many-failures",
          .message = fmt::format("{} at once cannot be survived: {} pipelines of at least {} nodes each need "
                                 "{} nodes, and there are {}",
                                 counted(f, "failure"), f + 1, n0, needed, nodes),
          .hint = nodes >= n0 ? fmt::format("use max_failures: {}, or {}", nodes / n0 - 1, enough)
                              : fmt::format("the model alone needs {} nodes; use {}", n0, enough)};
}

Diagnostic not_covered(const TemplateRange& range) {
  const std::vector<int> counts = counts_not_covered(range);
  const std::string what = counts.empty() ? "all counts can still be used whole"
                                          : "some nodes idle when there are " + listed(counts);
  const int wanted = (range.max_failures + 2) * range.min_nodes - 1;
  return {.severity = Severity::kWarning,
          .code = "counts-not-covered",
          .message = fmt::format(
              "templates of {} to {} nodes do not cover every count of nodes (that takes up to {}): {}",
              range.min_nodes, range.most_nodes, 2 * range.min_nodes - 1, what),
          .hint = range.nodes < wanted
                      ? fmt::format("with {} nodes, or fewer failures to survive, every count can be used",
                                    wanted)
                      : std::string()};
}

Diagnostic too_few_layers(const OobleckSpec& spec, int limit) {
  const std::string message = fmt::format(
      "a pipeline of {}, the least that hold the model, has more stages than the model has layers, {}",
      counted(spec.min_nodes, "node"), layers_in(spec));
  return {.code = "too-few-layers",
          .message = message,
          .hint = limit > 0 ? fmt::format("use nodes of more memory, so that {} hold the model", limit)
                            : fmt::format("use nodes of at most {} GPUs, whose stages each have a layer",
                                          layers_in(spec) * widest_stage(spec))};
}

}  // namespace

TemplateRange range_of(const OobleckSpec& spec) {
  return template_range(nodes_in(spec), spec.min_nodes, spec.max_failures, stage_limit(spec));
}

std::vector<Diagnostic> check_oobleck(const OobleckSpec& spec) {
  const int nodes = nodes_in(spec);
  const int limit = stage_limit(spec);
  const TemplateRange range = range_of(spec);
  std::vector<Diagnostic> out;
  if (!range.survivable()) out.push_back(too_many_failures(nodes, spec.min_nodes, spec.max_failures));
  if (spec.min_nodes > limit) out.push_back(too_few_layers(spec, limit));
  if (spec.micro_batches <= spec.max_failures)
    out.push_back({.code = "too-few-micro-batches",
                   .message = fmt::format("{} pipelines need a micro-batch each, and a step has {}",
                                          spec.max_failures + 1, spec.micro_batches),
                   .hint = "use smaller micro-batches or a larger batch"});
  if (!out.empty()) return out;
  if (!range.enough_for_every_count()) out.push_back(not_covered(range));
  const int wanted = nodes - spec.max_failures * spec.min_nodes;
  if (limit < wanted)
    out.push_back({.severity = Severity::kWarning,
                   .code = "templates-end-early",
                   .message = fmt::format("templates end at {} nodes, not at {}: the model has {} layers",
                                          limit, wanted, layers_in(spec))});
  return out;
}

OobleckPlanner::OobleckPlanner(OobleckSpec spec)
    : spec_(std::move(spec)),
      range_(range_of(spec_)),
      templates_(spec_.groups, spec_.gpus_per_node,
                 {.rule = spec_.rule,
                  .time = spec_.time,
                  .interpolate = spec_.interpolate,
                  .micro_batches_per_node = static_cast<double>(spec_.micro_batches) / range_.nodes,
                  .search_micro_batches = spec_.search_micro_batches}) {
  SC_CHECK(range_.survivable() && range_.most_nodes >= range_.min_nodes, "the spec was checked");
  SC_CHECK(spec_.micro_batches > spec_.max_failures, "the spec was checked");
  SC_CHECK(static_cast<int>(spec_.layer_state.size()) == templates_.layers(), "every layer has a state");
  for (std::size_t group = 0; group < spec_.groups.size(); ++group)
    groups_.insert(groups_.end(), static_cast<std::size_t>(spec_.groups[group].nodes),
                   static_cast<int>(group));
}

int OobleckPlanner::share(int nodes) const {
  const double share = static_cast<double>(spec_.micro_batches) * nodes / range_.nodes;
  return std::max(1, static_cast<int>(std::llround(share)));
}

Composition OobleckPlanner::composition(std::span<const int> nodes) const {
  Composition out(spec_.groups.size());
  for (const int node : nodes) ++out[static_cast<std::size_t>(group(node))];
  return out;
}

int OobleckPlanner::template_of(const std::vector<int>& pipeline) {
  const auto number = templates_.find(composition(pipeline));
  SC_CHECK(number.has_value(), "a pipeline has no more nodes than the largest template");
  return *number;
}

InstantiateRequest OobleckPlanner::request(Composition available) const {
  return {.available = std::move(available),
          .min_nodes = range_.min_nodes,
          .most_nodes = range_.most_nodes,
          .max_failures = range_.max_failures,
          .micro_batches = spec_.micro_batches,
          .tail = spec_.tail};
}

void OobleckPlanner::in_group_order(std::vector<int>& pipeline) const {
  std::ranges::stable_sort(pipeline, {}, [this](int node) { return group(node); });
}

OobleckLayout OobleckPlanner::compose(std::vector<int> nodes, const OobleckLayout& old) {
  if (!std::ranges::is_sorted(nodes)) std::ranges::sort(nodes);
  const Composition available = composition(nodes);
  const auto [found, isnew] = instantiations_.try_emplace(available);
  if (isnew) found->second = instantiate(templates_, request(available));
  if (!found->second) return {.idle = std::move(nodes)};
  std::vector<Composition> wanted = found->second->pipelines;
  OobleckLayout out;
  std::vector<bool> free(groups_.size());  // [node]: it is there and has no place
  for (const int node : nodes) free[static_cast<std::size_t>(node)] = true;
  const auto is_free = [&](int node) { return free[static_cast<std::size_t>(node)]; };
  for (const std::vector<int>& pipeline : old.pipelines) {
    const auto same = std::ranges::find(wanted, composition(pipeline));
    if (same == wanted.end() || !std::ranges::all_of(pipeline, is_free)) continue;
    out.pipelines.push_back(pipeline);
    wanted.erase(same);
    for (const int node : pipeline) free[static_cast<std::size_t>(node)] = false;
  }
  std::vector<int> pool;  // the nodes without a place, in the order in which they get one
  for (const std::vector<int>& pipeline : old.pipelines)
    std::ranges::copy_if(pipeline, std::back_inserter(pool), is_free);
  for (const int node : pool) free[static_cast<std::size_t>(node)] = false;
  std::ranges::copy_if(nodes, std::back_inserter(pool), is_free);
  for (const Composition& size : wanted) out.pipelines.push_back(draw_pipeline(size, pool));
  std::ranges::stable_sort(out.pipelines, {}, [](const auto& pipeline) { return pipeline.size(); });
  out.idle = std::move(pool);
  std::ranges::sort(out.idle);
  return out;
}

// Takes the first nodes of each group from the pool.
std::vector<int> OobleckPlanner::draw_pipeline(const Composition& size, std::vector<int>& pool) const {
  std::vector<int> pipeline;
  for (int in_group = 0; in_group < static_cast<int>(size.size()); ++in_group) {
    int missing = size[static_cast<std::size_t>(in_group)];
    std::erase_if(pool, [&](int node) {
      if (missing == 0 || group(node) != in_group) return false;
      --missing;
      pipeline.push_back(node);
      return true;
    });
  }
  return pipeline;
}

// A standby node takes the place of a lost node of its group.
void OobleckPlanner::place_stand_bys(OobleckLayout& layout, std::span<const int> failed,
                                     std::vector<PipelineEvent>& events) const {
  std::erase_if(layout.idle, [&](int node) { return std::ranges::find(failed, node) != failed.end(); });
  for (std::size_t number = 0; number < layout.pipelines.size(); ++number) {
    for (int& node : layout.pipelines[number]) {
      if (std::ranges::find(failed, node) == failed.end()) continue;
      const auto stand_by =
          std::ranges::find_if(layout.idle, [&](int other) { return group(other) == group(node); });
      if (stand_by == layout.idle.end()) continue;
      events.push_back({.pipeline = static_cast<int>(number),
                        .change = PipelineChange::kReplace,
                        .node = *stand_by,
                        .other = node});
      node = *stand_by;
      layout.idle.erase(stand_by);
    }
  }
}

OobleckFailure OobleckPlanner::fail(const OobleckLayout& layout, std::span<const int> failed) {
  OobleckFailure out{.layout = layout};
  place_stand_bys(out.layout, failed, out.events);
  Reconfiguration after = reconfigure(std::move(out.layout.pipelines), failed, range_.min_nodes);
  out.events.insert(out.events.end(), after.events.begin(), after.events.end());
  out.layout.pipelines = std::move(after.pipelines);
  if (!after.recoverable) {
    for (const auto& pipeline : out.layout.pipelines)
      out.layout.idle.insert(out.layout.idle.end(), pipeline.begin(), pipeline.end());
    out.layout.pipelines.clear();
  }
  for (std::vector<int>& pipeline : out.layout.pipelines) {
    const auto most = static_cast<std::size_t>(range_.most_nodes);
    if (pipeline.size() > most) {
      out.layout.idle.insert(out.layout.idle.end(), pipeline.begin() + range_.most_nodes, pipeline.end());
      pipeline.resize(most);
    }
    in_group_order(pipeline);
  }
  std::ranges::sort(out.layout.idle);
  if (spec_.rule == PipelineRule::kCorrected) keep_guarantee(out, layout);
  out.runs = !out.layout.pipelines.empty();
  out.guarantee_kept = static_cast<int>(out.layout.pipelines.size()) > range_.max_failures;
  return out;
}

// Recomposes where the rules of reconfiguration leave fewer than f + 1 pipelines although the nodes suffice
// for more.
void OobleckPlanner::keep_guarantee(OobleckFailure& after, const OobleckLayout& before) {
  std::vector<int> nodes = after.layout.idle;
  for (const auto& pipeline : after.layout.pipelines)
    nodes.insert(nodes.end(), pipeline.begin(), pipeline.end());
  const int wanted = range_.max_failures + 1;
  if (static_cast<int>(after.layout.pipelines.size()) >= wanted ||
      static_cast<int>(nodes.size()) < wanted * range_.min_nodes)
    return;
  after.layout = compose(std::move(nodes), before);
  after.events.push_back({.pipeline = -1, .change = PipelineChange::kAnew});
}

const OobleckStep& OobleckPlanner::step(const OobleckLayout& layout) {
  SC_CHECK(!layout.pipelines.empty(), "a step needs a pipeline");
  std::vector<int> numbers;
  numbers.reserve(layout.pipelines.size());
  for (const auto& pipeline : layout.pipelines) numbers.push_back(template_of(pipeline));
  const auto [entry, isnew] = steps_.try_emplace(std::move(numbers));
  if (isnew) {
    OobleckStep& made = entry->second;
    made.templates = entry->first;
    made.shares = share_micro_batches(templates_, made.templates, spec_.micro_batches);
    made.duration = made.shares.makespan;
    if (spec_.tail) made.duration += spec_.tail(static_cast<int>(made.templates.size()));
  }
  return entry->second;
}

Duration OobleckPlanner::slowed_step(const OobleckLayout& layout, const std::function<double(int)>& factor) {
  const OobleckStep& plain = step(layout);
  Duration makespan{};
  for (std::size_t number = 0; number < layout.pipelines.size(); ++number) {
    const std::vector<int>& nodes = layout.pipelines[number];
    const int micro_batches = plain.shares.micro_batches[number];
    Duration time = templates_.time(plain.templates[number], micro_batches);
    const double largest = factor(*std::ranges::max_element(nodes, {}, factor));
    if (largest > 1 && spec_.time) time = scaled(time, largest);
    if (largest > 1 && !spec_.time) {
      const PipelineTemplate& made = templates_.at(plain.templates[number]);
      std::vector<Duration> work = made.partition.work;
      for (std::size_t stage = 0; stage < work.size(); ++stage)
        work[stage] =
            scaled(work[stage], factor(nodes[stage / static_cast<std::size_t>(made.stages_per_node)]));
      time = std::max(time, pipeline_line(work, spec_.rule).time(micro_batches));
    }
    makespan = std::max(makespan, time);
  }
  return makespan + (plain.duration - plain.shares.makespan);
}

Duration OobleckPlanner::least_step() {
  if (least_step_) return *least_step_;
  Composition all;
  for (const AlikeNodes& group : spec_.groups) all.push_back(group.nodes);
  InstantiateRequest any = request(std::move(all));
  any.max_failures = 0;
  any.may_idle = true;
  least_step_ = instantiate(templates_, any).value().step;
  return *least_step_;
}

std::vector<NodeLayers> OobleckPlanner::layers(const OobleckLayout& layout) {
  std::vector<NodeLayers> out;
  for (const std::vector<int>& pipeline : layout.pipelines) {
    const PipelineTemplate& made = templates_.at(template_of(pipeline));
    for (std::size_t index = 0; index < pipeline.size(); ++index) {
      const auto held = made.layers_on(static_cast<int>(index), templates_.layers());
      out.push_back({.node = pipeline[index], .first = held.first, .end = held.end});
    }
  }
  return out;
}

StateCopy OobleckPlanner::copy(std::span<const NodeLayers> before, const OobleckLayout& layout) {
  return copy_state(before, layers(layout), spec_.layer_state, spec_.links);
}

}  // namespace stagecraft
