#include "models/expert_operators.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "models/elementwise.hpp"
#include "models/feed_forward_operators.hpp"
#include "models/op_builder.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kWeightBytes = 4;  // a routing weight in fp32
constexpr std::int64_t kCountBytes = 8;   // tokens of an expert, int64

std::int64_t scaled(std::int64_t count, double factor) {
  return std::llround(static_cast<double>(count) * factor);
}

struct Experts {
  ExpertWidths widths;
  Routing routing;
  GroupedLinear up, down;
  // Copies that the local experts work on.
  [[nodiscard]] std::int64_t rows() const { return widths.experts * routing.per_expert; }
};

Experts experts_of(const TransformerSpec& model, const Shard& shard) {
  const ExpertWidths w = expert_widths(model, shard.weight_split());
  const Routing r = routing(model, shard);
  const GroupedLinear up{
      .name = "expert up", .experts = w.experts, .tokens = r.per_expert, .out = w.up, .in = model.hidden};
  const GroupedLinear down{
      .name = "expert down", .experts = w.experts, .tokens = r.per_expert, .out = model.hidden, .in = w.ffn};
  return {.widths = w, .routing = r, .up = up, .down = down};
}

Linear router(const TransformerSpec& model, const Shard& shard) {
  return {.name = "router", .tokens = shard.local_tokens(), .out = model.experts->count, .in = model.hidden};
}

// The router stays in 16 bit where the other products are in 8.
Shard router_shard(Shard shard) {
  if (shard.precision == Precision::kFp8) shard.precision = Precision::kBf16;
  return shard;
}

Op router_choice(Pass pass, const TransformerSpec& model, const Shard& shard) {
  return {.name = "router choice",
          .bytes = Bytes(pass.bytes * shard.local_tokens() * model.experts->count),
          .kernels = pass.kernels};
}

// A collective of vectors of h with `extra` bytes beside each.
struct Exchange {
  std::string_view name;
  CollectiveKind kind = CollectiveKind::kAllToAll;
  CommGroup group = CommGroup::kExpert;
  std::int64_t rows = 0, extra = 0;
};

void add_exchange(Ops& ops, const Exchange& exchange, const TransformerSpec& model, const Shard& shard) {
  const bool over_experts = exchange.group == CommGroup::kExpert;
  if ((over_experts ? shard.expert : shard.expert_tensor) == 1) return;
  const Beside beside = over_experts && shard.overlap_expert ? Beside::kOtherMicroBatch : Beside::kNothing;
  const std::int64_t row = element_bytes(shard.precision) * model.hidden + exchange.extra;
  ops.push_back(
      collective_op(exchange.name, exchange.kind, Bytes(exchange.rows * row), beside, exchange.group));
}

void add_counts(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t ranks = shard.expert * shard.expert_tensor;
  if (ranks == 1) return;
  const CommGroup group = shard.expert > 1 ? CommGroup::kExpert : CommGroup::kExpertTensor;
  ops.push_back(collective_op("expert counts", CollectiveKind::kAllGather,
                              Bytes(kCountBytes * model.experts->count * ranks), Beside::kNothing, group));
}

// Rows move from the order of their sender to that of the local experts, and back.
void add_sort(Ops& ops, std::string_view name, const Experts& e, const TransformerSpec& model,
              const Shard& shard) {
  if (e.widths.experts > 1) ops.push_back(permutation_op(name, 2 * e.rows(), model.hidden, shard));
}

// From the rank's tokens to the rows of the local experts. Its own reverse, in sum, on the way back.
void add_dispatch_by_exchange(Ops& ops, const Experts& e, const TransformerSpec& model, const Shard& shard) {
  const Routing& r = e.routing;
  add_counts(ops, model, shard);
  ops.push_back(permutation_op("permute", r.tokens + r.sent, model.hidden, shard));
  add_exchange(ops, {.name = "expert dispatch", .rows = r.received, .extra = kWeightBytes}, model, shard);
  add_exchange(ops,
               {.name = "expert gather",
                .kind = CollectiveKind::kAllGather,
                .group = CommGroup::kExpertTensor,
                .rows = e.rows(),
                .extra = kWeightBytes},
               model, shard);
  add_sort(ops, "expert sort", e, model, shard);
}

void add_combine_by_exchange(Ops& ops, const Experts& e, const TransformerSpec& model, const Shard& shard) {
  const Routing& r = e.routing;
  add_sort(ops, "expert unsort", e, model, shard);
  add_exchange(ops,
               {.name = "expert scatter",
                .kind = CollectiveKind::kReduceScatter,
                .group = CommGroup::kExpertTensor,
                .rows = e.rows()},
               model, shard);
  add_exchange(ops, {.name = "expert combine", .rows = r.received}, model, shard);
  ops.push_back(permutation_op("unpermute", r.tokens + r.sent, model.hidden, shard));
}

void add_combine_gradient_by_exchange(Ops& ops, const Experts& e, const TransformerSpec& model,
                                      const Shard& shard) {
  const Routing& r = e.routing;
  ops.push_back(permutation_op("unpermute", r.tokens + r.sent, model.hidden, shard));
  add_exchange(ops, {.name = "expert combine gradient", .rows = r.received}, model, shard);
  add_exchange(ops,
               {.name = "expert gradient gather",
                .kind = CollectiveKind::kAllGather,
                .group = CommGroup::kExpertTensor,
                .rows = e.rows()},
               model, shard);
  add_sort(ops, "expert unsort", e, model, shard);
}

void add_dispatch_gradient_by_exchange(Ops& ops, const Experts& e, const TransformerSpec& model,
                                       const Shard& shard) {
  const Routing& r = e.routing;
  add_sort(ops, "expert sort", e, model, shard);
  add_exchange(ops,
               {.name = "expert gradient scatter",
                .kind = CollectiveKind::kReduceScatter,
                .group = CommGroup::kExpertTensor,
                .rows = e.rows(),
                .extra = kWeightBytes},
               model, shard);
  add_exchange(ops, {.name = "expert dispatch gradient", .rows = r.received, .extra = kWeightBytes}, model,
               shard);
  ops.push_back(permutation_op("permute", r.tokens + r.sent, model.hidden, shard));
}

// Tokens of all ranks of the expert-tensor group, and of the expert group too.
struct Gathered {
  std::int64_t by_expert_tensor = 0, by_all = 0;
};

Gathered gathered(const Shard& shard) {
  const std::int64_t first = shard.local_tokens() * shard.expert_tensor;
  return {.by_expert_tensor = first, .by_all = first * shard.expert};
}

// Weights and the map that says who goes where, of all experts.
std::int64_t scores_bytes(const TransformerSpec& model) {
  return model.experts->count * (kWeightBytes + 1);
}

struct GatherNames {
  std::string_view by_expert_tensor, by_expert;
};

void add_tokens_gather(Ops& ops, GatherNames names, std::int64_t extra, const TransformerSpec& model,
                       const Shard& shard) {
  const Gathered tokens = gathered(shard);
  add_exchange(ops,
               {.name = names.by_expert_tensor,
                .kind = CollectiveKind::kAllGather,
                .group = CommGroup::kExpertTensor,
                .rows = tokens.by_expert_tensor,
                .extra = extra},
               model, shard);
  add_exchange(
      ops,
      {.name = names.by_expert, .kind = CollectiveKind::kAllGather, .rows = tokens.by_all, .extra = extra},
      model, shard);
}

void add_tokens_scatter(Ops& ops, GatherNames names, std::int64_t extra, const TransformerSpec& model,
                        const Shard& shard) {
  const Gathered tokens = gathered(shard);
  add_exchange(ops,
               {.name = names.by_expert,
                .kind = CollectiveKind::kReduceScatter,
                .rows = tokens.by_all,
                .extra = extra},
               model, shard);
  add_exchange(ops,
               {.name = names.by_expert_tensor,
                .kind = CollectiveKind::kReduceScatter,
                .group = CommGroup::kExpertTensor,
                .rows = tokens.by_expert_tensor,
                .extra = extra},
               model, shard);
}

// The copies of local experts among the gathered tokens; no token is read that nobody wants.
Op pick(std::string_view name, const Experts& e, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t wanted = std::min(gathered(shard).by_all, e.rows());
  return permutation_op(name, wanted + e.rows(), model.hidden, shard);
}

// Partial sums: every gathered token is written, wanted or not.
Op spread(std::string_view name, const Experts& e, const TransformerSpec& model, const Shard& shard) {
  return permutation_op(name, gathered(shard).by_all + e.rows(), model.hidden, shard);
}

void add_dispatch(Ops& ops, const Experts& e, const TransformerSpec& model, const Shard& shard) {
  if (shard.expert_dispatcher == ExpertDispatcher::kAllToAll) {
    return add_dispatch_by_exchange(ops, e, model, shard);
  }
  add_tokens_gather(ops, {"expert gather", "expert dispatch"}, scores_bytes(model), model, shard);
  ops.push_back(pick("permute", e, model, shard));
}

void add_combine(Ops& ops, const Experts& e, const TransformerSpec& model, const Shard& shard) {
  if (shard.expert_dispatcher == ExpertDispatcher::kAllToAll) {
    return add_combine_by_exchange(ops, e, model, shard);
  }
  ops.push_back(spread("unpermute", e, model, shard));
  add_tokens_scatter(ops, {"expert scatter", "expert combine"}, 0, model, shard);
}

void add_combine_gradient(Ops& ops, const Experts& e, const TransformerSpec& model, const Shard& shard) {
  if (shard.expert_dispatcher == ExpertDispatcher::kAllToAll) {
    return add_combine_gradient_by_exchange(ops, e, model, shard);
  }
  add_tokens_gather(ops, {"expert gradient gather", "expert combine gradient"}, 0, model, shard);
  ops.push_back(pick("unpermute", e, model, shard));
}

// The map has no gradient, the weights have.
void add_dispatch_gradient(Ops& ops, const Experts& e, const TransformerSpec& model, const Shard& shard) {
  if (shard.expert_dispatcher == ExpertDispatcher::kAllToAll) {
    return add_dispatch_gradient_by_exchange(ops, e, model, shard);
  }
  ops.push_back(spread("permute", e, model, shard));
  add_tokens_scatter(ops, {"expert gradient scatter", "expert dispatch gradient"},
                     kWeightBytes * model.experts->count, model, shard);
}

Op expert_activation(const Experts& e, Pass pass, Pass weights, const Shard& shard) {
  const Pass both{.bytes = pass.bytes + weights.bytes, .kernels = pass.kernels + weights.kernels};
  return memory_op("expert activation", e.rows() * e.widths.ffn, both, shard);
}

void add_shared_experts_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t elements = shard.local_tokens() * model.hidden;
  if (model.experts->shared_width() == 0) return;
  if (model.experts->shared_gate) {
    add_memory(ops, "shared gate", elements, kSharedGateTraffic.backward, shard);
  }
  add_feed_forward_input_gradient(ops, shared_feed_forward(model, shard), model, shard);
}

// Router, routed and shared experts read the same vectors.
void add_branch_sum(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const int sums = model.experts->shared_width() > 0 ? 2 : 1;
  const Pass pass{.bytes = sums * kSumTraffic.bytes, .kernels = sums * kSumTraffic.kernels};
  add_memory(ops, "branch gradient sum", shard.local_tokens() * model.hidden, pass, shard);
}

}  // namespace

Routing routing(const TransformerSpec& model, const Shard& shard) {
  SC_CHECK(model.experts.has_value(), "the model has experts");
  SC_CHECK(shard.tensor == 1 || shard.sequence_parallel,
           "tensor ranks route tokens of their own: experts need sequence parallelism");
  const ExpertsSpec& experts = *model.experts;
  const bool capacity = experts.capacity_factor > 0;
  const std::int64_t copies = shard.local_tokens() * experts.top_k;
  const double sent = capacity ? experts.capacity_factor : 1;
  const double busiest = capacity ? experts.capacity_factor : experts.imbalance;
  const std::int64_t ranks = shard.expert * shard.expert_tensor;
  const double mean = static_cast<double>(copies * ranks) / static_cast<double>(experts.count);
  return {.tokens = shard.local_tokens(),
          .sent = scaled(copies, sent),
          .received = scaled(copies, busiest),
          .per_expert = std::max<std::int64_t>(1, std::llround(mean * busiest))};
}

void add_experts_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Experts e = experts_of(model, shard);
  add_forward(ops, router(model, shard), router_shard(shard));
  ops.push_back(router_choice(kRouterTraffic.of(shard).forward, model, shard));
  add_shared_experts_forward(ops, model, shard);
  add_dispatch(ops, e, model, shard);
  add_forward(ops, e.up, shard);
  add_expert_activation_forward(ops, model, shard);
  add_forward(ops, e.down, shard);
  add_combine(ops, e, model, shard);
  if (model.experts->shared_width() > 0) {
    add_memory(ops, "shared add", shard.local_tokens() * model.hidden, kSumTraffic, shard);
  }
}

void add_experts_input_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Experts e = experts_of(model, shard);
  add_combine_gradient(ops, e, model, shard);
  add_input_gradient(ops, e.down, shard);
  Op activation = expert_activation(e, activation_traffic(model, shard).backward,
                                    kExpertWeightTraffic.of(shard).backward, shard);
  activation.bytes += Bytes(2 * kWeightBytes * e.rows());  // the weights, and their gradient
  ops.push_back(activation);
  add_input_gradient(ops, e.up, shard);
  add_dispatch_gradient(ops, e, model, shard);
  add_shared_experts_input_gradient(ops, model, shard);
  ops.push_back(router_choice(kRouterTraffic.of(shard).backward, model, shard));
  add_input_gradient(ops, router(model, shard), router_shard(shard));
  add_branch_sum(ops, model, shard);
}

void add_experts_weight_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Experts e = experts_of(model, shard);
  add_weight_gradient(ops, e.down, shard);
  add_weight_gradient(ops, e.up, shard);
  if (model.experts->shared_width() > 0) {
    add_feed_forward_weight_gradient(ops, shared_feed_forward(model, shard), shard);
  }
  add_weight_gradient(ops, router(model, shard), router_shard(shard));
}

void add_expert_activation_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const Experts e = experts_of(model, shard);
  Op activation = expert_activation(e, activation_traffic(model, shard).forward,
                                    kExpertWeightTraffic.of(shard).forward, shard);
  activation.bytes += Bytes(kWeightBytes * e.rows());
  ops.push_back(activation);
}

void add_shared_experts_forward(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (model.experts->shared_width() == 0) return;
  add_feed_forward(ops, shared_feed_forward(model, shard), model, shard);
  if (model.experts->shared_gate) {
    add_memory(ops, "shared gate", shard.local_tokens() * model.hidden, kSharedGateTraffic.forward, shard);
  }
}

}  // namespace stagecraft
