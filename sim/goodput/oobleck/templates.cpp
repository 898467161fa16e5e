#include "sim/goodput/oobleck/templates.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

Duration share(Duration whole, int parts) {
  return (whole + Duration{parts / 2}) / parts;
}

}  // namespace

std::vector<StageOption> stage_options(const std::vector<LayerCost>& one_gpu, int gpus_per_node,
                                       const InNodeAllReduce& all_reduce) {
  std::vector<StageOption> options;
  for (int q = 1; q <= gpus_per_node; q *= 2) {
    if (gpus_per_node % q != 0) break;
    StageOption option{.gpus = q};
    for (std::size_t layer = 0; layer < one_gpu.size(); ++layer) {
      const LayerCost reduce = q > 1 ? all_reduce(static_cast<int>(layer), q) : LayerCost{};
      option.layers.push_back({.forward = share(one_gpu[layer].forward, q) + reduce.forward,
                               .backward = share(one_gpu[layer].backward, q) + reduce.backward});
    }
    options.push_back(std::move(option));
  }
  return options;
}

std::vector<StageOption> scaled(std::vector<StageOption> options, double factor) {
  SC_CHECK(factor > 0, "a node takes some time");
  for (StageOption& option : options)
    for (LayerCost& layer : option.layers)
      layer = {.forward = scaled(layer.forward, factor), .backward = scaled(layer.backward, factor)};
  return options;
}

int nodes_of(const Composition& composition) {
  return std::accumulate(composition.begin(), composition.end(), 0);
}

PipelineTemplate::Layers PipelineTemplate::layers_on(int index, int model_layers) const {
  SC_CHECK(index >= 0 && index < nodes(), "a node of the pipeline");
  const auto first = static_cast<std::size_t>(index * stages_per_node);
  const auto end = first + static_cast<std::size_t>(stages_per_node);
  return {.first = partition.first_layers[first],
          .end = end < partition.first_layers.size() ? partition.first_layers[end] : model_layers};
}

Templates::Templates(std::vector<AlikeNodes> groups, int gpus_per_node, Rules rules)
    : groups_(std::move(groups)), gpus_per_node_(gpus_per_node), rules_(std::move(rules)), layers_(0) {
  SC_CHECK(!groups_.empty() && !groups_.front().options.empty(), "a cluster has nodes, and they cost time");
  layers_ = static_cast<int>(groups_.front().options.front().layers.size());
  for (const AlikeNodes& group : groups_) {
    SC_CHECK(group.options.size() == groups_.front().options.size(), "groups have the same options");
    auto& work = work_.emplace_back();
    auto& searches = searches_.emplace_back();
    for (const StageOption& option : group.options) {
      SC_CHECK(static_cast<int>(option.layers.size()) == layers_, "options price the same layers");
      SC_CHECK(option.gpus >= 1 && gpus_per_node_ % option.gpus == 0, "stages divide the GPUs of a node");
      auto& row = work.emplace_back();
      for (const LayerCost& layer : option.layers) row.push_back(layer.work());
      searches.emplace_back(row);
    }
  }
}

std::optional<int> Templates::find(const Composition& composition) {
  SC_CHECK(composition.size() == groups_.size() && nodes_of(composition) >= 1, "a pipeline has nodes");
  const auto [entry, isnew] = numbers_.try_emplace(composition);
  if (!isnew) return entry->second;
  if (auto made = make(composition)) {
    entry->second = static_cast<int>(templates_.size());
    templates_.push_back(std::move(*made));
    times_.emplace_back();
  }
  return entry->second;
}

const PipelineTemplate& Templates::at(int number) const {
  return templates_.at(static_cast<std::size_t>(number));
}

// The options' times are compared at the pipeline's share of the micro-batches; the fewest GPUs per stage on
// a tie.
std::optional<PipelineTemplate> Templates::make(const Composition& composition) const {
  const int share =
      std::max(1, static_cast<int>(std::llround(rules_.micro_batches_per_node * nodes_of(composition))));
  std::optional<PipelineTemplate> best;
  Duration least{};
  for (std::size_t option = 0; option < groups_.front().options.size(); ++option) {
    auto made = make(composition, option);
    if (!made) continue;
    const Duration time = rules_.time ? rules_.time(*made, share) : made->line.time(share);
    if (best && time >= least) continue;
    least = time;
    best = std::move(made);
  }
  return best;
}

std::optional<PipelineTemplate> Templates::make(const Composition& composition, std::size_t option) const {
  auto partition = cut(composition, option);
  if (!partition) return std::nullopt;
  const int gpus = groups_.front().options[option].gpus;
  PipelineTemplate made{.composition = composition,
                        .gpus_per_stage = gpus,
                        .stages_per_node = gpus_per_node_ / gpus,
                        .partition = std::move(*partition)};
  made.line = pipeline_line(made.partition.work, rules_.rule);
  return made;
}

std::optional<Partition> Templates::cut(const Composition& composition, std::size_t option) const {
  const int per_node = gpus_per_node_ / groups_.front().options[option].gpus;
  const int stages = per_node * nodes_of(composition);
  if (stages > layers_) return std::nullopt;
  const auto alone = std::ranges::find(composition, nodes_of(composition));
  if (alone != composition.end()) {
    const auto group = static_cast<std::size_t>(alone - composition.begin());
    return searches_[group][option].best(stages, rules_.search_micro_batches.value_or(4 * stages),
                                         rules_.rule);
  }
  std::vector<std::vector<Duration>> rows;
  for (std::size_t group = 0; group < composition.size(); ++group)
    for (int stage = 0; stage < composition[group] * per_node; ++stage) rows.push_back(work_[group][option]);
  return partition_of_unequal(rows);
}

Duration Templates::asked(int number, int micro_batches) {
  const auto [entry, isnew] = times_[static_cast<std::size_t>(number)].try_emplace(micro_batches);
  if (isnew) entry->second = rules_.time(at(number), micro_batches);
  return entry->second;
}

Duration Templates::time(int number, int micro_batches) {
  SC_CHECK(micro_batches >= 1, "a pipeline works on something");
  if (!rules_.time) return at(number).line.time(micro_batches);
  const auto octave = static_cast<int>(std::bit_floor(static_cast<unsigned>(micro_batches)));
  const int middle = octave + octave / 2;
  const int below = micro_batches < middle ? octave : middle;
  if (!rules_.interpolate || micro_batches == below) return asked(number, micro_batches);
  const int above = micro_batches < middle ? middle : 2 * octave;
  const Duration from = asked(number, below);
  return from + (asked(number, above) - from) * (micro_batches - below) / (above - below);
}

int Templates::within(int number, Duration limit_time, int limit) {
  if (!rules_.time) return at(number).line.within(limit_time, limit);
  int done = 0;
  int too_many = limit + 1;
  while (too_many - done > 1) {
    const int middle = done + (too_many - done) / 2;
    (time(number, middle) <= limit_time ? done : too_many) = middle;
  }
  return done;
}

TemplateRange template_range(int nodes, int min_nodes, int max_failures, int stage_limit) {
  return {.nodes = nodes,
          .min_nodes = min_nodes,
          .max_failures = max_failures,
          .most_nodes = std::min(nodes - max_failures * min_nodes, stage_limit)};
}

std::vector<int> counts_not_covered(const TemplateRange& range) {
  std::vector<int> out;
  for (int count = (range.max_failures + 1) * range.min_nodes; count <= range.nodes; ++count) {
    bool covered = false;  // k members reach every count from k n0 to k n_max
    for (int k = range.max_failures + 1; k * range.min_nodes <= count && !covered; ++k)
      covered = count <= k * range.most_nodes;
    if (!covered) out.push_back(count);
  }
  return out;
}

}  // namespace stagecraft
