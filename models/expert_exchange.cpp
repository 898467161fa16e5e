#include "models/expert_exchange.hpp"

#include <algorithm>
#include <cmath>

#include "base/ceil_div.hpp"
#include "base/check.hpp"
#include "models/op_builder.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kCountBytes = 8;  // tokens of an expert, int64
constexpr std::int64_t kSourceBytes =
    8;  // of a node-aware copy: where it came from, and to which ranks it goes
constexpr std::int64_t kChoiceBytes = 4;       // number of an expert, int32
constexpr std::int64_t kScaledTogether = 128;  // elements of a row that share an fp32 scale
constexpr std::int64_t kScaleOfRowBytes = 4;

std::int64_t scaled(std::int64_t count, double factor) {
  return std::llround(static_cast<double>(count) * factor);
}

// Copies at the busiest rank over the even share.
double busiest_share(const ExpertsSpec& experts, const Shard& shard) {
  if (experts.pad_to_capacity) return experts.capacity_factor;
  const double chosen = busiest_rank(experts, shard);
  return experts.capacity_factor > 0 ? std::min(chosen, experts.capacity_factor) : chosen;
}

// Copies sent over those of tokens that all reach their experts.
double sent_share(const ExpertsSpec& experts) {
  if (experts.capacity_factor == 0) return 1;
  return experts.pad_to_capacity ? experts.capacity_factor : std::min(1.0, experts.capacity_factor);
}

std::int64_t fp8_row_bytes(const TransformerSpec& model) {
  return model.hidden + kScaleOfRowBytes * ceil_div(model.hidden, kScaledTogether);
}

TokenChoice choice_of(const ExpertsSpec& experts) {
  return {.count = experts.count,
          .top_k = experts.top_k,
          .groups = experts.groups,
          .top_groups = experts.top_groups};
}

// Direction of a collective: to the experts, possibly in fp8, or back.
enum class Towards : std::uint8_t { kExperts, kTokens };

std::int64_t row_bytes(Towards towards, const TransformerSpec& model, const Shard& shard) {
  return towards == Towards::kExperts ? dispatched_row_bytes(model, shard)
                                      : element_bytes(shard.precision) * model.hidden;
}

// A collective of vectors of h with `extra` bytes per vector.
struct Exchange {
  std::string_view name;
  CollectiveKind kind = CollectiveKind::kAllToAll;
  CommGroup group = CommGroup::kExpert;
  std::int64_t rows = 0, extra = 0;
  SharedHalf shared = SharedHalf::kNone;
  Towards towards = Towards::kTokens;
};

// Bytes sent along with a copy. `each` belongs to one chosen expert; a node-aware copy carries all of them.
std::int64_t beside_copy(std::int64_t each, const TransformerSpec& model, const Shard& shard) {
  return shard.sends_by_node() ? kSourceBytes + model.experts->top_k * each : each;
}

bool runs_beside_shared(const Exchange& exchange, const TransformerSpec& model, const Shard& shard) {
  return shard.overlap_shared_experts && !shard.sends_by_node() && exchange.shared != SharedHalf::kNone &&
         model.experts->shared_width() > 0;
}

void add_exchange(Ops& ops, const Exchange& exchange, const TransformerSpec& model, const Shard& shard) {
  const bool over_experts = exchange.group == CommGroup::kExpert;
  if ((over_experts ? shard.expert : shard.expert_tensor) == 1) return;
  const Beside beside =
      runs_beside_shared(exchange, model, shard) ? Beside::kSharedExperts : Beside::kNothing;
  const std::int64_t row = row_bytes(exchange.towards, model, shard) + exchange.extra;
  Op op = collective_op(exchange.name, exchange.kind, Bytes(exchange.rows * row), beside, exchange.group);
  op.shared = exchange.shared;
  if (over_experts && shard.sends_by_node())
    op.nodes = {.choice = choice_of(*model.experts), .each = Bytes(routing(model, shard).whole * row)};
  ops.push_back(op);
}

void add_counts(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  const std::int64_t ranks = shard.expert * shard.expert_tensor;
  if (ranks == 1) return;
  const CommGroup group = shard.expert > 1 ? CommGroup::kExpert : CommGroup::kExpertTensor;
  ops.push_back(collective_op("expert counts", CollectiveKind::kAllGather,
                              Bytes(kCountBytes * model.experts->count * ranks), Beside::kNothing, group));
}

// Rows of h elements that are moved one by one.
Op permutation(std::string_view name, std::int64_t rows, Towards towards, const TransformerSpec& model,
               const Shard& shard) {
  Op op = permutation_op(name, rows, model.hidden, shard);
  op.bytes = Bytes(rows * row_bytes(towards, model, shard));
  return op;
}

// Cast from 16 bit to fp8 before the send, and back after it where the GEMMs run in 16 bit.
void add_dispatch_cast(Ops& ops, std::string_view name, std::int64_t rows, const TransformerSpec& model,
                       const Shard& shard) {
  if (!shard.sends_fp8()) return;
  const std::int64_t elements = rows * model.hidden;
  ops.push_back({.name = name,
                 .bytes = Bytes(rows * fp8_row_bytes(model) + element_bytes(shard.precision) * elements),
                 .elements = elements});
}

// Tokens of all ranks of the expert-tensor group, and of the expert group too.
struct Gathered {
  std::int64_t by_expert_tensor = 0, by_all = 0;
};

Gathered gathered(const Shard& shard) {
  const std::int64_t first = shard.local_tokens() * shard.expert_tensor;
  return {.by_expert_tensor = first, .by_all = first * shard.expert};
}

// One way between the rank's tokens and the rows of the local experts: its operators, and bytes sent along.
struct Way {
  Towards towards = Towards::kTokens;
  std::string_view permute, over_expert, over_expert_tensor, sort;
  SharedHalf shared = SharedHalf::kNone;
  std::int64_t with_choice = 0;  // of an all-to-all, for each chosen expert
  std::int64_t with_token = 0;   // of an all-gather
};

// Rows move from the order of their sender to that of the local experts, and back.
void add_sort(Ops& ops, const Way& way, const TokenRouting& r, const TransformerSpec& model,
              const Shard& shard) {
  if (r.experts > 1) ops.push_back(permutation(way.sort, r.arrived + r.rows(), way.towards, model, shard));
}

// Copies a rank's tokens for each of their experts, or sums the copies. Node-aware exchanges do both in
// transit.
void add_permute(Ops& ops, const Way& way, const TokenRouting& r, const TransformerSpec& model,
                 const Shard& shard) {
  if (!shard.sends_by_node())
    ops.push_back(permutation(way.permute, r.tokens + r.sent, way.towards, model, shard));
}

// The way to the tokens is the reverse of the way to the experts, with sums.
void add_by_exchange(Ops& ops, const Way& way, const TransformerSpec& model, const Shard& shard) {
  const TokenRouting r = routing(model, shard);
  const bool to_experts = way.towards == Towards::kExperts;
  const std::int64_t extra = beside_copy(way.with_choice, model, shard);
  const Exchange over_expert{.name = way.over_expert,
                             .rows = r.received,
                             .extra = extra,
                             .shared = way.shared,
                             .towards = way.towards};
  const Exchange over_expert_tensor{
      .name = way.over_expert_tensor,
      .kind = to_experts ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter,
      .group = CommGroup::kExpertTensor,
      .rows = r.arrived,
      .extra = extra,
      .towards = way.towards};
  if (to_experts) {
    add_dispatch_cast(ops, "dispatch cast", r.tokens, model, shard);
    add_permute(ops, way, r, model, shard);
    add_exchange(ops, over_expert, model, shard);
    add_exchange(ops, over_expert_tensor, model, shard);
    add_sort(ops, way, r, model, shard);
    if (!shard.reads_sent()) add_dispatch_cast(ops, "dispatch cast back", r.rows(), model, shard);
  } else {
    add_sort(ops, way, r, model, shard);
    add_exchange(ops, over_expert_tensor, model, shard);
    add_exchange(ops, over_expert, model, shard);
    add_permute(ops, way, r, model, shard);
  }
}

// The copies for local experts are selected among the gathered tokens, of which unwanted ones are not read.
// Back, every gathered token gets a partial sum, wanted or not.
void add_by_gather(Ops& ops, const Way& way, const TransformerSpec& model, const Shard& shard) {
  const Gathered tokens = gathered(shard);
  const std::int64_t rows = routing(model, shard).rows();
  const bool to_experts = way.towards == Towards::kExperts;
  const Exchange over_expert{.name = way.over_expert,
                             .kind = to_experts ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter,
                             .rows = tokens.by_all,
                             .extra = way.with_token};
  Exchange over_expert_tensor = over_expert;
  over_expert_tensor.name = way.over_expert_tensor;
  over_expert_tensor.group = CommGroup::kExpertTensor;
  over_expert_tensor.rows = tokens.by_expert_tensor;
  if (to_experts) {
    add_exchange(ops, over_expert_tensor, model, shard);
    add_exchange(ops, over_expert, model, shard);
    ops.push_back(permutation_op(way.permute, std::min(tokens.by_all, rows) + rows, model.hidden, shard));
  } else {
    ops.push_back(permutation_op(way.permute, tokens.by_all + rows, model.hidden, shard));
    add_exchange(ops, over_expert, model, shard);
    add_exchange(ops, over_expert_tensor, model, shard);
  }
}

void add_way(Ops& ops, const Way& way, const TransformerSpec& model, const Shard& shard) {
  const bool by_gather = shard.expert_dispatcher == ExpertDispatcher::kAllGather;
  by_gather ? add_by_gather(ops, way, model, shard) : add_by_exchange(ops, way, model, shard);
}

}  // namespace

double busiest_rank(const ExpertsSpec& experts, const Shard& shard) {
  const std::int64_t of_a_token = std::min(experts.top_k, experts.count / shard.expert);
  const std::int64_t most = shard.expert * of_a_token;
  return std::min(experts.imbalance, static_cast<double>(most) / static_cast<double>(experts.top_k));
}

TokenRouting routing(const TransformerSpec& model, const Shard& shard) {
  SC_CHECK(model.experts.has_value(), "the model has experts");
  SC_CHECK(model.experts->count % shard.expert == 0, "every expert rank holds the same number of experts");
  SC_CHECK(shard.tensor == 1 || shard.sequence_parallel,
           "tensor ranks route tokens of their own: experts need sequence parallelism");
  const ExpertsSpec& experts = *model.experts;
  const std::int64_t copies = shard.local_tokens() * experts.top_k;
  const double busiest = busiest_share(experts, shard);
  const std::int64_t ranks = shard.expert * shard.expert_tensor;
  const double mean = static_cast<double>(copies * ranks) / static_cast<double>(experts.count);
  TokenRouting r{.tokens = shard.local_tokens(),
                 .sent = scaled(copies, sent_share(experts)),
                 .received = scaled(copies, busiest),
                 .whole = scaled(shard.local_tokens(), busiest),
                 .experts = experts.count / shard.expert,
                 .per_expert = std::max<std::int64_t>(1, std::llround(mean * busiest))};
  r.arrived = r.rows();
  if (shard.sends_by_node()) {
    r.received = scaled(shard.local_tokens(), busiest * expected_holders(choice_of(experts), shard.expert));
    r.arrived = r.received * shard.expert_tensor;
  }
  return r;
}

std::int64_t received_pairs(const TransformerSpec& model, const Shard& shard) {
  const ExpertsSpec& experts = *model.experts;
  return scaled(shard.local_tokens() * experts.top_k * shard.expert_tensor, busiest_share(experts, shard));
}

bool keeps_exchanged(const Shard& shard) {
  return shard.expert_dispatcher == ExpertDispatcher::kAllToAll && shard.expert > 1;
}

std::int64_t gathered_tokens(const Shard& shard) {
  return gathered(shard).by_all;
}

std::int64_t dispatched_row_bytes(const TransformerSpec& model, const Shard& shard) {
  return shard.sends_fp8() ? fp8_row_bytes(model) : element_bytes(shard.precision) * model.hidden;
}

std::int64_t expert_input_row_bytes(const TransformerSpec& model, const Shard& shard) {
  return shard.reads_sent() ? fp8_row_bytes(model) : element_bytes(shard.precision) * model.hidden;
}

// The all-gather sends weights, and the map of tokens to experts, over all experts.
void add_dispatch(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  if (shard.expert_dispatcher != ExpertDispatcher::kAllGather) add_counts(ops, model, shard);
  add_way(ops,
          {.towards = Towards::kExperts,
           .permute = "permute",
           .over_expert = "expert dispatch",
           .over_expert_tensor = "expert gather",
           .sort = "expert sort",
           .shared = SharedHalf::kUp,
           .with_choice = kRoutingWeightBytes + (shard.sends_by_node() ? kChoiceBytes : 0),
           .with_token = (kRoutingWeightBytes + 1) * model.experts->count},
          model, shard);
}

void add_combine(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_way(ops,
          {.towards = Towards::kTokens,
           .permute = "unpermute",
           .over_expert = "expert combine",
           .over_expert_tensor = "expert scatter",
           .sort = "expert unsort",
           .shared = SharedHalf::kDown},
          model, shard);
}

void add_combine_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_way(ops,
          {.towards = Towards::kExperts,
           .permute = "unpermute",
           .over_expert = "expert combine gradient",
           .over_expert_tensor = "expert gradient gather",
           .sort = "expert unsort",
           .shared = SharedHalf::kDown},
          model, shard);
}

// The map has no gradient, the weights have.
void add_dispatch_gradient(Ops& ops, const TransformerSpec& model, const Shard& shard) {
  add_way(ops,
          {.towards = Towards::kTokens,
           .permute = "permute",
           .over_expert = "expert dispatch gradient",
           .over_expert_tensor = "expert gradient scatter",
           .sort = "expert sort",
           .shared = SharedHalf::kUp,
           .with_choice = kRoutingWeightBytes,
           .with_token = kRoutingWeightBytes * model.experts->count},
          model, shard);
}

}  // namespace stagecraft
