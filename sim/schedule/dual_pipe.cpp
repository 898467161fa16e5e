#include "sim/schedule/dual_pipe.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.hpp"
#include "base/text.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

// One of the two stages of a rank, and the micro-batches that pass it.
struct Phase {
  int stage = 0;
  int first = 0;  // micro-batch
  int forwards = 0;
  int backwards = 0;
};

// The order of one rank as it grows.
class Pairs {
 public:
  Pairs(Phase phase0, Phase phase1) : phases_{phase0, phase1} {}

  void forward(std::size_t phase) { add(Pass::kForward, phase, phases_[phase].forwards++); }
  void backward(std::size_t phase) { add(Pass::kBackward, phase, phases_[phase].backwards++); }
  void input(std::size_t phase) {
    add(Pass::kInputGradient, phase, phases_[phase].backwards++);
    pending_.push_back(order_.back());
  }
  void weight() {
    Action oldest = pending_[weights_++];
    oldest.pass = Pass::kWeightGradient;
    order_.push_back(oldest);
  }
  // The forward of a phase, fused with the backward of the other one.
  void pair(std::size_t phase) {
    forward(phase);
    order_.back().fused = true;
    backward(1 - phase);
  }
  [[nodiscard]] std::vector<Action> take() && {
    SC_CHECK(weights_ == pending_.size(), "weight gradients are left");
    return std::move(order_);
  }

 private:
  void add(Pass pass, std::size_t phase, int j) {
    const auto& [stage, first, forwards, backwards] = phases_[phase];
    order_.push_back({.pass = pass, .stage = stage, .micro_batch = first + j});
  }

  std::array<Phase, 2> phases_;
  std::vector<Action> pending_;  // input gradients with a pending weight gradient, oldest first
  std::size_t weights_ = 0;      // of them that have run
  std::vector<Action> order_;
};

// half: ranks of one leg. depth: legs from the end of the pipeline. each: micro-batches of one phase.
std::vector<Action> dual_order(Pairs order, int half, int depth, int each) {
  const int outer = half - 1 - depth;
  for (int i = 0; i < 2 * outer; ++i) order.forward(0);
  for (int i = 0; i <= depth; ++i) {
    order.forward(0);
    order.forward(1);
  }
  for (int i = 0; i < outer; ++i) {
    order.input(1);
    order.weight();
    order.forward(1);
  }
  for (int i = 0; i < each - 2 * half + depth + 1; ++i) {
    if (i == 0 && outer == 0) {  // the backward needs the output that this rank is only beginning to compute
      order.forward(0);
      order.backward(1);
    } else {
      order.pair(0);
    }
    order.pair(1);
  }
  for (int i = 0; i < outer; ++i) {
    order.backward(1);
    order.pair(1);
  }
  const int whole = (depth + 1) / 2;  // turns with whole backwards
  for (int i = 0; i <= depth; ++i) {
    if (i < whole || (i == whole && depth % 2 == 0)) {
      order.backward(1);
    } else {
      order.input(1);
    }
    if (i < whole) {
      order.backward(0);
    } else {
      order.input(0);
    }
  }
  for (int i = 0; i < outer; ++i) {
    order.weight();
    order.input(0);
  }
  for (int i = 0; i <= depth; ++i) order.weight();
  return std::move(order).take();
}

std::optional<ScheduleProblem> refuse_short(const PipelineShape& shape, const std::string& schedule) {
  const int least = 2 * shape.ranks;
  if (shape.micro_batches >= least) return std::nullopt;
  return ScheduleProblem{.message = counted(shape.micro_batches, "micro-batch") + ": " + schedule +
                                    " needs twice its " + counted(shape.ranks, "rank") + ", " +
                                    std::to_string(least),
                         .hint = std::to_string(least) + " micro-batches would be legal"};
}

}  // namespace

std::optional<ScheduleProblem> dual_pipe_constraint(const PipelineShape& shape) {
  if (auto problem = refuse_interleaving(shape, "dualpipe", "dualpipe-v")) return problem;
  if (auto problem = refuse_odd_ranks(shape, "dualpipe", "dualpipe-v")) return problem;
  if (auto problem = refuse_short(shape, "dualpipe")) return problem;
  if (shape.micro_batches % 2 == 0) return std::nullopt;
  return ScheduleProblem{
      .message = std::to_string(shape.micro_batches) +
                 " micro-batches: dualpipe sends half of them each way, so 2 must divide them",
      .hint = std::to_string(shape.micro_batches - 1) + " or " + std::to_string(shape.micro_batches + 1) +
              " micro-batches would be legal"};
}

std::vector<Action> dual_pipe(const PipelineShape& shape, int rank) {
  SC_CHECK(!dual_pipe_constraint(shape), "ask dual_pipe_constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  const int each = shape.micro_batches / 2;
  const Phase down{.stage = rank, .first = 0};
  const Phase up{.stage = shape.ranks - 1 - rank, .first = each};
  const bool first_half = rank < shape.ranks / 2;
  return dual_order(first_half ? Pairs(down, up) : Pairs(up, down), shape.ranks / 2,
                    std::min(rank, shape.ranks - 1 - rank), each);
}

std::optional<ScheduleProblem> dual_pipe_v_constraint(const PipelineShape& shape) {
  if (auto problem = refuse_other_than_two_chunks(shape, "dualpipe-v")) return problem;
  return refuse_short(shape, "dualpipe-v");
}

std::vector<Action> dual_pipe_v(const PipelineShape& shape, int rank) {
  SC_CHECK(!dual_pipe_v_constraint(shape), "ask dual_pipe_v_constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  return dual_order(Pairs({.stage = rank}, {.stage = 2 * shape.ranks - 1 - rank}), shape.ranks, rank,
                    shape.micro_batches);
}

}  // namespace stagecraft
