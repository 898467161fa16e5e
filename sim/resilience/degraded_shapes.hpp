// Iteration times of what remains of a job when nodes are gone: simulate(), each shape once.
//
//   node    a server of the cluster; without one (abstract stages) each pipeline rank is a node of its own
//   shape   a pipeline depth, a number of replicas and a micro-batch size, on the first nodes that hold them;
//           of the last node only a part where they do not fill it
//   batch   kept: replicas do ceil(B / (d b)) micro-batches each, and the step still counts B samples; the
//           fuller replicas decide how long it takes. Shrunk: each replica keeps its micro-batches, and the
//           step counts fewer samples.
//
// A shape that the scenario's schedule, degrees or memory do not allow cannot train. Asked from many threads:
// the answers, not their order, are what counts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/goodput/policy.hpp"
#include "sim/goodput/slowness.hpp"
#include "sim/report/goodput_report.hpp"
#include "sim/resilience/held_states.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

enum class BatchRule : std::uint8_t { kKept, kShrunk };

class DegradedShapes {
 public:
  // `full`: what the scenario says with all its nodes.
  DegradedShapes(const Scenario& scenario, const Simulation& full);

  [[nodiscard]] int nodes() const { return static_cast<int>(node_sizes_.size()); }
  // Whether the scenario's own plan fits into memory; where it does not, no shape is asked to.
  [[nodiscard]] bool fits() const { return fits_; }

  // The most replicas of the scenario's own pipeline that `nodes` hold.
  [[nodiscard]] std::optional<ShapedStep> replicas(int nodes, BatchRule batch);
  // The least time among pipeline depths that divide the layers, each with the largest micro-batch that fits;
  // abstract stages keep theirs, which is what their costs are of. The batch is kept. Where that leaves nodes
  // idle, what the others would do without these. source: Varuna (docs/resilience.md, section 6).
  [[nodiscard]] std::optional<ShapedStep> morph(int nodes);

  // How many times as long a step of the whole job takes when the traffic of one node takes `factor` >= 1
  // times as long: simulated with all links between nodes, and others' traffic on them, so much slower, because
  // rings and pipelines go at the pace of their slowest link (an upper bound), at factors of 1, 1.25, ..., 2, 3,
  // 4.5, ... and linear between. Abstract stages without a cluster have no network to slow down: `factor` itself.
  [[nodiscard]] double slow_traffic(double factor);

  // How many times as long each data replica of the shape that was asked for on `nodes` takes that has slow
  // places (slowness.hpp): simulated with the passes of the pipeline ranks on those nodes so much slower
  // from the iteration's begin, at the same factors as above and linear between. Ranks of one replica that
  // differ in slowness are all taken for the slowest of them, and traffic that is slow counts for the whole
  // of it: bounds from above. Shapes that nobody asked for, and those whose simulation knows no faults, take
  // their slowest place's factor.
  [[nodiscard]] std::vector<double> slow_replicas(int nodes, const std::vector<SlowPlace>& slow);

  // Which nodes hold each state of the shape that was asked for on `nodes`. Of shapes that nobody asked for
  // every node has one of its own.
  [[nodiscard]] Holders holders(int nodes);

  // What was asked for so far, most nodes first.
  [[nodiscard]] std::vector<GoodputShape> asked() const;

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
  };
  [[nodiscard]] Shape own() const;
  [[nodiscard]] int nodes_for(int gpus) const;  // the first that have them
  [[nodiscard]] int gpus_on(int nodes) const;   // of the first nodes
  [[nodiscard]] int gpus_of(const Shape& shape) const;
  [[nodiscard]] std::int64_t samples_of(const Shape& shape) const;
  [[nodiscard]] Scenario scenario_of(const Shape& shape) const;
  // The functions below change what is memoised, under the lock.
  [[nodiscard]] std::optional<Timed> time_of(const Shape& shape);
  [[nodiscard]] std::int64_t largest_micro_batch(Shape shape);  // of its depth and replicas; 0: none fits
  [[nodiscard]] std::optional<Shape> best_depth(int nodes);
  [[nodiscard]] std::optional<ShapedStep> morphed(int nodes);
  [[nodiscard]] double with_slower_network(double factor);
  [[nodiscard]] double with_slow_ranks(const Shape& shape, const std::vector<int>& ranks, double factor);
  [[nodiscard]] const std::optional<ParallelPlan>& plan_of(const Shape& shape);
  ShapedStep remember(const Shape& shape, const Timed& timed);

  const Scenario& scenario_;
  std::vector<int> node_sizes_;  // GPUs
  int replica_ranks_ = 1;        // tensor · context
  std::vector<int> depths_;
  int own_depth_ = 1, own_data_ = 1;
  Duration own_time_{};
  bool fits_ = true;

  mutable std::mutex mutex_;
  std::map<Shape, std::optional<Timed>> timed_;
  std::map<std::pair<int, int>, std::int64_t> micro_batches_;  // by depth and replicas
  std::map<int, std::optional<ShapedStep>> morphed_;
  std::map<double, double> slower_networks_;
  std::map<Shape, std::optional<ParallelPlan>> plans_;
  std::map<std::tuple<Shape, std::vector<int>, double>, double> slow_ranks_;  // pipeline ranks of a replica
  std::map<int, Shape> on_nodes_;
  std::map<int, GoodputShape> asked_;
};

}  // namespace stagecraft
