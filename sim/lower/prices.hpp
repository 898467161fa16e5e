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
#include "models/by_pass.hpp"
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

  // Removes up to `most` of a category's time, because other work covers it. Returns the removed time.
  Duration hide(Category category, Duration most);

  // Sets a lower bound: a fused pair cannot hide time below `least`, or below total() where that is smaller.
  void keep_at_least(Duration least);
  [[nodiscard]] Duration least() const { return std::min(least_, total()); }
  // The lower bound as it was set, and the time that total() is short of it.
  [[nodiscard]] Duration wanted() const { return least_; }
  [[nodiscard]] Duration missing() const { return std::max(Duration::zero(), least_ - total()); }

  // Exposed tensor, context and expert traffic, and what of it no partner hides: where each layer waits for its
  // host, in layers that would wait so much longer. Bound traffic adds up; that of experts alone, too.
  [[nodiscard]] Duration exchanges() const;
  void bind_exchanges(Duration bound, Duration bound_of_experts) {
    bound_ += bound;
    bound_of_experts_ += bound_of_experts;
  }
  [[nodiscard]] Duration free_exchanges() const;
  [[nodiscard]] Duration free_exchanges_of_experts() const;

  [[nodiscard]] Duration total() const;
  [[nodiscard]] Duration of(Category category) const {
    return by_category_[static_cast<std::size_t>(category)];
  }
  [[nodiscard]] const ByProvenance& seconds_by_provenance() const { return by_provenance_; }
  [[nodiscard]] std::vector<TaskPart> parts() const;  // nonzero categories; add up to total()
  // The network uses of a price that is pure communication; their times add up to total(). Empty where no
  // traffic meets: in closed form, but for a rank's own links.
  [[nodiscard]] const std::vector<NetworkUse>& network() const { return network_; }

 private:
  std::array<Duration, kCategoryCount> by_category_{};
  ByProvenance by_provenance_{};
  Duration least_{};
  Duration bound_{}, bound_of_experts_{};
  std::vector<NetworkUse> network_{};
};

// A unit of sharded weights: a layer, the embedding or the head of a stage.
struct UnitPrice {
  PassPrice gather;       // all-gather of its weights; ZeRO 3
  PassPrice reduce;       // reduce-scatter of its gradients; ZeRO 2 and 3
  PassPrice replicate{};  // all-reduce over the replicas of its shard, on a stream of its own
  // Times of the unit's own operators in each pass; the input gradient includes recompute. A pass is cut into
  // segments in these proportions.
  Duration forward{}, input_gradient{}, weight_gradient{};
  // 0 of a root that stays gathered, 2 where the recompute gathers it as well as the backward itself.
  int backward_gathers = 1;
};

// GPU memory that the passes of a stage hold, per micro-batch.
struct PassMemory {
  Bytes kept;  // from the start of the forward to the end of the backward
  // part of `kept` and `made_again` that I frees at its end when the backward is split; W frees the rest
  Bytes freed_by_input_gradient;
  Bytes forward_transient;   // while the forward runs
  Bytes backward_transient;  // while the backward runs: recomputed tensors, gradients in progress
  // The same of a split backward. While I runs, layers that have run hold tensors for W already.
  Bytes input_gradient_transient{}, weight_gradient_transient{};
  Bytes made_again{};  // recomputed by a recompute pass: from its start to the end of the backward
  // Gradients of all micro-batches together, where they are not live throughout: from the start of the first
  // pass that produces weight gradients of the stage to the end of the last.
  Bytes gradients{};

  friend bool operator==(const PassMemory&, const PassMemory&) = default;
};

// What traffic that overlaps compute costs the devices of a stage.
struct OverlapCosts {
  double slowdown = 1;       // factor on a pass while gradients or weights move beside it
  double pair_slowdown = 1;  // sigma and tau of fused pairs (sim/lower/fused_pair.hpp)
  double tensor_overlap = 1;
};
[[nodiscard]] OverlapCosts overlap_costs(const HardwareProfile& profile);

// Of each part of the passes its price, and what belongs to all of them.
struct StagePrice : ByPass<PassPrice> {
  PassPrice unhidden{};  // extra exposed time of an input gradient whose weight gradient runs later
  PassMemory memory{};
  // ZeRO 2 and 3, in model order; empty otherwise. Gathers run in every forward pass, and again in every
  // backward pass unless `kept_gathered`; reductions run in every backward pass, last unit first.
  std::vector<UnitPrice> units{};
  bool kept_gathered = false;
  OverlapCosts beside{};
  PassTraffic traffic{};  // empty where no traffic meets

  // Time of one micro-batch: recompute and both gradients; total() adds the forward.
  [[nodiscard]] Duration backward() const;
  [[nodiscard]] Duration total() const { return forward.total() + backward(); }
};

// Visits the parts that a pass is made of, in their order. `recomputes`: the backward itself recomputes the
// tensors that were not kept; the order has no recompute pass.
template <class T, class Visit>
void for_each_part(const ByPass<T>& parts, Pass pass, bool recomputes, Visit visit) {
  const bool backward = gives_gradient(pass);
  if (pass == Pass::kForward) visit(parts.forward);
  if (pass == Pass::kRecompute || (backward && recomputes)) visit(parts.recompute);
  if (backward) visit(parts.input_gradient);
  if (makes_weight_gradients(pass)) visit(parts.weight_gradient);
}

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
// The price of each part, and of an input gradient alone what its weight gradient would hide.
[[nodiscard]] PassParts parts_of(const StagePrice& stage, Pass pass, bool recomputes);
// The sum of these parts: the price of the whole pass.
[[nodiscard]] PassPrice pass_price(const StagePrice& stage, Pass pass, bool recomputes);
// The traffic of the same parts.
[[nodiscard]] PassExchanges exchanges_of(const PassTraffic& stage, Pass pass, bool recomputes);

// Memory that a pass allocates at its start and frees at its end; `transient` is live while it runs.
struct PassHold {
  Bytes taken, transient, freed;
};
// A micro-batch holds its activations from the start of its forward to the end of its backward, and
// recomputed ones from the start of their recompute pass. In a split backward the input gradient frees a
// part. Tensors that no recompute pass restores are the backward's transient. Gradients are not included: no
// single pass holds them.
[[nodiscard]] PassHold hold_of(const PassMemory& memory, Pass pass);

// Messages over the boundary from a stage to the next; zero when both live on one rank.
struct EdgePrice {
  PassPrice forward, backward;
  bool between_nodes = false;  // do they leave by the sender's NIC?
};

// End of the iteration, and its start under ZeRO, for one pipeline rank.
struct RankPrice {
  std::vector<std::vector<PassPrice>> gradient_buckets;  // [chunk][bucket], in the order of the backward pass
  // [chunk][bucket], in the order of the forward pass; ZeRO >= 1
  std::vector<std::vector<PassPrice>> parameter_buckets;
  // [chunk]: the all-reduce with the rank that holds the other copy of the stage, where there are two copies.
  std::vector<PassPrice> copies;
  // All-reduce of the word embedding, which the rank of another stage has as well; of rank 0.
  PassPrice tied_embedding;
  PassPrice gradient_norm;  // over all ranks that hold a part of the model
  // over the GPUs of this pipeline rank; one number sent to the next rank
  PassPrice partial_norm, norm_message;
  PassPrice optimizer;
};

// Visits the prices of the work that a rank does once an iteration, beside its passes.
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
  std::vector<StagePrice> stages{};  // indexed by StagePlaces::index_of()
  std::vector<EdgePrice> edges{};    // edge after each stage; empty after the last stage of a copy
  std::vector<RankPrice> ranks{};    // pipeline ranks
  // The stage that `tied_embedding` joins to the first; absent: there is no second word embedding.
  std::optional<int> second_embedding = {};
  PassPrice host{};        // once an iteration
  OffloadPrice offload{};  // its stalls and steps are in the passes and the optimizer already
  // Patterns of all traffic above: on shared links, or in closed form of what meets on a rank's own links
  // (own_links.hpp). Never both.
  PatternTable patterns{}, own_links{};

  [[nodiscard]] bool meets_at_own_links() const { return own_links.size() > 0; }
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
  // GPUs of the whole job, where the plan prices a part of it; absent: those of the plan
  std::optional<int> gpus = {};
  Shard shard = {};           // what shard_of() makes of the rest
  bool shared_links = false;  // record the traffic of every price on the links of the cluster
  // Memo of placements for this cluster, these degrees and this rank order, from one pricing to the next;
  // nullptr: each has its own. Unused with shared links.
  PlacementMemo* memo = nullptr;
  CollectiveMemo* collectives = nullptr;  // memo for this cluster and profile, or nullptr

  // The ZeRO stage that is in effect: 0 where no two ranks share a state.
  [[nodiscard]] int zero_stage() const { return plan.has_shards() ? parallelism.zero_stage : 0; }
  [[nodiscard]] bool reshards_after_forward() const { return options.reshards(zero_stage(), plan.pipeline); }
  [[nodiscard]] bool keeps_gradients_whole() const {
    return options.keeps_gradients_whole(zero_stage(), plan.pipeline);
  }
};

// The part of the model that a GPU of the job has. `pairs`: overlap.expert hides expert exchanges, so shared
// experts do not.
[[nodiscard]] Shard shard_of(const PricingRequest& request, double fp8_layouts, bool pairs);

// Bytes that a GPU of a stage sends to its counterpart of the next stage for a micro-batch, and receives
// back. The last stage sends none.
[[nodiscard]] Bytes message_bytes(const TransformerSpec& model, const PricingRequest& request, int stage);
[[nodiscard]] Bytes message_bytes(const StagesSpec& model, int stage);

[[nodiscard]] IterationPrices price_transformer(const TransformerSpec& model, const HardwareProfile& profile,
                                                const Cluster& cluster, const PricingRequest& request);

// `cluster` may be null: messages and reductions are then free. `profile` may be null: collectives in a node
// then take the defaults of collective_cost().
[[nodiscard]] IterationPrices price_stages(const StagesSpec& model, const HardwareProfile* profile,
                                           const Cluster* cluster, const PricingRequest& request);

}  // namespace stagecraft
