#include "models/expert_operators.hpp"

#include <algorithm>
#include <cstddef>

#include "models/elementwise.hpp"
#include "models/expert_exchange.hpp"
#include "models/feed_forward_operators.hpp"
#include "models/op_builder.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

struct Experts {
  ExpertWidths widths;
  TokenRouting routing;
  GroupedLinear up, down;
};

Fp8Source sent(const Shard& shard) {
  return shard.reads_sent() ? Fp8Source::kSent : Fp8Source::kSixteenBit;
}

// Between the two products of the experts, in either direction.
Fp8Source within(const Shard& shard) {
  return shard.fuses_experts() && !shard.casts_to_fp4() ? Fp8Source::kProduct : Fp8Source::kSixteenBit;
}

// What a fused product writes of its activation, or of the activation's gradient.
std::int64_t written_within(std::int64_t elements, const Shard& shard) {
  constexpr int kLayouts = 2;
  return within(shard) == Fp8Source::kProduct ? kLayouts * cast_bytes(elements, shard)
                                              : element_bytes(shard.precision) * elements;
}

Experts experts_of(const TransformerSpec& model, const Shard& shard) {
  const ExpertWidths w = expert_widths(model, shard.weight_split());
  const TokenRouting r = routing(model, shard);
  const Linear up{.name = "expert up",
                  .tokens = r.per_expert,
                  .out = w.up,
                  .in = model.hidden,
                  .bias = model.biases,
                  .input = sent(shard),
                  .gradient = within(shard)};
  const Linear down{.name = "expert down",
                    .tokens = r.per_expert,
                    .out = model.hidden,
                    .in = w.ffn,
                    .input = within(shard),
                    .gradient = sent(shard)};
  return {.widths = w, .routing = r, .up = {w.experts, up}, .down = {w.experts, down}};
}

Linear router(const TransformerSpec& model, const Shard& shard) {
  return {.name = "router",
          .tokens = shard.local_tokens(),
          .out = model.experts->count,
          .in = model.hidden,
          .sixteen_bit = true};
}

// Kernels of Megatron-Core's router in a forward, with its fusions and without.
//   source  NVIDIA/Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization, section 2.1.4
constexpr int kFusedRouterLaunches = 31, kRouterLaunches = 72;

Op router_choice(MemoryPass pass, const TransformerSpec& model, const Shard& shard) {
  return {.name = "router choice",
          .bytes = Bytes(pass.bytes * shard.local_tokens() * model.experts->count),
          .kernels = pass.kernels};
}

Elementwise expert_activation_traffic(const TransformerSpec& model, const Shard& shard) {
  return activation_traffic(model, shard, clamps_apart(model, shard) && !shard.fuses_experts());
}

void add_expert_biases(Ops& ops, const Experts& e, MemoryPass pass, const TransformerSpec& model,
                       const Shard& shard) {
  if (!model.biases || shard.fuses_experts()) return;
  ops.push_back({.name = "expert biases",
                 .bytes = Bytes(pass.bytes * e.routing.rows() * model.hidden),
                 .elements = e.routing.rows() * model.hidden,
                 .kernels = pass.kernels * static_cast<int>(e.widths.experts) + kExpertBiasJoins});
}

const Elementwise& weight_traffic(const TransformerSpec& model, const Shard& shard) {
  return kExpertWeightTraffic.of(fuses_activation(model, shard));
}

Op expert_activation(const Experts& e, MemoryPass pass, MemoryPass weights, const Shard& shard) {
  return memory_op("expert activation", e.routing.rows() * e.widths.ffn, pass + weights, shard);
}

// Up to what the second product reads.
void add_up_and_activation(Ops& ops, const Experts& e, const TransformerSpec& model, const Shard& shard) {
  add_forward(ops, e.up, shard);
  if (!shard.fuses_experts()) return add_expert_activation_forward(ops, model, shard);
  const std::int64_t rows = e.routing.rows();
  ops.back().bytes += Bytes(written_within(rows * e.widths.ffn, shard) + kRoutingWeightBytes * rows);
}

// From the gradient of the experts' output to that of the first product's.
void add_down_and_activation_gradient(Ops& ops, const Experts& e, const TransformerSpec& model,
                                      const Shard& shard) {
  const std::int64_t rows = e.routing.rows(), weights = 2 * kRoutingWeightBytes * rows;  // and their gradient
  add_input_gradient(ops, e.down, shard);
  if (!shard.fuses_experts()) {
    ops.push_back(expert_activation(e, expert_activation_traffic(model, shard).backward,
                                    weight_traffic(model, shard).backward, shard));
    ops.back().bytes += Bytes(weights);
    return;
  }
  // In place of the activation's gradient, which stays inside.
  const std::int64_t kept = rows * e.widths.up;
  ops.back().bytes += Bytes(element_bytes(shard.precision) * (kept - rows * e.widths.ffn) +
                            written_within(kept, shard) + weights);
}

void mark(Ops& ops, std::size_t from, SharedHalf half) {
  for (std::size_t i = from; i < ops.size(); ++i) ops[i].shared = half;
}

void add_shared_experts_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t elements = shard.local_tokens() * model.hidden;
  if (model.experts->shared_width() == 0) return;
  if (model.experts->shared_gate) {
    add_memory(ops, "shared gate", elements, kSharedGateTraffic.backward, shard);
  }
  const FeedForward block = shared_feed_forward(model, shard);
  const std::size_t first = ops.size();
  add_feed_forward_input_gradient(ops, block, model, shard);
  const auto half = std::find_if(ops.begin() + static_cast<std::ptrdiff_t>(first), ops.end(),
                                 [&](const Op& op) { return op.name == block.names.activation; });
  mark(ops, first, SharedHalf::kDown);
  mark(ops, static_cast<std::size_t>(half - ops.begin()), SharedHalf::kUp);
}

void add_router_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_forward(ops, router(model, shard), shard);
  ops.push_back(router_choice(kRouterTraffic.of(shard).forward, model, shard));
  ops.back().host_launches = shard.fused_kernels ? kFusedRouterLaunches : kRouterLaunches;
}

// Marks the operators from `first` on as routed: their number of rows changes with routing unless it is
// padded.
void mark_routed(Ops& ops, std::size_t first, const TransformerSpec& model) {
  for (std::size_t i = first; i < ops.size(); ++i) ops[i].routed = !model.experts->pad_to_capacity;
}

// Router, routed and shared experts read the same vectors.
void add_branch_sum(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const int sums = model.experts->shared_width() > 0 ? 2 : 1;
  const MemoryPass pass{.bytes = sums * kSumTraffic.bytes, .kernels = sums * kSumTraffic.kernels};
  add_memory(ops, "branch gradient sum", shard.local_tokens() * model.hidden, pass, shard);
}

}  // namespace

void add_experts_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Experts e = experts_of(model, shard);
  add_router_forward(ops, model, shard);
  add_shared_experts_forward(ops, model, shard);
  const std::size_t first_routed = ops.size();
  add_dispatch(ops, model, shard);
  add_up_and_activation(ops, e, model, shard);
  add_forward(ops, e.down, shard);
  add_expert_biases(ops, e, kExpertBiasTraffic.forward, model, shard);
  add_combine(ops, model, shard);
  mark_routed(ops, first_routed, model);
  if (model.experts->shared_width() > 0) {
    add_memory(ops, "shared add", shard.local_tokens() * model.hidden, kSumTraffic, shard);
  }
}

void add_experts_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Experts e = experts_of(model, shard);
  const std::size_t first_routed = ops.size();
  add_combine_gradient(ops, model, shard);
  add_expert_biases(ops, e, kExpertBiasTraffic.backward, model, shard);
  add_down_and_activation_gradient(ops, e, model, shard);
  add_input_gradient(ops, e.up, shard);
  add_dispatch_gradient(ops, model, shard);
  mark_routed(ops, first_routed, model);
  add_shared_experts_input_gradient(ops, model, shard);
  ops.push_back(router_choice(kRouterTraffic.of(shard).backward, model, shard));
  add_input_gradient(ops, router(model, shard), shard);
  add_branch_sum(ops, model, shard);
}

void add_experts_weight_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Experts e = experts_of(model, shard);
  const std::size_t first_routed = ops.size();
  add_weight_gradient(ops, e.down, shard);
  add_weight_gradient(ops, e.up, shard);
  mark_routed(ops, first_routed, model);
  if (model.experts->shared_width() > 0) {
    add_feed_forward_weight_gradient(ops, shared_feed_forward(model, shard), shard);
  }
  add_weight_gradient(ops, router(model, shard), shard);
}

void add_expert_activation_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Experts e = experts_of(model, shard);
  Op activation = expert_activation(e, expert_activation_traffic(model, shard).forward,
                                    weight_traffic(model, shard).forward, shard);
  activation.bytes += Bytes(kRoutingWeightBytes * e.routing.rows());
  ops.push_back(activation);
  mark_routed(ops, ops.size() - 1, model);
}

void add_experts_by_operator_again(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_router_forward(ops, model, shard);
  if (model.experts->shared_width() > 0)
    add_behind_first_product(ops, shared_feed_forward(model, shard), model, shard);
  const std::size_t first_routed = ops.size();
  if (!keeps_exchanged(shard)) add_dispatch(ops, model, shard);
  add_forward(ops, experts_of(model, shard).up, shard);
  add_expert_activation_forward(ops, model, shard);
  mark_routed(ops, first_routed, model);
}

void add_shared_experts_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (model.experts->shared_width() == 0) return;
  const FeedForward block = shared_feed_forward(model, shard);
  const std::size_t first = ops.size();
  add_feed_forward_up(ops, block, model, shard);
  const std::size_t half = ops.size();
  mark(ops, first, SharedHalf::kUp);
  add_feed_forward_down(ops, block, model, shard);
  mark(ops, half, SharedHalf::kDown);
  if (model.experts->shared_gate) {
    add_memory(ops, "shared gate", shard.local_tokens() * model.hidden, kSharedGateTraffic.forward, shard);
  }
}

}  // namespace stagecraft
