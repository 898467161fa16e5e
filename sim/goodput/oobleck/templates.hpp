// Pipeline templates: how a pipeline of n nodes is cut into stages, for every n that a job may need.
//
// n0: fewest nodes that hold the model. f: simultaneous failures to survive. With templates for n0 .. N - f
// n0 nodes, any remaining number of nodes can be covered by at least f + 1 pipelines without a search: after
// a failure each pipeline takes the template of its new size.
//
// A stage is one group of q GPUs of one node, so a node of g GPUs holds g / q consecutive stages. q is the
// same for all stages of a template. It is chosen by the time at the pipeline's share of the micro-batches,
// because templates with different numbers of stages cannot be compared at 4 S micro-batches. For a given q
// the cut is exact (partition.hpp) where all nodes are identical.
//
// Heterogeneous clusters are node groups with costs of their own. A pipeline within one group is cut exactly;
// one that mixes groups is cut so that its slowest stage is least, with its nodes in the order of their
// numbers: its time is right for that cut, but another cut or order may be better.
//
//   source  Jang et al., "Oobleck", SOSP 2023, sections 4.1.1 and 4.1.2; docs/resilience.md, sections 5.1 to
//           5.3
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "sim/goodput/oobleck/partition.hpp"

namespace stagecraft {

struct LayerCost {
  Duration forward{};
  Duration backward{};
  [[nodiscard]] Duration work() const { return forward + backward; }
};

// Cost of each layer for one micro-batch on a stage of `gpus` GPUs of one node.
struct StageOption {
  int gpus = 1;
  std::vector<LayerCost> layers = {};
};

// One option per power of two that divides `gpus_per_node`: q GPUs share forward and backward, and add their
// all-reduce where q > 1 (equation 1 of the paper). Other counts would leave a GPU idle. Shares are rounded
// to the nearest nanosecond.
using InNodeAllReduce = std::function<LayerCost(int layer, int gpus)>;
[[nodiscard]] std::vector<StageOption> stage_options(const std::vector<LayerCost>& one_gpu, int gpus_per_node,
                                                     const InNodeAllReduce& all_reduce);

// A group of identical nodes. Node numbers run through the groups in order.
struct AlikeNodes {
  int nodes = 0;
  std::vector<StageOption> options = {};  // at least one; the same GPU counts in every group
  std::string name = {};                  // name in reports; may be empty
};
// The options of nodes that are slower by `factor`.
[[nodiscard]] std::vector<StageOption> scaled(std::vector<StageOption> options, double factor);

// Number of nodes of each group in a pipeline.
using Composition = std::vector<int>;
[[nodiscard]] int nodes_of(const Composition& composition);

struct PipelineTemplate {
  Composition composition = {};  // stage order: nodes of group 0 first
  int gpus_per_stage = 1;
  int stages_per_node = 1;
  Partition partition = {};
  PipelineLine line = {};

  [[nodiscard]] int nodes() const { return nodes_of(composition); }
  [[nodiscard]] int stages() const { return static_cast<int>(partition.work.size()); }
  // The layers [first, end) on node `index` of the pipeline.
  struct Layers {
    int first = 0;
    int end = 0;
    friend bool operator==(const Layers&, const Layers&) = default;
  };
  [[nodiscard]] Layers layers_on(int index, int model_layers) const;
};

// The time of a pipeline from outside, for instance from the simulator, instead of the equations. Must not
// fall as micro-batches grow, and must answer the same from any thread.
using PipelineTime = std::function<Duration(const PipelineTemplate&, int micro_batches)>;

// Makes templates on demand and keeps them; for one thread at a time.
class Templates {
 public:
  struct Rules {
    PipelineRule rule = PipelineRule::kCorrected;
    PipelineTime time = {};  // empty: the equations
    // Call `time` only at 1, 2, 3, 4, 6, 8, 12, ... micro-batches and interpolate linearly: for expensive
    // callbacks.
    bool interpolate = false;
    double micro_batches_per_node = 1;  // a pipeline's share, for the choice of q
    // Number of micro-batches to optimise the cut for; nullopt: 4 S, as in the paper.
    std::optional<int> search_micro_batches = {};
  };
  // requires groups with the same numbers of layers and options of the same GPU counts.
  Templates(std::vector<AlikeNodes> groups, int gpus_per_node, Rules rules);

  // The number of the template of a composition; nullopt when it has more stages than there are layers.
  // requires at least one node.
  [[nodiscard]] std::optional<int> find(const Composition& composition);
  [[nodiscard]] const PipelineTemplate& at(int number) const;

  // The time of a pipeline with this template, by the rule or from outside. requires micro_batches >= 1.
  [[nodiscard]] Duration time(int number, int micro_batches);
  // The most micro-batches, up to `limit`, done within `time`; 0 where not even one is.
  [[nodiscard]] int within(int number, Duration time, int limit);

  [[nodiscard]] int layers() const { return layers_; }
  [[nodiscard]] int groups() const { return static_cast<int>(groups_.size()); }

 private:
  [[nodiscard]] std::optional<PipelineTemplate> make(const Composition& composition) const;
  [[nodiscard]] std::optional<PipelineTemplate> make(const Composition& composition,
                                                     std::size_t option) const;
  [[nodiscard]] std::optional<Partition> cut(const Composition& composition, std::size_t option) const;
  [[nodiscard]] Duration asked(int number, int micro_batches);

  std::vector<AlikeNodes> groups_;
  int gpus_per_node_;
  Rules rules_;
  int layers_;
  std::vector<std::vector<std::vector<Duration>>> work_;  // [group][option][layer]
  std::vector<std::vector<PartitionSearch>> searches_;    // [group][option]
  std::map<Composition, std::optional<int>> numbers_;
  std::vector<PipelineTemplate> templates_;
  std::vector<std::map<int, Duration>> times_;  // [template]: times returned by the callback
};

// The templates that a job of `nodes` nodes needs to survive `max_failures` at once.
struct TemplateRange {
  int nodes = 0;
  int min_nodes = 1;     // n0
  int max_failures = 0;  // f
  int most_nodes = 0;    // n_max = N - f n0, or fewer where the layers cannot be cut into so many stages

  // (f + 1) n0 <= N; the members below require it.
  [[nodiscard]] bool survivable() const { return (max_failures + 1) * min_nodes <= nodes; }
  // n_max >= 2 n0 - 1: consecutive sizes reach every count from k n0 to k n_max, and these ranges touch.
  [[nodiscard]] bool enough_for_every_count() const { return most_nodes >= 2 * min_nodes - 1; }
};
[[nodiscard]] TemplateRange template_range(int nodes, int min_nodes, int max_failures, int stage_limit);

// The counts from (f + 1) n0 to N that are no sum of at least f + 1 sizes: of these, some nodes idle.
[[nodiscard]] std::vector<int> counts_not_covered(const TemplateRange& range);

}  // namespace stagecraft
