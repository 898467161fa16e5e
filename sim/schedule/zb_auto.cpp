#include "sim/schedule/zb_auto.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "sim/schedule/closed_forms.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

// Options that the published program tries both ways.
struct Variant {
  bool eager_extras = true;    // a warm-up forward counts as late by its end, not by its start
  bool mind_successor = true;  // a rank far ahead of the next may sit a forward out
  bool always_fill = true;     // a weight gradient in front of every gap, however short
};

class ZeroBubbleRules {
 public:
  ZeroBubbleRules(const SplitPipeline& pipeline, const Variant& variant)
      : pipeline_(pipeline), variant_(variant), order_(pipeline) {}

  OrderBuilder run() && {
    warm_up();
    for (int i = 1; i < pipeline_.shape.micro_batches; ++i) step();
    for (int rank = 0; rank < ranks(); ++rank) drain(rank);
    return std::move(order_);
  }

 private:
  [[nodiscard]] int ranks() const { return pipeline_.shape.ranks; }
  [[nodiscard]] const StageCosts& costs(int rank) const { return pipeline_.costs_of(rank, 0); }
  [[nodiscard]] int forwards(int rank) const { return order_.count(Pass::kForward, rank, 0); }
  [[nodiscard]] bool forward_left(int rank) const { return order_.left(Pass::kForward, rank, 0); }

  void drain(int rank) {
    while (order_.pending(rank) > 0) order_.put_weight_gradient(rank);
  }

  // Number of forwards of each rank before the first gradient arrives, beyond its first.
  [[nodiscard]] std::vector<int> count_extras() const {
    const int last = ranks() - 1;
    std::vector<int> extras(static_cast<std::size_t>(ranks()), 0);
    std::int64_t gradient = order_.end(last) + costs(last).input_gradient;
    for (int rank = last - 1; rank >= 0; --rank) {
      int& extra = extras[static_cast<std::size_t>(rank)];
      const std::int64_t arrival = gradient + pipeline_.message;
      std::int64_t end = order_.end(rank);
      while (1 + extra < pipeline_.shape.micro_batches && order_.has_room(rank, extra + 1)) {
        const bool in_time = variant_.eager_extras ? end + costs(rank).forward <= arrival : end < arrival;
        if (!in_time) break;
        end += costs(rank).forward;
        ++extra;
      }
      gradient = std::max(end, arrival) + costs(rank).input_gradient;
    }
    for (std::size_t rank = 1; rank < extras.size(); ++rank) {
      while (extras[rank] > 0 && extras[rank] >= extras[rank - 1] &&
             1 + extras[rank] < pipeline_.shape.micro_batches) {
        --extras[rank];
      }
    }
    return extras;
  }

  void warm_up() {
    for (int rank = 0; rank < ranks(); ++rank) order_.put(Pass::kForward, rank, 0);
    const std::vector<int> extras = count_extras();
    for (int rank = 0; rank < ranks(); ++rank) {
      for (int i = 0; i < extras[static_cast<std::size_t>(rank)]; ++i) {
        if (order_.fed(Pass::kForward, rank, 0)) order_.put(Pass::kForward, rank, 0);
      }
    }
    for (int rank = ranks() - 1; rank >= 0; --rank) order_.put(Pass::kInputGradient, rank, 0);
  }

  // A rank that is two forwards ahead of its successor gains nothing by a third if the successor is late.
  [[nodiscard]] bool worth_a_forward(int rank) const {
    if (!variant_.mind_successor || rank + 1 == ranks()) return true;
    if (forwards(rank) < forwards(rank + 1) + 2) return true;
    const StageCosts& next = costs(rank + 1);
    const std::int64_t gradient =
        order_.end(rank + 1) + next.forward + next.input_gradient + pipeline_.message;
    if (order_.end(rank) >= gradient) return false;
    const std::int64_t forced = order_.has_room(rank) ? 0 : costs(rank).weight_gradient;
    if (order_.end(rank) + costs(rank).forward + forced <= gradient) return true;
    return gradient - order_.end(rank) > order_.worst_idle() - order_.idle(rank);
  }

  [[nodiscard]] std::vector<char> wish_forwards() const {
    std::vector<char> wants(static_cast<std::size_t>(ranks()), 0);
    for (int rank = 0; rank < ranks(); ++rank) {
      wants[static_cast<std::size_t>(rank)] =
          forward_left(rank) && order_.can_make_room(rank) && worth_a_forward(rank);
    }
    // Limits how far ranks run ahead of a waiting rank.
    for (std::size_t rank = wants.size() - 1; rank-- > 0;) {
      wants[rank] = std::min(wants[rank], wants[rank + 1]);
    }
    return wants;
  }

  void fill(int rank, std::int64_t arrival) {
    while (order_.pending(rank) > 0 && order_.end(rank) + costs(rank).weight_gradient <= arrival) {
      order_.put_weight_gradient(rank);
    }
    if (order_.pending(rank) == 0 || order_.end(rank) >= arrival) return;
    const bool worst = arrival - order_.end(rank) > order_.worst_idle() - order_.idle(rank);
    if (worst || variant_.always_fill) order_.put_weight_gradient(rank);
  }

  // One forward and one input gradient per rank.
  void step() {
    const std::vector<char> wants = wish_forwards();
    for (int rank = 0; rank < ranks(); ++rank) {
      if (!wants[static_cast<std::size_t>(rank)]) continue;
      SC_CHECK(order_.make_room(rank), "asked before");
      fill(rank, order_.arrival(Pass::kForward, rank, 0));
      order_.put(Pass::kForward, rank, 0);
    }
    for (int rank = ranks() - 1; rank >= 0; --rank) {
      fill(rank, order_.arrival(Pass::kInputGradient, rank, 0));
      if (rank == 0 && !forward_left(0)) drain(0);
      order_.put(Pass::kInputGradient, rank, 0);
    }
  }

  const SplitPipeline& pipeline_;
  Variant variant_;
  OrderBuilder order_;
};

OrderBuilder best_variant(const SplitPipeline& pipeline) {
  std::optional<OrderBuilder> best;
  for (int i = 0; i < 8; ++i) {
    const Variant variant{
        .eager_extras = (i & 4) == 0, .mind_successor = (i & 2) == 0, .always_fill = (i & 1) == 0};
    OrderBuilder order = ZeroBubbleRules(pipeline, variant).run();
    if (!best || order.span() < best->span()) best = std::move(order);
  }
  return std::move(*best);
}

}  // namespace

Schedule zb_auto(const SplitPipeline& pipeline) {
  SC_CHECK(pipeline.shape.chunks == 1 && pipeline.placement == Placement::kLoop, "one chunk a rank");
  return best_variant(pipeline).take("zb-auto");
}

std::optional<ScheduleProblem> zb_h2_constraint(const PipelineShape& shape) {
  return refuse_interleaving(shape, "zb-h2");
}

std::optional<ScheduleProblem> zb_2p_constraint(const PipelineShape& shape) {
  return refuse_interleaving(shape, "zb-2p");
}

Schedule zb_h2(const PipelineShape& shape, const ScheduleCosts& costs) {
  return zb_auto(SplitPipeline::of(shape, Placement::kLoop, costs, 2 * shape.ranks - 1));
}

Schedule zb_2p(const PipelineShape& shape, const ScheduleCosts& costs) {
  const SplitPipeline pipeline = SplitPipeline::of(shape, Placement::kLoop, costs, 2 * shape.ranks);
  OrderBuilder strict = best_variant(pipeline);
  if (costs.memory_limit > 0 || costs.freed_by_input_gradient) return std::move(strict).take("zb-2p");
  SplitPipeline halved = pipeline;
  halved.freed_by_input_gradient = kChunk / 2;
  OrderBuilder published = best_variant(halved);
  return std::move(published.span() < strict.span() ? published : strict).take("zb-2p");
}

}  // namespace stagecraft
