#include "sim/lower/price_offload.hpp"

#include <algorithm>

#include "models/memory.hpp"
#include "sim/lower/pass_memory.hpp"
#include "sim/lower/price_gradients.hpp"
#include "sim/lower/stage_parameters.hpp"
#include "topology/host_link.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kHostGradient = 4;  // bytes a parameter, fp32

Duration over(Duration copies, Duration pass) {
  return std::max(Duration::zero(), copies - pass);
}

Bandwidth rate(Bytes size, Duration time) {
  return time > Duration::zero() ? Bandwidth(static_cast<double>(size.count()) / to_seconds(time))
                                 : Bandwidth(0);
}

// Shards that are the optimizer's fp32 weights go with the optimizer: there are no others to read for the
// passes.
OffloadSpec offloaded(const PricingRequest& request, const Shard& shard) {
  OffloadSpec offload = request.offload;
  if (masters_alone(shard)) offload.weights = 0;
  return offload;
}

class OffloadPricing {
 public:
  OffloadPricing(const TransformerSpec& model, const Network& network, const PricingRequest& request,
                 IterationPrices& prices)
      : model_(model),
        network_(network),
        request_(request),
        prices_(prices),
        shard_(request.shard),
        offload_(offloaded(request, shard_)),
        bytes_(state_bytes(shard_)),
        link_(host_link(network.cluster.spec())) {}

  void price() {
    if (offload_ == OffloadSpec{}) return;
    prices_.offload.available = link_.copy;
    for (int rank = 0; rank < network_.plan.pipeline; ++rank) {
      Duration stall{};
      // With two copies of each stage, each copy runs half of the micro-batches.
      const StagePlaces places = network_.plan.places();
      for (const HeldStage& held : places.held_by(rank))
        stall += add_stalls(held) * (network_.plan.micro_batches / places.copies());
      prices_.offload.stall = std::max(prices_.offload.stall, stall);
      add_host_step(rank);
    }
  }

 private:
  // Adds the stalls of one micro-batch to both passes.
  Duration add_stalls(HeldStage held) {
    StagePrice& price = prices_.stages[network_.plan.places().index_of(held.stage, held.copy)];
    const StageContent& content = network_.plan.stages[static_cast<std::size_t>(held.stage)];
    const Bytes activations =
        share_of(offloadable(model_, shard_, content, request_.training.recompute), offload_.activations);
    const Bytes weights = share_of(weights_of(held.stage), offload_.weights);
    const Duration forward = price.forward.total();
    const Duration backward = price.backward();
    OffloadPrice& offload = prices_.offload;
    const Duration least = std::min(forward, backward);
    offload.required_activations = std::max(offload.required_activations, rate(activations, least));
    offload.required_weights = std::max(offload.required_weights, rate(weights, least));
    const Duration with_forward = std::max(activations, weights) / link_.copy;
    const Duration with_backward = (activations + weights) / link_.copy;
    const Duration behind_forward = over(with_forward, forward);
    const Duration before_backward = over(with_backward, backward);
    price.forward.add(Category::kOther, behind_forward, Provenance::kAnalytic);
    // With a split backward the stall is divided so that I and W each last half of the whole where they can.
    // Otherwise a longer sequence could shorten one of them.
    const Duration half = (backward + before_backward) / 2;
    const Duration of_weights =
        std::clamp(half - price.weight_gradient.total(), Duration::zero(), before_backward);
    price.input_gradient.add(Category::kOther, before_backward - of_weights, Provenance::kAnalytic);
    price.weight_gradient.add(Category::kOther, of_weights, Provenance::kAnalytic);
    // A pass that hides traffic behind another one still lasts as long as its copies; the parts of a backward
    // share them by their times.
    price.forward.keep_at_least(with_forward);
    if (with_backward > Duration::zero())
      for (PassPrice* pass : {&price.recompute, &price.input_gradient, &price.weight_gradient})
        pass->keep_at_least(
            scaled(pass->total(), to_seconds(with_backward) / to_seconds(backward + before_backward)));
    return behind_forward + before_backward;
  }

  [[nodiscard]] Bytes weights_of(int stage) const {
    const ByteShare bytes = weight_bytes(stage_share(model_, network_.plan, stage),
                                         stage_products(model_, network_.plan, stage), shard_);
    return (request_.zero_stage() < 3 ? bytes : sharded(bytes, request_.plan)).all();
  }

  void add_host_step(int rank) {
    const std::int64_t stepped = stepped_parameters(rank_share(model_, network_.plan, rank), request_);
    const std::int64_t here = host_parameters(stepped, request_);
    if (here == 0) return;
    const std::int64_t states = bytes_.optimizer + (bytes_.has_masters() ? 0 : bytes_.stepped);
    // The host reads all of them and writes all but the gradient.
    const std::int64_t traffic = kHostGradient + 2 * states;
    const Duration step = Bytes(here * (bytes_.gradient + bytes_.weight)) / link_.copy +
                          Bytes(here * traffic) / (kHostStepShare * link_.memory);
    prices_.offload.optimizer_step = std::max(prices_.offload.optimizer_step, step);
    PassPrice& optimizer = prices_.ranks[static_cast<std::size_t>(rank)].optimizer;
    optimizer.add(Category::kOptimizer, over(step, optimizer.total()), Provenance::kAssumed);
  }

  const TransformerSpec& model_;
  const Network& network_;
  const PricingRequest& request_;
  IterationPrices& prices_;
  const Shard& shard_;
  const OffloadSpec offload_;
  const StateBytes bytes_;
  const HostLink link_;
};

}  // namespace

void price_offload(const TransformerSpec& model, const Network& network, const PricingRequest& request,
                   IterationPrices& prices) {
  if (request.offload == OffloadSpec{}) return;
  OffloadPricing(model, network, request, prices).price();
}

}  // namespace stagecraft
