// Iteration times of the remaining nodes of a job: simulate(), each shape once.
//
//   node    a server of the cluster; without one (abstract stages) each pipeline rank is a node of its own
//   shape   a pipeline depth, a number of replicas and a micro-batch size, on the first nodes that hold them;
//           of the last node only a part where they do not fill it
//   batch   kept: replicas do ceil(B / (d b)) micro-batches each, or the next number that the schedule takes,
//           and the step still counts B samples; the fuller replicas decide how long it takes. Shrunk: each
//           replica keeps its micro-batches, and the step counts fewer samples.
//   order   the scenario's schedule; of a single stage one chunk under 1f1b
//
// A shape that the scenario's schedule, degrees or memory do not allow cannot train. Called from many
// threads; the answers do not depend on the order of calls.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/goodput/policy.hpp"
#include "sim/goodput/slowness.hpp"
#include "sim/report/goodput_report.hpp"
#include "sim/resilience/held_states.hpp"
#include "sim/resilience/memo.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

enum class BatchRule : std::uint8_t { kKept, kShrunk };

class DegradedShapes {
 public:
  // `full`: the simulation of the scenario with all its nodes.
  DegradedShapes(const Scenario& scenario, const Simulation& full);

  [[nodiscard]] int nodes() const { return static_cast<int>(node_sizes_.size()); }
  // Does the scenario's own plan fit into memory? If not, its replicas need not fit either.
  [[nodiscard]] bool fits() const { return fits_; }
  // Does a depth fit that morph() may choose on all nodes?
  [[nodiscard]] bool some_fit();

  // The most replicas of the scenario's own pipeline that `nodes` hold.
  [[nodiscard]] std::optional<ShapedStep> replicas(int nodes, BatchRule batch);
  // The fewest replicas of that pipeline that can train, if whatever more can as well.
  [[nodiscard]] int fewest_replicas(BatchRule batch);
  // The least time among pipeline depths that divide the layers, each with the largest micro-batch that fits,
  // and the scenario's own depth and micro-batch. Abstract stages keep their micro-batch, since their costs
  // are for it. The batch is kept. Where nodes stay idle, the shape of the used nodes alone counts if it is
  // better. Where no depth fits on all nodes, the scenario's own, as if it did.
  //   source  Varuna (docs/resilience.md, section 6)
  [[nodiscard]] std::optional<ShapedStep> morph(int nodes);

  // Factor on a step of the whole job when the traffic of one node takes `factor` >= 1 times as long. It is
  // simulated with all links between nodes, and background traffic on them, slowed by the factor, because
  // rings and pipelines run at the pace of their slowest link (an upper bound). Factors 1, 1.25, ..., 2, 3,
  // 4.5, ... are simulated, others interpolated linearly. Abstract stages without a cluster have no network
  // to slow down: `factor` itself.
  [[nodiscard]] double slow_traffic(double factor);

  // Slowdown of each data replica with slow places (slowness.hpp), for the shape used on `nodes` nodes. It is
  // simulated with the passes of the pipeline ranks on those nodes slowed from the start of the iteration, at
  // the same factors as above. Ranks of one replica with different slowness all count as the slowest, and
  // slow traffic counts for the whole replica: upper bounds. Shapes that were never used, and those whose
  // simulation has no faults, take their slowest place's factor.
  [[nodiscard]] std::vector<double> slow_replicas(int nodes, const std::vector<SlowPlace>& slow);

  // Nodes that hold each state of the shape used on `nodes` nodes. In shapes that were never used every node
  // has a state of its own.
  [[nodiscard]] Holders holders(int nodes);

  // The shape used on step.nodes is listed with this step, which the policy makes longer than it is simulated.
  void list_with(const ShapedStep& step);
  // Shapes used so far with their steps, most nodes first.
  [[nodiscard]] std::vector<GoodputShape> asked() const;
  // On how many nodes morph() had no shape so far, and why on the most of them.
  [[nodiscard]] std::optional<std::string> refused() const;

 private:
  struct Shape {
    int pipeline = 1, data = 1;
    std::int64_t micro_batch = 1;
    BatchRule batch = BatchRule::kKept;
    friend auto operator<=>(const Shape&, const Shape&) = default;
  };
  struct Timed {
    Duration duration{};
    std::int64_t samples = 0;
    bool fits = true;  // into memory
  };
  [[nodiscard]] Shape own() const { return own_with(own_data_, BatchRule::kKept); }
  [[nodiscard]] Shape own_with(int replicas, BatchRule batch) const;
  [[nodiscard]] Shape own_on(int nodes) const;  // no replicas: there are too few nodes
  [[nodiscard]] int nodes_for(int gpus) const;  // the first that have them
  [[nodiscard]] int gpus_on(int nodes) const;   // GPUs of the first nodes
  [[nodiscard]] int gpus_of(const Shape& shape) const;
  [[nodiscard]] std::int64_t samples_of(const Shape& shape) const;
  // Micro-batches of a replica that hold its samples, and those that the schedule takes.
  [[nodiscard]] std::int64_t least_micro_batches(const Shape& shape) const;
  [[nodiscard]] std::int64_t micro_batches_of(const Shape& shape) const;
  [[nodiscard]] Scenario scenario_of(const Shape& shape) const;
  [[nodiscard]] std::optional<Timed> time_of(const Shape& shape);
  [[nodiscard]] std::int64_t largest_micro_batch(const Shape& shape);  // for its degrees; 0: none fits
  [[nodiscard]] std::optional<Shape> best_depth(int nodes);            // of those that fit
  [[nodiscard]] std::string why_none(int nodes) const;
  [[nodiscard]] double with_slower_network(double factor);
  [[nodiscard]] double with_slow_ranks(const Shape& shape, const std::vector<int>& ranks, double factor);
  [[nodiscard]] const std::optional<ParallelPlan>& plan_of(const Shape& shape);
  [[nodiscard]] std::optional<Shape> planned_on(int nodes);  // the shape used there, where it has a plan
  ShapedStep use(const Shape& shape, const Timed& timed);

  const Scenario& scenario_;
  std::vector<int> node_sizes_;  // GPUs
  int stage_gpus_ = 1;           // tensor · context
  std::vector<int> depths_;
  int own_depth_ = 1, own_data_ = 1;
  Duration own_time_{};
  bool fits_ = true;

  Memo<Shape, std::optional<Timed>> timed_;
  Memo<std::pair<int, int>, std::int64_t> micro_batches_;  // by depth and replicas
  Memo<int, std::optional<ShapedStep>> morphed_;
  Memo<double, double> slower_networks_;
  Memo<Shape, std::optional<ParallelPlan>> plans_;
  Memo<std::tuple<Shape, std::vector<int>, double>, double> slow_ranks_;  // pipeline ranks of a replica
  mutable std::mutex used_;  // guards what was used on so many nodes
  std::map<int, Shape> on_nodes_;
  std::map<int, GoodputShape> asked_;
  std::set<int> refused_;  // numbers of nodes without a shape
};

}  // namespace stagecraft
