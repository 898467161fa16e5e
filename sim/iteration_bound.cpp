#include "sim/iteration_bound.hpp"

#include <algorithm>
#include <vector>

namespace stagecraft {
namespace {

class Bound {
 public:
  Bound(const ParallelPlan& plan, const Schedule& schedule, const IterationPrices& prices,
        const LowerOptions& options)
      : plan_(plan), prices_(prices), options_(options), places_(plan.places()) {
    const ScheduleKind* kind = find_schedule(schedule.name);
    split_ = kind == nullptr || kind->split_backward;
    fused_ =
        !options.pairs.empty() && (options.pairs.front().neighbours || kind == nullptr || kind->fused_pairs);
    micro_batches_.resize(static_cast<std::size_t>(places_.copies()));
    for (int mb = 0; mb < plan.micro_batches; ++mb)
      ++micro_batches_[static_cast<std::size_t>(places_.copy_of(mb, plan.micro_batches))];
    add_chains();
  }

  [[nodiscard]] Duration value() const {
    Duration passes{}, step{};
    for (int rank = 0; rank < plan_.pipeline; ++rank) {
      passes = std::max(passes, of_rank(rank));
      const RankPrice& price = prices_.ranks[static_cast<std::size_t>(rank)];
      step = std::max(step, price.gradient_norm.total() + price.optimizer.total() + prices_.host.total());
    }
    return passes + step;
  }

 private:
  // By place: the shortest chain before the first forward of a stage, and after its last backward.
  void add_chains() {
    before_.resize(places_.count());
    behind_.resize(places_.count());
    for (int copy = 0; copy < places_.copies(); ++copy) {
      for (int stage = 1; stage < places_.stages(); ++stage) {
        const std::size_t at = places_.index_of(stage, copy), last = places_.index_of(stage - 1, copy);
        const StagePrice& price = prices_.stages[last];
        const EdgePrice& edge = prices_.edges[last];
        before_[at] = before_[last] + price.forward.total() + edge.forward.total();
        behind_[at] = behind_[last] + price.input_gradient.total() + price.weight_gradient.total() +
                      edge.backward.total();
        if (!plan_.stages[static_cast<std::size_t>(stage - 1)].recompute_pass)
          behind_[at] += price.recompute.total();
      }
    }
  }

  [[nodiscard]] Duration of_rank(int rank) const {
    Duration busy{}, head = Duration::max(), tail = Duration::max();
    for (const HeldStage& held : places_.held_by(rank)) {
      const std::size_t at = places_.index_of(held.stage, held.copy);
      for (const PassPrice* pass : prices_.stages[at].each())
        busy += least_of(*pass, at) * micro_batches_[static_cast<std::size_t>(held.copy)];
      head = std::min(head, before_[at]);
      tail = std::min(tail, behind_[at]);
    }
    if (fused_) return busy;
    if (split_) tail = Duration::zero();
    return head + busy + std::max(tail, reductions(rank));
  }

  [[nodiscard]] Duration least_of(const PassPrice& pass, std::size_t place) const {
    return fused_ ? least_in_pair(pass, options_.pairs[place]) : pass.total();
  }

  // Time of the reductions that start only after the last pass.
  [[nodiscard]] Duration reductions(int rank) const {
    Duration sum{};
    if (options_.overlap_gradients) return sum;
    for (const auto& chunk : prices_.ranks[static_cast<std::size_t>(rank)].gradient_buckets)
      for (const PassPrice& bucket : chunk) sum += bucket.total();
    return sum;
  }

  const ParallelPlan& plan_;
  const IterationPrices& prices_;
  const LowerOptions& options_;
  const StagePlaces places_;
  bool split_ = false;                       // some backwards may be split
  bool fused_ = false;                       // some passes may be fused, and then take less time
  std::vector<std::int64_t> micro_batches_;  // [copy]
  std::vector<Duration> before_, behind_;    // [place]
};

}  // namespace

Duration iteration_at_least(const ParallelPlan& plan, const Schedule& schedule, const IterationPrices& prices,
                            const LowerOptions& options) {
  const bool known = options.iterations == 1 && options.network == nullptr && options.speeds.empty() &&
                     options.step == StepRule::kBarrier;
  return known ? Bound(plan, schedule, prices, options).value() : Duration::zero();
}

}  // namespace stagecraft
