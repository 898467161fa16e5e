#include "sim/resilience/degraded_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <variant>

#include "base/ceil_div.hpp"
#include "base/text.hpp"
#include "sim/lower/messages.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

// The GPUs of each node, in the order of the cluster.
std::vector<int> node_sizes(const Scenario& scenario, const ParallelPlan& full) {
  if (!scenario.cluster) return std::vector<int>(static_cast<std::size_t>(full.gpus()), 1);
  std::vector<int> sizes;
  for (const NodeGroup& group : scenario.cluster->groups)
    sizes.insert(sizes.end(), static_cast<std::size_t>(group.count), scenario.cluster->gpus_of(group.node));
  return sizes;
}

// The first `gpus` GPUs of the cluster; only a part of the last node where they do not fill it.
ClusterSpec first_gpus(const ClusterSpec& cluster, int gpus) {
  std::vector<NodeGroup> part;
  for (const NodeGroup& group : cluster.groups) {
    const int whole = std::min(group.count, gpus / group.node.gpus);
    if (whole > 0) part.push_back({.node = group.node, .count = whole});
    gpus -= whole * group.node.gpus;
    if (whole == group.count) continue;
    if (gpus > 0) {
      NodeSpec rest = group.node;
      rest.gpus = gpus;
      rest.sockets = 1;
      rest.gpus_per_pcie_switch = 0;
      rest.nvlink_pairs.clear();
      part.push_back({.node = std::move(rest), .count = 1});
    }
    break;
  }
  return with_groups(cluster, std::move(part));
}

std::vector<int> depths_of(const Scenario& scenario) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  if (model == nullptr || scenario.order) return {scenario.parallelism.pipeline};
  const std::int64_t layers = counted_layers(*model, scenario.parallelism);
  std::vector<int> depths;
  for (int depth = 1; depth <= layers; ++depth)
    if (layers % depth == 0) depths.push_back(depth);
  if (std::find(depths.begin(), depths.end(), scenario.parallelism.pipeline) == depths.end())
    depths.push_back(scenario.parallelism.pipeline);
  return depths;
}

// Slows every link between nodes. Background traffic keeps its share, so that our traffic takes `factor`
// times as long.
void slow_network(Scenario& scenario, double factor) {
  const auto slow = [factor](Bandwidth& rate) { rate = Bandwidth(rate.count() / factor); };
  scale_network(*scenario.cluster, 1 / factor);
  for (LinkException& link : scenario.cluster->links)
    if (link.bandwidth) slow(*link.bandwidth);
  for (BackgroundSpec& traffic : scenario.network.background)
    if (traffic.from.node != traffic.to.node) slow(traffic.rate);
}

// A pace that is known at factors of 1, 1.25, …, 2, 3, 4.5, …, and linear between.
template <typename Pace>
double between_steps(double factor, const Pace& pace) {
  double low = 1, high = 1;
  while (high < factor) {
    low = high;
    high = high < 2 ? high + 0.25 : high * 1.5;
  }
  if (high == 1) return 1;
  const double from = low == 1 ? 1 : pace(low), to = pace(high);
  return from + (to - from) * (factor - low) / (high - low);
}

}  // namespace

DegradedShapes::DegradedShapes(const Scenario& scenario, const Simulation& full)
    : scenario_(scenario),
      node_sizes_(node_sizes(scenario, full.prepared.plan)),
      stage_gpus_(full.prepared.plan.tensor * full.prepared.plan.context),
      depths_(depths_of(scenario)),
      own_depth_(full.prepared.plan.pipeline),
      own_data_(full.prepared.plan.data),
      own_time_(full.report.iteration_time),
      fits_(full.report.memory.verdict() != Verdict::kOutOfMemory) {
  on_nodes_[nodes()] = own();
}

// The whole job has its whole batch.
DegradedShapes::Shape DegradedShapes::own_with(int replicas, BatchRule batch) const {
  return {.pipeline = own_depth_,
          .data = replicas,
          .micro_batch = scenario_.training.micro_batch_size,
          .batch = replicas == own_data_ ? BatchRule::kKept : batch};
}

int DegradedShapes::gpus_on(int nodes) const {
  const auto end = node_sizes_.begin() + std::clamp(nodes, 0, this->nodes());
  return std::accumulate(node_sizes_.begin(), end, 0);
}

int DegradedShapes::nodes_for(int gpus) const {
  int nodes = 0;
  for (int held = 0; held < gpus && nodes < this->nodes(); ++nodes)
    held += node_sizes_[static_cast<std::size_t>(nodes)];
  return nodes;
}

int DegradedShapes::gpus_of(const Shape& shape) const {
  return shape.pipeline * shape.data * stage_gpus_;
}

std::int64_t DegradedShapes::samples_of(const Shape& shape) const {
  const std::int64_t batch = scenario_.training.global_batch_size;
  return shape.batch == BatchRule::kKept ? batch : batch / own_data_ * shape.data;
}

std::int64_t DegradedShapes::least_micro_batches(const Shape& shape) const {
  return ceil_div(samples_of(shape), shape.data * shape.micro_batch);
}

// No schedule asks for more than a few rounds of its ranks.
std::int64_t DegradedShapes::micro_batches_of(const Shape& shape) const {
  const std::int64_t least = least_micro_batches(shape);
  const ScheduleKind* kind = scenario_.order ? nullptr : find_schedule(scenario_.schedule.name);
  if (kind == nullptr || shape.pipeline == 1) return least;
  PipelineShape sizes{.ranks = shape.pipeline,
                      .chunks = scenario_.parallelism.virtual_stages,
                      .group = scenario_.schedule.micro_batch_group};
  const std::int64_t most = least + 2 * std::max(sizes.ranks, sizes.group);
  for (std::int64_t taken = least; taken <= most; ++taken) {
    sizes.micro_batches = static_cast<int>(taken);
    if (!kind->constraint(sizes)) return taken;
  }
  return least;
}

Scenario DegradedShapes::scenario_of(const Shape& shape) const {
  if (shape == own()) return scenario_;
  Scenario scenario = scenario_;
  ParallelSpec& parallelism = scenario.parallelism;
  if (shape.pipeline != own_depth_) parallelism.stage_layers.clear();
  if (shape.pipeline == 1 && parallelism.virtual_stages > 1) {
    parallelism.virtual_stages = 1;
    scenario.schedule.name = "1f1b";
    scenario.schedule.micro_batch_group = 0;
  }
  parallelism.pipeline = shape.pipeline;
  parallelism.data = shape.data;
  if (parallelism.zero_group)
    parallelism.zero_group = std::gcd(*parallelism.zero_group, shape.data * parallelism.context);
  TrainingSpec& training = scenario.training;
  training.micro_batch_size = shape.micro_batch;
  training.global_batch_size = micro_batches_of(shape) * shape.data * shape.micro_batch;
  if (scenario.cluster && scenario.cluster->gpus_used == 0) {
    scenario.cluster = first_gpus(*scenario.cluster, gpus_of(shape));
    scenario.network.background.clear();
  }
  return scenario;
}

std::optional<DegradedShapes::Timed> DegradedShapes::time_of(const Shape& shape) {
  return timed_.answer(shape, [&]() -> std::optional<Timed> {
    if (shape == own()) return Timed{.duration = own_time_, .samples = samples_of(shape), .fits = fits_};
    const Scenario scenario = scenario_of(shape);
    Diagnostics refusals;
    if (!prepare(scenario, refusals)) return std::nullopt;
    const Report report = simulate(scenario);
    return Timed{.duration = report.iteration_time,
                 .samples = samples_of(shape),
                 .fits = report.memory.verdict() != Verdict::kOutOfMemory};
  });
}

ShapedStep DegradedShapes::use(const Shape& shape, const Timed& timed) {
  const int nodes = nodes_for(gpus_of(shape));
  std::string text = fmt::format("dp {} · pp {}", shape.data, shape.pipeline);
  if (shape.micro_batch != scenario_.training.micro_batch_size)
    text += fmt::format(" · micro-batch {}", shape.micro_batch);
  const std::scoped_lock lock(used_);
  on_nodes_[nodes] = shape;
  asked_[nodes] = {
      .nodes = nodes, .text = std::move(text), .iteration = timed.duration, .samples = timed.samples};
  return {.duration = timed.duration, .samples = timed.samples, .nodes = nodes};
}

std::optional<ShapedStep> DegradedShapes::replicas(int nodes, BatchRule batch) {
  for (int data = std::min(own_data_, gpus_on(nodes) / (stage_gpus_ * own_depth_)); data > 0; --data) {
    const Shape shape = own_with(data, batch);
    const std::optional<Timed> timed = time_of(shape);
    if (timed && (timed->fits || !fits_)) return use(shape, *timed);
  }
  return std::nullopt;
}

int DegradedShapes::fewest_replicas(BatchRule batch) {
  int fewest = 1, enough = own_data_;
  while (fewest < enough) {
    const int data = fewest + (enough - fewest) / 2;
    const std::optional<Timed> timed = time_of(own_with(data, batch));
    const bool trains = timed && (timed->fits || !fits_);
    (trains ? enough : fewest) = trains ? data : data + 1;
  }
  return fewest;
}

// Twice as large as long as it fits, and as every replica has one. A schedule that refuses the number of
// micro-batches may take that of larger ones; where it takes none, the fewest samples made up count. Fewer
// replicas have larger shards under ZeRO, and more samples each.
std::int64_t DegradedShapes::largest_micro_batch(const Shape& shape) {
  return micro_batches_.answer({shape.pipeline, shape.data}, [&] {
    std::int64_t largest = 0, made_up = 0, fewest = 0;
    Shape grown = shape;
    for (grown.micro_batch = 1; grown.micro_batch * grown.data <= scenario_.training.global_batch_size;
         grown.micro_batch *= 2) {
      const Scenario scenario = scenario_of(grown);
      Diagnostics refusals;
      if (!prepare(scenario, refusals)) continue;
      if (memory_of(scenario).verdict() == Verdict::kOutOfMemory) break;
      const std::int64_t samples = scenario.training.global_batch_size;
      if (micro_batches_of(grown) == least_micro_batches(grown)) {
        largest = grown.micro_batch;
      } else if (made_up == 0 || samples <= fewest) {
        made_up = grown.micro_batch;
        fewest = samples;
      }
    }
    return largest > 0 ? largest : made_up;
  });
}

DegradedShapes::Shape DegradedShapes::own_on(int nodes) const {
  return own_with(std::min(own_data_, gpus_on(nodes) / (stage_gpus_ * own_depth_)), BatchRule::kKept);
}

std::optional<DegradedShapes::Shape> DegradedShapes::best_depth(int nodes) {
  std::optional<Shape> best;
  Duration least{};
  const auto consider = [&](const Shape& shape) {
    if (shape.data == 0 || shape.micro_batch == 0) return;
    const std::optional<Timed> timed = time_of(shape);
    if (!timed || !timed->fits || (best && timed->duration >= least)) return;
    best = shape;
    least = timed->duration;
  };
  consider(own_on(nodes));
  for (const int depth : depths_) {
    Shape shape{.pipeline = depth, .data = gpus_on(nodes) / (stage_gpus_ * depth)};
    if (shape.data == 0) continue;
    const bool may_grow = std::holds_alternative<TransformerSpec>(scenario_.model);
    shape.micro_batch = may_grow ? largest_micro_batch(shape) : scenario_.training.micro_batch_size;
    consider(shape);
  }
  return best;
}

bool DegradedShapes::some_fit() {
  return fits_ || best_depth(nodes()).has_value();
}

// One shape per number of nodes, independent of the caller. Where the best shape leaves nodes idle, the shape
// of its used nodes counts, which may be better still.
std::optional<ShapedStep> DegradedShapes::morph(int nodes) {
  return morphed_.answer(nodes, [&]() -> std::optional<ShapedStep> {
    if (!some_fit()) return replicas(nodes, BatchRule::kKept);
    const std::optional<Shape> best = best_depth(nodes);
    if (!best) {
      const std::scoped_lock lock(used_);
      refused_.insert(nodes);
      return std::nullopt;
    }
    const int used = nodes_for(gpus_of(*best));
    return used < nodes ? morph(used) : use(*best, time_of(*best).value());
  });
}

// The scenario's own depth stands for all.
std::string DegradedShapes::why_none(int nodes) const {
  const Shape shape = own_on(nodes);
  if (shape.data == 0)
    return fmt::format("a replica of {} stages takes {}", own_depth_,
                       counted(nodes_for(gpus_of(own_with(1, BatchRule::kKept))), "node"));
  const std::string name = fmt::format("dp {} · pp {}", shape.data, shape.pipeline);
  Diagnostics refusals;
  if (prepare(scenario_of(shape), refusals)) return name + " does not fit into memory";
  const std::vector<Diagnostic> sorted = refusals.sorted();
  const Diagnostic* first = first_error(sorted);
  return fmt::format("{}: {}: {}", name, first->path, first->message);
}

std::optional<std::string> DegradedShapes::refused() const {
  const std::scoped_lock lock(used_);
  if (refused_.empty()) return std::nullopt;
  const int most = *refused_.rbegin();
  std::string text = "no shape trains on " + counted_thousands(most, "node");
  if (refused_.size() > 1)
    text += fmt::format(", nor on {} of nodes", counted(refused_.size() - 1, "smaller number"));
  return text + ", and the job idles: " + why_none(most);
}

double DegradedShapes::with_slower_network(double factor) {
  return slower_networks_.answer(factor, [&] {
    Scenario scenario = scenario_;
    slow_network(scenario, factor);
    Diagnostics refusals;
    if (!prepare(scenario, refusals)) return factor;
    return std::max(1.0, to_seconds(simulate(scenario).iteration_time) / to_seconds(own_time_));
  });
}

double DegradedShapes::slow_traffic(double factor) {
  if (!scenario_.cluster || factor <= 1) return factor;
  return between_steps(factor, [this](double step) { return with_slower_network(step); });
}

const std::optional<ParallelPlan>& DegradedShapes::plan_of(const Shape& shape) {
  return plans_.answer(shape, [&]() -> std::optional<ParallelPlan> {
    Diagnostics refusals;
    std::optional<Prepared> prepared = prepare(scenario_of(shape), refusals);
    if (!prepared) return std::nullopt;
    return std::move(prepared->plan);
  });
}

double DegradedShapes::with_slow_ranks(const Shape& shape, const std::vector<int>& ranks, double factor) {
  return slow_ranks_.answer({shape, ranks, factor}, [&] {
    Scenario scenario = scenario_of(shape);
    scenario.faults.push_back({.kind = FaultKind::kSlowNode, .factor = factor});
    for (const int rank : ranks)
      scenario.faults.back().ranks.push_back(pipeline_member(*plan_of(shape), rank));
    const std::optional<Timed> usual = time_of(shape);
    Diagnostics refusals;
    if (!usual || !prepare(scenario, refusals)) return factor;
    const double pace = to_seconds(simulate(scenario).iteration_time) / to_seconds(usual->duration);
    return std::clamp(pace, 1.0, factor);
  });
}

std::optional<DegradedShapes::Shape> DegradedShapes::planned_on(int nodes) {
  std::optional<Shape> shape;
  {
    const std::scoped_lock lock(used_);
    if (const auto used = on_nodes_.find(nodes); used != on_nodes_.end()) shape = used->second;
  }
  return shape && plan_of(*shape) ? shape : std::nullopt;
}

std::vector<double> DegradedShapes::slow_replicas(int nodes, const std::vector<SlowPlace>& slow) {
  struct Slow {
    std::set<int> ranks;  // pipeline ranks
    double compute = 1, traffic = 1;
  };
  const std::optional<Shape> shape = planned_on(nodes);
  if (!shape) return {slowest_factor(slow)};
  const ParallelPlan& plan = *plan_of(*shape);
  std::map<int, Slow> by_replica;
  for (const SlowPlace& at : slow) {
    const int end = std::min(gpus_on(at.place + 1), plan.gpus());
    for (int rank = gpus_on(at.place); rank < end; ++rank) {
      Slow& replica = by_replica[plan.mesh.coordinate(rank, Axis::kData)];
      if (at.compute > 1) replica.ranks.insert(plan.mesh.coordinate(rank, Axis::kPipeline));
      replica.compute = std::max(replica.compute, at.compute);
      replica.traffic = std::max(replica.traffic, at.traffic);
    }
  }
  std::vector<double> paces;
  for (const auto& [index, replica] : by_replica) {
    const std::vector<int> ranks(replica.ranks.begin(), replica.ranks.end());
    const double pace =
        between_steps(replica.compute, [&](double step) { return with_slow_ranks(*shape, ranks, step); });
    paces.push_back(std::max(pace, replica.traffic));
  }
  return paces.empty() ? std::vector<double>{1} : paces;
}

Holders DegradedShapes::holders(int nodes) {
  const std::optional<Shape> shape = planned_on(nodes);
  if (!shape) {
    Holders alone;
    for (int node = 0; node < nodes; ++node) alone.push_back({node});
    return alone;
  }
  const JobStates states{
      .model = scenario_.model, .plan = *plan_of(*shape), .zero_stage = scenario_.parallelism.zero_stage};
  return held_by_nodes(states, {node_sizes_.begin(), node_sizes_.begin() + nodes});
}

void DegradedShapes::list_with(const ShapedStep& step) {
  const std::scoped_lock lock(used_);
  if (const auto shape = asked_.find(step.nodes); shape != asked_.end())
    shape->second.iteration = step.duration;
}

std::vector<GoodputShape> DegradedShapes::asked() const {
  const std::scoped_lock lock(used_);
  std::vector<GoodputShape> shapes;
  for (auto shape = asked_.rbegin(); shape != asked_.rend(); ++shape) shapes.push_back(shape->second);
  return shapes;
}

}  // namespace stagecraft
