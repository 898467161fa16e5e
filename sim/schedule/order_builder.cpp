#include "sim/schedule/order_builder.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {

SplitPipeline SplitPipeline::of(const PipelineShape& shape, Placement placement, const ScheduleCosts& costs,
                                int own_limit) {
  SC_CHECK(placement == Placement::kLoop || (placement == Placement::kV && shape.chunks == 2),
           "a stage lives on one rank");
  SplitPipeline pipeline{.shape = shape,
                         .placement = placement,
                         .stages = {},
                         .message = costs.message,
                         .memory_limit = costs.memory_limit > 0 ? costs.memory_limit : own_limit,
                         .freed_by_input_gradient = 0};
  SC_CHECK(pipeline.memory_limit >= shape.chunks, "one micro-batch must fit, or nothing runs");
  const double share = costs.freed_by_input_gradient.value_or(0);
  SC_CHECK(share >= 0 && share <= 1, "a share of a chunk's activations");
  pipeline.freed_by_input_gradient = static_cast<int>(std::lround(share * kChunk));
  for (int stage = 0; stage < shape.ranks * shape.chunks; ++stage) pipeline.stages.push_back(costs.of(stage));
  return pipeline;
}

std::int64_t SplitPipeline::most_work() const {
  std::int64_t most = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    std::int64_t work = 0;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      const StageCosts& costs = costs_of(rank, chunk);
      work += costs.forward + costs.input_gradient + costs.weight_gradient;
    }
    most = std::max(most, shape.micro_batches * work);
  }
  return most;
}

OrderBuilder::OrderBuilder(const SplitPipeline& pipeline)
    : pipeline_(&pipeline),
      ranks_(static_cast<std::size_t>(pipeline.shape.ranks)),
      forward_ends_(static_cast<std::size_t>(pipeline.stage_count())),
      input_gradient_ends_(forward_ends_.size()),
      weight_gradient_counts_(forward_ends_.size(), 0) {
  schedule_.shape = pipeline.shape;
  schedule_.placement = pipeline.placement;
  schedule_.ranks.resize(ranks_.size());
  const std::size_t pairs = static_cast<std::size_t>(pipeline.shape.chunks) *
                            static_cast<std::size_t>(pipeline.shape.micro_batches);
  for (std::vector<Action>& order : schedule_.ranks) order.reserve(3 * pairs);
}

void OrderBuilder::run(int rank, const Action& action, std::int64_t arrival, std::int64_t time) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  const std::int64_t start = std::max(state.end, arrival);
  if (state.first_start < 0) {
    state.first_start = start;
  } else {
    state.idle += start - state.end;
    worst_idle_ = std::max(worst_idle_, state.idle);
  }
  state.end = start + time;
  schedule_.ranks[static_cast<std::size_t>(rank)].push_back(action);
}

void OrderBuilder::put(Pass pass, int rank, int chunk) {
  SC_CHECK(fed(pass, rank, chunk), "a pass is put once what it needs is");
  const int stage = pipeline_->stage_of(rank, chunk);
  const StageCosts& costs = pipeline_->costs_of(rank, chunk);
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  const Action action{.pass = pass, .stage = stage, .micro_batch = count(pass, rank, chunk)};
  if (pass == Pass::kForward) {
    run(rank, action, arrival(pass, rank, chunk), costs.forward);
    forward_ends_[static_cast<std::size_t>(stage)].push_back(state.end);
    state.memory += kChunk;
  } else {
    run(rank, action, arrival(pass, rank, chunk), costs.input_gradient);
    input_gradient_ends_[static_cast<std::size_t>(stage)].push_back(state.end);
    state.memory -= pipeline_->freed_by_input_gradient;
    state.input_gradients.push_back(chunk);
  }
}

void OrderBuilder::put_weight_gradient(int rank) {
  SC_CHECK(pending(rank) > 0, "a weight gradient follows its input gradient");
  const int chunk = oldest_pending(rank);
  const int stage = pipeline_->stage_of(rank, chunk);
  int& done = weight_gradient_counts_[static_cast<std::size_t>(stage)];
  run(rank, {.pass = Pass::kWeightGradient, .stage = stage, .micro_batch = done}, 0,
      pipeline_->costs_of(rank, chunk).weight_gradient);
  ++done;
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  ++state.weight_gradients;
  state.memory -= kChunk - pipeline_->freed_by_input_gradient;
}

bool OrderBuilder::make_room(int rank) {
  while (!has_room(rank)) {
    if (pending(rank) == 0) return false;
    put_weight_gradient(rank);
  }
  return true;
}

bool OrderBuilder::can_make_room(int rank) const {
  const std::int64_t returned = std::int64_t{kChunk - pipeline_->freed_by_input_gradient} * pending(rank);
  return at(rank).memory - returned + kChunk <= std::int64_t{kChunk} * pipeline_->memory_limit;
}

bool OrderBuilder::complete() const {
  const auto all = static_cast<std::size_t>(3 * pipeline_->shape.chunks * pipeline_->shape.micro_batches);
  return std::ranges::all_of(schedule_.ranks,
                             [&](const std::vector<Action>& order) { return order.size() == all; });
}

std::int64_t OrderBuilder::span() const {
  std::int64_t longest = 0;
  for (const Rank& rank : ranks_) {
    if (rank.first_start >= 0) longest = std::max(longest, rank.end - rank.first_start);
  }
  return longest;
}

std::int64_t OrderBuilder::peak_memory(int freed_by_input_gradient) const {
  std::int64_t peak = 0;
  for (const std::vector<Action>& order : schedule_.ranks) {
    std::int64_t held = 0;
    for (const Action& action : order) {
      if (action.pass == Pass::kForward) peak = std::max(peak, held += kChunk);
      if (action.pass == Pass::kInputGradient) held -= freed_by_input_gradient;
      if (action.pass == Pass::kWeightGradient) held -= kChunk - freed_by_input_gradient;
    }
  }
  return peak;
}

Schedule OrderBuilder::take(std::string name) && {
  SC_CHECK(complete(), "an order of all passes");
  schedule_.name = std::move(name);
  return std::move(schedule_);
}

}  // namespace stagecraft
