// A job under Oobleck: its pipelines, its step time, and the cost of a change.
//
// Composes the parts of section 5: templates, the instantiation of the nodes at hand, reconfiguration after
// failures, state copy. Prices are kept, so that the same pipelines are priced once: one thread at a time.
//
// Beyond the published rules:
//   - Nodes that no pipeline uses stand by: after a failure they take the places of lost nodes of their group
//     before anybody borrows.
//   - A pipeline that merged to more nodes than the largest template has leaves the last of them to stand by.
//   - Merging can leave fewer than f + 1 pipelines of nodes that suffice for them: then all are composed
//     anew, and the guarantee holds again. (Not under the published rule.)
//   - Only pipelines whose nodes changed are put in order anew: the others need not move state.
//
//   source  Jang et al., "Oobleck", SOSP 2023, sections 4 and 5; docs/resilience.md, section 5
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/units.hpp"
#include "sim/goodput/oobleck/batches.hpp"
#include "sim/goodput/oobleck/instantiate.hpp"
#include "sim/goodput/oobleck/reconfigure.hpp"
#include "sim/goodput/oobleck/state_copy.hpp"
#include "sim/goodput/oobleck/templates.hpp"

namespace stagecraft {

struct OobleckSpec {
  std::vector<AlikeNodes> groups = {};  // the cluster, nodes numbered through
  int gpus_per_node = 1;
  int min_nodes = 1;      // n0: the least that hold the model
  int max_failures = 1;   // f: at once, to be survived without a checkpoint
  int micro_batches = 1;  // B: of a step, shared by all pipelines
  // Bytes of each layer's state, which a node that takes the layer must receive.
  std::vector<Bytes> layer_state = {};
  CopyLinks links = {};
  PipelineRule rule = PipelineRule::kCorrected;
  PipelineTime time = {};   // empty: the equations of partition.hpp
  bool interpolate = true;  // call `time` only at 1, 2, 3, 4, 6, 8, 12, ... and interpolate linearly
  StepTail tail = {};       // empty: nothing beyond the pipelines
  std::optional<int> search_micro_batches = {};  // nullopt: templates are cut for 4 S, as the paper does
};

// The templates that the spec asks for.
[[nodiscard]] TemplateRange range_of(const OobleckSpec& spec);

// Errors of a spec (no plan exists) and warnings; without source places.
//   too-many-failures      (f + 1) n0 > N, with both numbers and the way out
//   too-few-layers         n0 nodes have more stages than the model has layers
//   too-few-micro-batches  fewer than f + 1
//   counts-not-covered     n_max < 2 n0 - 1: which counts of nodes cannot be used whole
//   templates-end-early    N - f n0 nodes would need more stages than there are layers
[[nodiscard]] std::vector<Diagnostic> check_oobleck(const OobleckSpec& spec);

struct OobleckLayout {
  Pipelines pipelines = {};    // nodes in stage order
  std::vector<int> idle = {};  // nodes that are up and have no place, by number

  friend bool operator==(const OobleckLayout&, const OobleckLayout&) = default;
};

struct OobleckStep {
  std::vector<int> templates = {};  // [pipeline]
  BatchShares shares = {};
  Duration duration{};
};

struct OobleckFailure {
  OobleckLayout layout = {};
  std::vector<PipelineEvent> events = {};
  bool runs = true;            // false: fewer than n0 nodes are left
  bool guarantee_kept = true;  // are there at least f + 1 pipelines?
};

class OobleckPlanner {
 public:
  // requires a spec that check_oobleck() finds no error in.
  explicit OobleckPlanner(OobleckSpec spec);

  // The best pipelines of these nodes (each number once). Pipelines of `old` with a wanted size stay
  // unchanged; the nodes of the others fill the rest in their order, new nodes last. No pipelines where there
  // are fewer than n0 nodes.
  [[nodiscard]] OobleckLayout compose(std::vector<int> nodes, const OobleckLayout& old = {});

  // The layout after the loss of nodes.
  [[nodiscard]] OobleckFailure fail(const OobleckLayout& layout, std::span<const int> failed);

  // requires pipelines. The reference holds until the planner is gone.
  [[nodiscard]] const OobleckStep& step(const OobleckLayout& layout);
  // Step time with the same shares when nodes take `factor(node)` >= 1 times as long: their stages are slowed
  // and the equations evaluated again. A time from a callback is multiplied by the largest factor of the
  // pipeline.
  [[nodiscard]] Duration slowed_step(const OobleckLayout& layout,
                                     const std::function<double(int node)>& factor);
  // The shortest step of any templates on any of the nodes: X* of the cluster under this policy. In a
  // heterogeneous cluster, of pipelines that do not mix groups.
  [[nodiscard]] Duration least_step();

  // Layers held by the nodes of a running layout.
  [[nodiscard]] std::vector<NodeLayers> layers(const OobleckLayout& layout);
  // State copy needed to run `layout` from nodes that hold the layers of `before`.
  [[nodiscard]] StateCopy copy(std::span<const NodeLayers> before, const OobleckLayout& layout);

  [[nodiscard]] const OobleckSpec& spec() const { return spec_; }
  [[nodiscard]] Templates& templates() { return templates_; }
  [[nodiscard]] const TemplateRange& range() const { return range_; }
  [[nodiscard]] int nodes() const { return range_.nodes; }
  [[nodiscard]] int group(int node) const { return groups_.at(static_cast<std::size_t>(node)); }
  // Micro-batches of a pipeline of `nodes` nodes when all nodes work, rounded; at least 1.
  [[nodiscard]] int share(int nodes) const;

 private:
  [[nodiscard]] Composition composition(std::span<const int> nodes) const;
  [[nodiscard]] int template_of(const std::vector<int>& pipeline);
  [[nodiscard]] InstantiateRequest request(Composition available) const;
  [[nodiscard]] std::vector<int> draw_pipeline(const Composition& size, std::vector<int>& pool) const;
  void keep_guarantee(OobleckFailure& after, const OobleckLayout& before);
  void in_group_order(std::vector<int>& pipeline) const;
  void place_stand_bys(OobleckLayout& layout, std::span<const int> failed,
                       std::vector<PipelineEvent>& events) const;

  OobleckSpec spec_;
  TemplateRange range_;
  std::vector<int> groups_;  // [node]
  Templates templates_;
  std::map<Composition, std::optional<Instantiation>> instantiations_;
  std::optional<Duration> least_step_;
  std::map<std::vector<int>, OobleckStep> steps_;  // by the templates of the pipelines in order
};

}  // namespace stagecraft
