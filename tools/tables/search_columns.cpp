#include "tools/tables/search_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/search/frames.hpp"

namespace stagecraft {
namespace {

std::vector<PlanCell> degrees_of(const SearchPoint& point, const SearchSpace& space) {
  std::vector<PlanCell> cells;
  const auto add = [&](const char* path, const char* title, std::int64_t value) {
    cells.push_back({.path = path, .title = title, .value = std::to_string(value)});
  };
  const auto by_divisors = [&](const char* path) {
    const SearchAxis* axis = space.find(path);
    return axis != nullptr && axis->all();
  };
  add("parallelism.tensor", "tp", point.tensor);
  add("parallelism.pipeline", "pp", point.pipeline);
  add("parallelism.data", "dp", point.data);
  add("parallelism.context", "cp", point.context);
  add("parallelism.expert", "ep", point.expert);
  if (by_divisors("parallelism.expert_tensor")) add("parallelism.expert_tensor", "etp", point.expert_tensor);
  add("parallelism.virtual_stages", "vp", point.virtual_stages);
  add("training.micro_batch_size", "mb", point.micro_batch);
  add(kBatchPath, "batch", point.global_batch);
  add("parallelism.zero_stage", "zero", point.zero_stage);
  if (by_divisors("parallelism.zero_group"))
    add("parallelism.zero_group", "over", point.zero_group > 0 ? point.zero_group : point.replicas());
  return cells;
}

std::string switch_text(const PointSwitch& one, double value) {
  return one.share ? fmt::format("{}", value) : value != 0 ? "true" : "false";
}

// On one line, as --vary takes it.
std::string flow_text(const YamlNode& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "null";
    case YamlNode::Kind::kScalar:
      return node.text;
    case YamlNode::Kind::kSequence:
      for (const YamlNode& item : node.items) parts.push_back(flow_text(item));
      return "[" + join(parts, ", ") + "]";
    case YamlNode::Kind::kMap:
      for (const YamlEntry& entry : node.entries) parts.push_back(entry.key + ": " + flow_text(entry.value));
  }
  return "{" + join(parts, ", ") + "}";
}

std::string short_text(const YamlNode& node) {
  const YamlNode* name = node.find("name");
  return flow_text(name != nullptr ? *name : node);
}

// Layers of stages, runs of equal ones as one: "7 9x2 7".
std::string layers_text(const std::vector<std::int64_t>& layers) {
  std::vector<std::string> runs;
  for (auto at = layers.begin(); at != layers.end();) {
    const auto end = std::find_if(at, layers.end(), [&](std::int64_t n) { return n != *at; });
    runs.push_back(end - at == 1 ? std::to_string(*at) : fmt::format("{}x{}", *at, end - at));
    at = end;
  }
  return runs.empty() ? kEvenLayers : join(runs, " ");
}

}  // namespace

std::string PlanCell::whole() const {
  return node != nullptr ? flow_text(*node) : value;
}

PlanColumns::PlanColumns(const SearchAnswer& answer) : answer_(answer) {
  for (const SearchAxis& axis : answer.space.axes)
    if (!set_in_place(axis)) others_.push_back(&axis);
  // A plan that is laid over the scenario would keep its split, so that plans without one say so.
  splits_ = answer.space.find(kLayersPath) == nullptr &&
            (!own_layers().empty() || std::ranges::any_of(answer.plans.points, [](const SearchPoint& at) {
              return !at.stage_layers.empty();
            }));
}

std::vector<PlanCell> PlanColumns::cells(std::size_t index) const {
  const SearchPoint& at = answer_.plans.points[index];
  const SearchFrame& frame = answer_.plans.frames[at.frame];
  std::vector<PlanCell> cells = degrees_of(at, answer_.space);
  const auto words = [&](const char* path, const char* title, std::string value, const YamlNode* node) {
    cells.push_back({.path = path,
                     .title = title,
                     .value = std::move(value),
                     .text = true,
                     .align = Align::kLeft,
                     .node = node});
  };
  const auto written = [](const std::optional<YamlNode>& node) { return node ? &*node : nullptr; };
  if (splits_)
    cells.push_back({.path = kLayersPath,
                     .title = "layers",
                     .value = layers_text(at.stage_layers),
                     .align = Align::kLeft,
                     .numbers = &at.stage_layers});
  cells.push_back({.path = "parallelism.sequence_parallel",
                   .title = "sp",
                   .value = at.sequence_parallel ? "true" : "false",
                   .align = Align::kLeft});
  words("schedule", "schedule", frame.scenario.schedule.name, written(frame.schedule));
  const Recompute again = at.own_recompute ? frame.scenario.training.recompute.granularity : at.recompute;
  words("training.recompute", "recompute", std::string(kRecomputeNames[static_cast<std::size_t>(again)]),
        at.own_recompute ? written(frame.recompute) : nullptr);
  for (std::size_t i = 0; i < kPointSwitches; ++i) {
    const PointSwitch& one = point_switches()[i];
    if (answer_.space.find(one.path) == nullptr) continue;
    const std::string path(one.path);
    cells.push_back({.path = path, .title = path, .value = switch_text(one, at.switches[i])});
  }
  for (const SearchAxis* axis : others_) {
    if (std::ranges::find(cells, axis->path, &PlanCell::path) != cells.end()) continue;
    const YamlNode& value = axis->values[value_in_choice(answer_.space, *axis, frame.choice)];
    words(axis->path.c_str(), axis->path.c_str(), short_text(value), &value);
  }
  return cells;
}

}  // namespace stagecraft
