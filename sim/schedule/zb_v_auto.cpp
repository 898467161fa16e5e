#include "sim/schedule/zb_v_auto.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "sim/schedule/closed_forms.hpp"
#include "sim/schedule/evaluate.hpp"
#include "sim/schedule/zb_v.hpp"

namespace stagecraft {
namespace {

// Options that are tried both ways. The first is ours: the published program chooses the next pass without
// checking whether its input has arrived.
struct VariantOnV {
  bool only_what_arrived = false;
  bool fill_before_gradients = true;  // a weight gradient in front of a short gap: before an I of chunk 1,
  bool fill_before_forwards = true;   // before a forward
};

class ZeroBubbleVRules {
 public:
  // `allowed` is the idle time of each rank in the try before; empty in the first.
  ZeroBubbleVRules(const SplitPipeline& pipeline, const VariantOnV& variant,
                   const std::vector<std::int64_t>& allowed)
      : pipeline_(pipeline), variant_(variant), allowed_(allowed), order_(pipeline) {
    for (const std::int64_t idle : allowed_) most_allowed_ = std::max(most_allowed_, idle);
  }

  // nullopt when a round moves nothing although passes are left.
  std::optional<OrderBuilder> run() && {
    warm_up();
    const auto left = [&](int rank) {
      return order_.left(Pass::kInputGradient, rank, 0) || order_.left(Pass::kInputGradient, rank, 1);
    };
    bool any_left = true;
    while (any_left) {
      const bool moved = round();
      any_left = false;
      for (int rank = 0; rank < ranks(); ++rank) any_left = any_left || left(rank);
      if (!moved && any_left) return std::nullopt;
    }
    for (int rank = 0; rank < ranks(); ++rank) {
      while (order_.pending(rank) > 0) order_.put_weight_gradient(rank);
    }
    return std::move(order_);
  }

 private:
  [[nodiscard]] int ranks() const { return pipeline_.shape.ranks; }
  [[nodiscard]] int forwards(int rank, int chunk) const { return order_.count(Pass::kForward, rank, chunk); }
  [[nodiscard]] int all_forwards(int rank) const { return forwards(rank, 0) + forwards(rank, 1); }
  [[nodiscard]] int gradients(int rank, int chunk) const {
    return order_.count(Pass::kInputGradient, rank, chunk);
  }
  // Is the pass in the order and, where the variant is patient, has its input arrived?
  [[nodiscard]] bool within_reach(Pass pass, int rank, int chunk) const {
    if (!order_.fed(pass, rank, chunk)) return false;
    return !variant_.only_what_arrived || order_.arrival(pass, rank, chunk) <= order_.end(rank);
  }

  void try_forward(int rank, int chunk) {
    if (order_.fed(Pass::kForward, rank, chunk) && order_.has_room(rank)) {
      order_.put(Pass::kForward, rank, chunk);
    }
  }

  void warm_up() {
    const int last = ranks() - 1;
    for (int rank = 0; rank <= last; ++rank) order_.put(Pass::kForward, rank, 0);
    for (int rank = last; rank >= 0; --rank) {
      while (rank < last && order_.has_room(rank, 2 + 2 * rank) && order_.left(Pass::kForward, 0, 0) &&
             order_.end(rank) + pipeline_.costs_of(rank, 0).forward <=
                 order_.arrival(Pass::kForward, rank, 1)) {
        for (int ahead = 0; ahead <= rank; ++ahead) try_forward(ahead, 0);
      }
      order_.put(Pass::kForward, rank, 1);
    }
    int chunk = 0;
    for (int rank = 1; rank <= last; ++rank) {
      const auto behind = [&] {
        return all_forwards(rank) < all_forwards(rank - 1) ||
               (forwards(rank, 1) <= forwards(rank - 1, 1) && order_.left(Pass::kForward, rank - 1, 1));
      };
      int fruitless = 0;
      while (behind() && fruitless < 2) {
        const int before = all_forwards(rank);
        for (int r = last; r >= rank; --r) try_forward(r, chunk);
        fruitless = all_forwards(rank) == before ? fruitless + 1 : 0;
        chunk = 1 - chunk;
      }
    }
  }

  // The idle time that a rank may reach without being the worst.
  [[nodiscard]] std::int64_t worst(int rank) const {
    const std::int64_t spare =
        allowed_.empty() ? 0 : most_allowed_ - allowed_[static_cast<std::size_t>(rank)];
    return std::max(order_.worst_idle(), spare);
  }

  void fill(Pass pass, int rank, int chunk, bool short_gaps) {
    if (!order_.from_afar(pass, rank, chunk)) return;
    const std::int64_t arrival = order_.arrival(pass, rank, chunk);
    while (order_.pending(rank) > 0 && order_.end(rank) + order_.oldest_time(rank) <= arrival) {
      order_.put_weight_gradient(rank);
    }
    if (order_.pending(rank) == 0 || !short_gaps) return;
    if (arrival - order_.end(rank) > worst(rank) - order_.idle(rank)) order_.put_weight_gradient(rank);
  }

  // The chunk whose input gradient a rank runs next.
  [[nodiscard]] int next_gradient(int rank) const {
    const bool behind = gradients(rank, 0) < gradients(rank, 1);
    const bool ready = rank + 1 == ranks() || within_reach(Pass::kInputGradient, rank, 0) ||
                       !order_.left(Pass::kInputGradient, rank, 1);
    return behind && ready ? 0 : 1;
  }

  bool try_gradient(int rank, int chunk) {
    if (!order_.fed(Pass::kInputGradient, rank, chunk)) return false;
    fill(Pass::kInputGradient, rank, chunk, chunk == 0 || variant_.fill_before_gradients);
    order_.put(Pass::kInputGradient, rank, chunk);
    return true;
  }

  bool round_of_gradients() {
    std::vector<int> chosen;
    for (int rank = 0; rank < ranks(); ++rank) chosen.push_back(next_gradient(rank));
    bool moved = false;
    for (int rank = ranks() - 1; rank >= 0; --rank) {
      if (chosen[static_cast<std::size_t>(rank)] == 0 && try_gradient(rank, 0)) moved = true;
    }
    for (int rank = 0; rank < ranks(); ++rank) {
      if (chosen[static_cast<std::size_t>(rank)] == 1 && try_gradient(rank, 1)) moved = true;
    }
    return moved;
  }

  bool round_of_forwards() {
    bool moved = false;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (!order_.left(Pass::kForward, rank, 1)) continue;
      const bool behind = forwards(rank, 1) < forwards(rank, 0);
      int chunk = 1;
      if (!behind || !(rank + 1 == ranks() || within_reach(Pass::kForward, rank, 1))) {
        if (!order_.left(Pass::kForward, rank, 0)) continue;
        if (rank > 0 && !within_reach(Pass::kForward, rank, 0)) continue;
        chunk = 0;
      }
      if (!order_.fed(Pass::kForward, rank, chunk) || !order_.make_room(rank)) continue;
      fill(Pass::kForward, rank, chunk, variant_.fill_before_forwards);
      order_.put(Pass::kForward, rank, chunk);
      moved = true;
    }
    return moved;
  }

  // Schedules passes that no rank chose because their input had not arrived, when only waiting is left.
  bool round_of_waiting() {
    bool moved = false;
    for (int rank = 0; rank < ranks(); ++rank) {
      for (const int chunk : {1, 0}) moved = try_gradient(rank, chunk) || moved;
    }
    for (int rank = 0; rank < ranks() && !moved; ++rank) {
      for (const int chunk : {1, 0}) {
        if (moved || !order_.fed(Pass::kForward, rank, chunk) || !order_.make_room(rank)) continue;
        order_.put(Pass::kForward, rank, chunk);
        moved = true;
      }
    }
    return moved;
  }

  bool round() {
    const bool backward = round_of_gradients();
    const bool forward = round_of_forwards();
    return backward || forward || round_of_waiting();
  }

  const SplitPipeline& pipeline_;
  VariantOnV variant_;
  const std::vector<std::int64_t>& allowed_;
  std::int64_t most_allowed_ = 0;
  OrderBuilder order_;
};

std::vector<std::int64_t> idle_of(const OrderBuilder& order, int ranks) {
  std::vector<std::int64_t> idle;
  for (int rank = 0; rank < ranks; ++rank) idle.push_back(order.idle(rank));
  return idle;
}

// One variant, repeated while the worst idle time falls.
std::optional<OrderBuilder> best_of(const SplitPipeline& pipeline, const VariantOnV& variant) {
  std::optional<OrderBuilder> best = ZeroBubbleVRules(pipeline, variant, {}).run();
  while (best) {
    const std::vector<std::int64_t> allowed = idle_of(*best, pipeline.shape.ranks);
    std::optional<OrderBuilder> next = ZeroBubbleVRules(pipeline, variant, allowed).run();
    if (!next || next->worst_idle() >= best->worst_idle()) return best;
    best = std::move(next);
  }
  return best;
}

}  // namespace

std::optional<Schedule> zb_v_auto(const SplitPipeline& pipeline) {
  SC_CHECK(pipeline.shape.chunks == 2 && pipeline.placement == Placement::kV, "a V of two chunks");
  // The published program counts half a chunk as freed by I. What it finds so is taken if it keeps the limit.
  std::vector<int> shares{std::max(kChunk / 2, pipeline.freed_by_input_gradient)};
  if (shares.front() != pipeline.freed_by_input_gradient) shares.push_back(pipeline.freed_by_input_gradient);
  const std::int64_t least = pipeline.most_work();
  std::optional<OrderBuilder> best;
  SplitPipeline measured = pipeline;
  for (int i = 0; i < 8; ++i) {
    const VariantOnV variant{.only_what_arrived = (i & 4) != 0,
                             .fill_before_gradients = (i & 2) == 0,
                             .fill_before_forwards = (i & 1) == 0};
    for (const int share : shares) {
      measured.freed_by_input_gradient = share;
      std::optional<OrderBuilder> order = best_of(measured, variant);
      if (!order || (best && order->span() >= best->span())) continue;
      if (order->peak_memory(pipeline.freed_by_input_gradient) >
          std::int64_t{kChunk} * pipeline.memory_limit) {
        continue;
      }
      best = std::move(order);
      if (best->span() == least) return std::move(*best).take("zb-v-auto");
    }
  }
  if (!best) return std::nullopt;
  return std::move(*best).take("zb-v-auto");
}

Schedule zb_v_made_to_measure(const PipelineShape& shape, const ScheduleCosts& costs) {
  const SplitPipeline pipeline = SplitPipeline::of(shape, Placement::kV, costs, 2 * shape.ranks);
  Schedule crafted{.name = "zb-v", .shape = shape, .placement = Placement::kV, .ranks = {}};
  for (int rank = 0; rank < shape.ranks; ++rank) crafted.ranks.push_back(zb_v(shape, rank));
  const bool fits = std::ranges::max(peak_in_flight(crafted)) <= pipeline.memory_limit;
  const StageCosts& first = pipeline.stages.front();
  const bool alike = passes_alike(first) &&
                     std::ranges::all_of(pipeline.stages, [&](const StageCosts& s) { return s == first; });
  if (fits && alike && costs.message == 0) return crafted;
  std::optional<Schedule> made = zb_v_auto(pipeline);
  SC_CHECK(made || fits, "the rules lead somewhere under any limit");
  if (!made) return crafted;
  if (fits && evaluate(crafted, costs).span <= evaluate(*made, costs).span) return crafted;
  return *std::move(made);
}

}  // namespace stagecraft
