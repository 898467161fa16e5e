// Costs of data parallelism: gradient reductions, weight gathers, the optimizer step.
//
//   Dense weights are alike on data x context ranks, routed experts on the ranks of the expert mesh's data
//   axis; each has its groups, and buckets or units of its own. Of N sharing ranks (zero_group limits N) and
//   R replicas of the shards:
//     ZeRO 0     a bucket is all-reduced at the end of the last backward
//     ZeRO 1     reduce-scattered over N (and its shard all-reduced over R); weights gathered over N
//     ZeRO 2     the reduce-scatter happens in every backward, unit by unit, and so does the all-reduce
//                over R (PyTorch's hybrid sharding does it with every reduction, on a stream of its own:
//                beside the reduce-scatters and gathers of other units where these stay in a node and it
//                does not, behind them where both are on the same links)
//     ZeRO 3     as ZeRO 2, and each unit's weights are gathered in the passes; none at the end. DeepSpeed's
//                hooks do so matrix by matrix (gathers_matrices): n collectives of 1/n each, whose
//                lists have a tensor for each rank that is copied by a kernel of its own, for which the
//                host takes piece_overhead beside its launch
//   Buckets hold max(40 M, 1 M * data * context) parameters unless options.bucket_parameters says otherwise,
//   one bucket where nothing overlaps; the last of a backward, the first of a forward, has the whole word
//   embedding. Dense and expert buckets of a chunk are merged in the order in which a backward pass completes
//   them.
//   The gradient norm is an all-reduce of 4 bytes over the ranks that split the model, and over the N that
//   share its states.
//   Where the pipeline runs both ways, the two ranks of each stage then sum what they have of its gradients,
//   two by two: all of them under ZeRO 0, a shard otherwise. Each copy is stepped where it lives.
//   source  Megatron-LM's DistributedDataParallelConfig and distributed optimizer; Rajbhandari et al.
//           (arXiv 1910.02054) for the ZeRO stages; Zhao et al. (arXiv 2304.11277) for FSDP and hybrid
//           sharding.
#pragma once

#include <vector>

#include "models/operators.hpp"
#include "sim/lower/messages.hpp"
#include "sim/lower/prices.hpp"

namespace stagecraft {

// One collective, or several with equal parts of the data that copy a tensor for each rank.
struct CollectivePieces {
  std::int64_t count = 1;
  Duration copies{};  // copy time of each collective
};

class GradientPricing {
 public:
  GradientPricing(const TransformerSpec& model, const Network& network, const PricingRequest& request);

  // Prices the end of the iteration on a pipeline rank, and its start under ZeRO 1 and 2.
  [[nodiscard]] RankPrice price_rank(int rank) const;
  // Fraction of NCCL's channels that traffic between the shards uses: all of them within a node, those of its
  // NICs between nodes. Compute loses at most this fraction to the traffic. The first pipeline rank speaks
  // for the others.
  [[nodiscard]] double channel_share() const;
  // Fills in the traffic of the units of a stage. Clears the units where no ranks share weights.
  void price_units(HeldStage held, StagePrice& price) const;

 private:
  // Groups that share dense weights, or routed experts.
  struct Sharing {
    RankGroup replicas, shards, shard_replicas;
    int ranks = 1;     // ranks with the same weights
    int shards_n = 1;  // ranks that share one sharded copy
  };
  [[nodiscard]] Sharing sharing(bool experts) const;
  [[nodiscard]] PassPrice reduce(int rank, const Sharing& sharing, std::int64_t parameters) const;
  [[nodiscard]] Bytes gradients_of(std::int64_t parameters) const;
  // A reduce-scatter or an all-gather over the ranks that share the shards.
  [[nodiscard]] PassPrice over_shards(int rank, const Sharing& sharing, CollectiveKind kind, Bytes size,
                                      const CollectivePieces& pieces = {}) const;
  [[nodiscard]] PassPrice replicate(int rank, const Sharing& sharing, Bytes gradients) const;
  // Do the shards of a copy stay in a node, and their replicas on other nodes?
  [[nodiscard]] bool on_links_apart(int rank, const Sharing& sharing) const;
  [[nodiscard]] std::vector<PassPrice> price_buckets(int rank, int stage, bool gathers) const;
  [[nodiscard]] PassPrice price_tied_embedding() const;
  [[nodiscard]] PassPrice price_copies(int stage) const;
  [[nodiscard]] PassPrice price_optimizer(int rank) const;
  [[nodiscard]] PassPrice norm_of_rank(const Network& network, int rank) const;
  void price_norms(int rank, RankPrice& price) const;

  const TransformerSpec& model_;
  const Network& network_;
  const PricingRequest& request_;
  const Shard& shard_;
  const Sharing dense_, experts_;
};

// Parameters of one gradient bucket: options.bucket_parameters, or Megatron-LM's rule.
[[nodiscard]] std::int64_t bucket_parameters(const PricingRequest& request);

// Optimizer parameters that one rank steps: the shares of both kinds, rounded up.
[[nodiscard]] std::int64_t stepped_parameters(const ParameterShare& share, const PricingRequest& request);
// Of these, those that the host steps.
[[nodiscard]] std::int64_t host_parameters(std::int64_t stepped, const PricingRequest& request);

}  // namespace stagecraft
