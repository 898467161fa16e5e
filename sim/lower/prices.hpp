// What each piece of an iteration costs: the bridge between models, hardware and the task graph.
//
// Prices know stages, edges and ranks, and no operator: pricing a transformer (price_transformer) and taking
// an abstract pipeline at its word (price_stages) both end here, and lowering reads nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/model_spec.hpp"
#include "sim/lower/category.hpp"
#include "sim/lower/offload_price.hpp"
#include "sim/lower/traffic.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/plan/specs.hpp"
#include "sim/program/program.hpp"
#include "sim/schedule/schedule.hpp"
#include "topology/cluster.hpp"

namespace stagecraft {

// Time by what it is spent on, and how well each part of it is known.
class PassPrice {
 public:
  void add(Category category, Duration time, Provenance provenance);
  void add(const PassPrice& other, std::int64_t times = 1);  // one after another
  // Adds a collective or message on links that are shared, one after another in the order of adding.
  void add(const NetworkUse& use, Provenance provenance);

  // Moves `part` of a price from provenance `from` to `to`.
  void restate(Duration part, Provenance from, Provenance to);

  // Takes away up to `most` of what a category has, because something else covers it; returns how much.
  Duration hide(Category category, Duration most);

  // Whatever hides a part of it, the price stays at `least`, or at all that it is.
  void keep_at_least(Duration least);
  [[nodiscard]] Duration least() const { return std::min(least_, total()); }
  // The least that was asked for, and what the price lacks to it.
  [[nodiscard]] Duration wanted() const { return least_; }
  [[nodiscard]] Duration missing() const { return std::max(Duration::zero(), least_ - total()); }

  [[nodiscard]] Duration total() const;
  [[nodiscard]] Duration of(Category category) const {
    return by_category_[static_cast<std::size_t>(category)];
  }
  [[nodiscard]] const ByProvenance& seconds_by_provenance() const { return by_provenance_; }
  [[nodiscard]] std::vector<TaskPart> parts() const;  // nonzero categories; add up to total()
  // The network uses of a price that is communication alone; their times add up to total(). Empty where the
  // network is closed-form.
  [[nodiscard]] const std::vector<NetworkUse>& network() const { return network_; }

 private:
  std::array<Duration, kCategoryCount> by_category_{};
  ByProvenance by_provenance_{};
  Duration least_{};
  std::vector<NetworkUse> network_{};
};

// A unit of sharded weights: a layer, the embedding or the head of a stage.
struct UnitPrice {
  PassPrice gather;       // its weights put together; ZeRO 3
  PassPrice reduce;       // its gradients summed and scattered; ZeRO 2 and 3
  PassPrice replicate{};  // then summed over the replicas of its shard, on a stream of its own
  // What its own operators take of the passes, what is recomputed with the input gradient: a pass is cut in
  // these proportions.
  Duration forward{}, input_gradient{}, weight_gradient{};
  bool gathered_twice = false;  // of the backward: for what is made again, and for the backward itself
};

// What the passes of a stage hold on the GPU, per micro-batch.
struct PassMemory {
  Bytes kept;                     // from the start of the forward to the end of the backward
  Bytes freed_by_input_gradient;  // of `kept` and `made_again`, what is freed at the end of I when the
                                  // backward is split; W frees the rest
  Bytes forward_transient;        // while the forward runs
  Bytes backward_transient;  // while the (input-gradient) backward runs: what is recomputed, gradients under
                             // way
  Bytes made_again{};        // by a recompute pass, from its start to the end of the backward
  // Gradients of all micro-batches together, where they are not there throughout: from the start of the first
  // pass that makes gradients of the stage's weights to the end of the last.
  Bytes gradients{};

  friend bool operator==(const PassMemory&, const PassMemory&) = default;
};

struct StagePrice {
  PassPrice forward, recompute, input_gradient, weight_gradient;
  PassPrice unhidden{};  // what an input gradient takes longer whose weight gradient is put aside
  PassMemory memory{};
  // ZeRO 2 and 3, in model order; empty otherwise. Gathers run in every forward pass, and again in every
  // backward pass unless `kept_gathered`; reductions run in every backward pass, last unit first.
  std::vector<UnitPrice> units{};
  bool kept_gathered = false;
  PassTraffic traffic{};  // empty where the network is closed-form

  // Of one micro-batch: what is made again and both gradients; with the forward, all of it.
  [[nodiscard]] Duration backward() const;
  [[nodiscard]] Duration total() const { return forward.total() + backward(); }
};

// The prices that a pass is made of.
class PassParts {
 public:
  void push_back(const PassPrice& part) { parts_[size_++] = &part; }
  [[nodiscard]] auto begin() const { return parts_.begin(); }
  [[nodiscard]] auto end() const { return parts_.begin() + static_cast<std::ptrdiff_t>(size_); }

 private:
  std::array<const PassPrice*, 3> parts_{};
  std::size_t size_ = 0;
};
// `recomputes`: what was not kept is made again in its backward, and not by a pass of its own.
[[nodiscard]] PassParts parts_of(const StagePrice& stage, Pass pass, bool recomputes);
// The sum of these parts: all that the pass takes.
[[nodiscard]] PassPrice pass_price(const StagePrice& stage, Pass pass, bool recomputes);
// What the same parts of the pass exchange.
[[nodiscard]] PassExchanges exchanges_of(const PassTraffic& stage, Pass pass, bool recomputes);

// What a pass takes when it starts and frees when it ends; its transient is there while it runs.
struct PassHold {
  Bytes taken, transient, freed;
};
// A micro-batch holds its activations from the start of its forward, or what is made again from the start of
// its recompute pass, to the end of its backward; where that is split, its input gradient frees a part. What
// no recompute pass makes again is the backward's transient. Without gradients, which no one pass holds.
[[nodiscard]] PassHold hold_of(const PassMemory& memory, Pass pass);

// Messages over the boundary from a stage to the next; zero when both live on one rank.
struct EdgePrice {
  PassPrice forward, backward;
};

// End of the iteration, and its start under ZeRO, for one pipeline rank.
struct RankPrice {
  std::vector<std::vector<PassPrice>> gradient_buckets;  // [chunk][bucket], in the order of the backward pass
  std::vector<std::vector<PassPrice>>
      parameter_buckets;  // [chunk][bucket], in the order of the forward pass; ZeRO >= 1
  // [chunk]: the all-reduce with the rank that has the other copy of the stage, where there are two copies.
  std::vector<PassPrice> copies;
  PassPrice tied_embedding;  // all-reduce between the ranks of the first and the last stage; of rank 0
  PassPrice gradient_norm;   // over all that hold parts of the model
  PassPrice partial_norm, norm_message;  // over those of this pipeline rank; one number to the next rank
  PassPrice optimizer;
};

// Visits the prices of all that a rank does beside its passes, once an iteration.
template <class Visit>
void for_each_price(const RankPrice& rank, Visit visit) {
  for (const auto* lists : {&rank.gradient_buckets, &rank.parameter_buckets})
    for (const std::vector<PassPrice>& chunk : *lists)
      for (const PassPrice& bucket : chunk) visit(bucket);
  for (const PassPrice& copy : rank.copies) visit(copy);
  for (const PassPrice* one :
       {&rank.tied_embedding, &rank.gradient_norm, &rank.partial_norm, &rank.norm_message, &rank.optimizer})
    visit(*one);
}

struct IterationPrices {
  std::vector<StagePrice> stages;  // of each copy: StagePlaces::index_of()
  std::vector<EdgePrice>
      edges;  // behind each stage; behind the last of a copy there is none, and it is empty
  std::vector<RankPrice> ranks;  // pipeline ranks
  PassPrice host;                // once an iteration
  double unit_load = 1;          // of what compute can lose to the traffic of units, so much it loses
  OffloadPrice offload{};        // its stalls and steps are in the passes and the optimizer already
  PatternTable patterns{};       // of all traffic above; empty where the network is closed-form
};

struct PlacementMemo;
class CollectiveMemo;

struct PricingRequest {
  const ParallelPlan& plan;
  const ParallelSpec& parallelism;
  const TrainingSpec& training;
  const OverlapSpec& overlap;
  const OptionsSpec& options;
  const OffloadSpec& offload;
  std::optional<int> gpus = {};  // of the job, where the plan prices a part of it; absent: the plan's
  bool expert_pairs = false;     // overlap.expert hides exchanges: shared experts do not
  bool shared_links = false;     // note what everything puts on the links of the cluster
  // Placements of this cluster, these degrees and this order; nullptr: none is remembered. Not with shared
  // links.
  PlacementMemo* memo = nullptr;
  CollectiveMemo* collectives = nullptr;  // of this cluster and profile, or nullptr
};

[[nodiscard]] Shard shard_of(const PricingRequest& request);

// What a GPU of a stage sends to its counterpart of the next for a micro-batch, and gets back; its last stage
// sends to nobody.
[[nodiscard]] Bytes message_bytes(const TransformerSpec& model, const PricingRequest& request);
[[nodiscard]] Bytes message_bytes(const StagesSpec& model, int stage);

[[nodiscard]] IterationPrices price_transformer(const TransformerSpec& model, const HardwareProfile& profile,
                                                const Cluster& cluster, const PricingRequest& request);

// `cluster` may be null: messages and reductions are then free. `profile` may be null: collectives in a node
// then take the defaults of collective_cost().
[[nodiscard]] IterationPrices price_stages(const StagesSpec& model, const HardwareProfile* profile,
                                           const Cluster* cluster, const PricingRequest& request);

}  // namespace stagecraft
