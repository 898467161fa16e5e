#include "sim/schedule/zb_v.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "sim/schedule/shape.hpp"

namespace stagecraft {
namespace {

// The order of one rank as it grows: every pass of a chunk takes its micro-batches from 0 on.
class TwoChunks {
 public:
  TwoChunks(const PipelineShape& shape, int rank)
      : stages_{rank, 2 * shape.ranks - 1 - rank}, micro_batches_(shape.micro_batches) {
    order_.reserve(6 * static_cast<std::size_t>(shape.micro_batches));
  }

  void forward(std::size_t chunk) { add(Pass::kForward, chunk, forwards_[chunk]++); }
  void input(std::size_t chunk) { add(Pass::kInputGradient, chunk, inputs_[chunk]++); }
  void weight(std::size_t chunk) { add(Pass::kWeightGradient, chunk, weights_[chunk]++); }
  void backward(std::size_t chunk) {
    input(chunk);
    weight(chunk);
  }
  void weights_left(std::size_t chunk) {
    while (weights_[chunk] < inputs_[chunk]) weight(chunk);
  }

  [[nodiscard]] int forwards(std::size_t chunk) const { return forwards_[chunk]; }
  [[nodiscard]] std::vector<Action> take() && { return std::move(order_); }

 private:
  void add(Pass pass, std::size_t chunk, int j) {
    if (j < micro_batches_) order_.push_back({.pass = pass, .stage = stages_[chunk], .micro_batch = j});
  }

  std::array<int, 2> stages_;
  int micro_batches_;
  std::array<int, 2> forwards_{}, inputs_{}, weights_{};
  std::vector<Action> order_;
};

}  // namespace

std::optional<ScheduleProblem> zb_v_constraint(const PipelineShape& shape) {
  return refuse_other_than_two_chunks(shape, "zb-v");
}

std::vector<Action> zb_v(const PipelineShape& shape, int rank) {
  SC_CHECK(!zb_v_constraint(shape), "ask zb_v_constraint first");
  SC_CHECK(rank >= 0 && rank < shape.ranks, "no such rank");
  const int after = shape.ranks - rank;  // ranks from this one to the last
  const int padded = std::max(shape.micro_batches, 2 * shape.ranks - 1);
  TwoChunks order(shape, rank);
  for (int i = 0; i < 2 * after - 1; ++i) order.forward(0);
  for (int i = 0; i < rank; ++i) {
    order.forward(1);
    order.forward(0);
  }
  for (int i = 0; i < after; ++i) {
    order.forward(1);
    order.backward(1);
  }
  while (order.forwards(0) < padded || order.forwards(1) < order.forwards(0)) {
    if (order.forwards(0) < padded) order.forward(0);
    order.backward(0);
    order.forward(1);
    order.backward(1);
  }
  for (int i = 0; i < rank; ++i) {
    order.input(0);
    order.input(1);
  }
  for (int i = 0; i < after; ++i) {
    order.input(0);
    order.weight(0);
  }
  order.weights_left(1);
  order.weights_left(0);
  return std::move(order).take();
}

}  // namespace stagecraft
