#include "sim/lower/price_layers.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "sim/lower/price_operators.hpp"

namespace stagecraft {
namespace {

void add(StagePrice& sum, const StagePrice& price, std::int64_t times) {
  if (times == 0) return;
  for (std::size_t i = 0; i < sum.each().size(); ++i) {
    sum.each()[i]->add(*price.each()[i], times);
    add(*sum.traffic.each()[i], *price.traffic.each()[i], times);
  }
  sum.unhidden.add(price.unhidden, times);
}

bool alike(const Cluster& cluster, const LayerGroups& a, const LayerGroups& b) {
  const auto node = [&](const LayerGroups& groups) -> const NodeSpec& {
    return cluster.node_spec_of(device_of(groups.member));
  };
  return a.placement == b.placement && node(a) == node(b);
}

// The lowest rank of the group of `member` along one axis.
int first_of(const RankMesh& mesh, int member, Axis axis) {
  return member - mesh.coordinate(member, axis) * mesh.stride(axis);
}

std::vector<LayerGroups> find_layer_groups(const Network& network, int pipeline_rank) {
  // Each group is placed once, of several kinds of nodes once per node that it lies on.
  const bool nodes_differ = network.cluster.spec().groups.size() > 1;
  std::array<std::map<std::pair<int, int>, GroupPlacement>, kCommGroupCount> known;
  std::vector<LayerGroups> all;
  for (const int member : pipeline_members(network.plan, pipeline_rank)) {
    LayerGroups groups{.member = member, .placement = {}};
    for (std::size_t i = 0; i < kCommGroupCount; ++i) {
      const RankGroup group = group_of(static_cast<CommGroup>(i));
      const GroupShape shape = shape_of(group);
      const RankMesh& mesh = shape.mesh(network.plan);
      const Axis axis = *shape.axes.begin();  // groups of layers lie along one axis
      if (mesh.degree(axis) == 1) continue;   // a group of one rank costs nothing
      const int node = nodes_differ ? network.cluster.node_of(device_of(member)) : 0;
      const auto [at, is_new] = known[i].try_emplace({first_of(mesh, member, axis), node});
      if (is_new) {
        at->second = placement_of(network, member, group);
        if (at->second.nodes > 1) at->second.uplinks = network.memo.uplinks.of(network, member, group);
      }
      groups.placement[i] = at->second;
    }
    const bool seen = std::any_of(all.begin(), all.end(), [&](const LayerGroups& other) {
      return alike(network.cluster, groups, other);
    });
    if (!seen) all.push_back(groups);
  }
  return all;
}

}  // namespace

const std::vector<LayerGroups>& layer_groups_of(const Network& network, int pipeline_rank) {
  const auto [at, is_new] = network.memo.layers.try_emplace(pipeline_rank);
  if (is_new) at->second = find_layer_groups(network, pipeline_rank);
  return at->second;
}

const StagePrice& PiecePrices::of(const StageUnit& unit) const {
  switch (unit.kind) {
    case UnitKind::kEmbedding:
      return embedding;
    case UnitKind::kMtp:
      return mtp;
    case UnitKind::kHead:
      return head;
    case UnitKind::kLayer:
      break;
  }
  return (unit.recomputed ? recomputed : layer)[static_cast<std::size_t>(unit.layer)];
}

StagePricing::StagePricing(const TransformerSpec& model, const Network& network,
                           const PricingRequest& request)
    : model_(model),
      network_(network),
      request_(request),
      shard_(request.shard),
      of_pipeline_rank_(static_cast<std::size_t>(network.plan.pipeline)) {}

// Full recompute repeats a layer of multi-token prediction like any other layer. Block recompute counts only
// layers of the decoder.
StagePrice StagePricing::price_mtp(const PiecePrices& pieces, const LayerGroups& groups) const {
  const bool repeated = request_.training.recompute.repeats_mtp();
  StagePrice price =
      price_operators(mtp_operators(model_, shard_.of_layers(repeated)), network_, shard_, groups);
  add(price, pieces.of({.layer = model_.mtp_kind(), .recomputed = repeated}), 1);
  return price;
}

PiecePrices StagePricing::price_pieces(const LayerGroups& groups) const {
  const auto priced = [&](const LayerOps& ops) { return price_operators(ops, network_, shard_, groups); };
  PiecePrices pieces{.groups = groups, .embedding = priced(embedding_operators(model_, shard_))};
  add(pieces.head, priced(head_operators(model_, shard_)), model_.heads_of_tokens());
  const LayerNumbers numbers = model_.numbers();
  for (const LayerKind kind : kLayerKinds) {
    if (numbers[kind] == 0) continue;
    const auto i = static_cast<std::size_t>(kind);
    pieces.layer.resize(i + 1);
    pieces.recomputed.resize(i + 1);
    pieces.layer[i] = priced(layer_operators(model_, shard_.of_layers(false), kind));
    if (shard_.recompute == Recompute::kFull)
      pieces.recomputed[i] = priced(layer_operators(model_, shard_, kind));
  }
  if (model_.mtp_layers > 0) pieces.mtp = price_mtp(pieces, groups);
  return pieces;
}

const std::vector<std::size_t>& StagePricing::placements_of(int pipeline_rank) {
  std::vector<std::size_t>& placements = of_pipeline_rank_[static_cast<std::size_t>(pipeline_rank)];
  if (!placements.empty()) return placements;
  for (const LayerGroups& groups : layer_groups_of(network_, pipeline_rank)) {
    const auto known = std::find_if(pieces_.begin(), pieces_.end(), [&](const PiecePrices& pieces) {
      return alike(network_.cluster, pieces.groups, groups) && same_links(pieces.groups, groups);
    });
    placements.push_back(static_cast<std::size_t>(known - pieces_.begin()));
    if (known == pieces_.end()) pieces_.push_back(price_pieces(groups));
  }
  return placements;
}

// On shared links pipeline ranks differ even where their placements are equal: each uses its own links.
bool StagePricing::same_links(const LayerGroups& a, const LayerGroups& b) const {
  const auto rank = [&](const LayerGroups& groups) {
    return network_.plan.mesh.coordinate(groups.member, Axis::kPipeline);
  };
  const bool shares = network_.patterns != nullptr || network_.own_links != nullptr;
  return !shares || rank(a) == rank(b);
}

StagePrice StagePricing::sum_of(const PiecePrices& pieces, const StageContent& content) const {
  StagePrice price;
  for (std::size_t i = 0; i < pieces.layer.size(); ++i) {
    const LayerKind kind = kLayerKinds[i];
    const std::int64_t again = content.recomputed[kind];
    add(price, pieces.layer[i], content.layers[kind] - again);
    add(price, pieces.recomputed[i], again);
  }
  if (content.embedding) add(price, pieces.embedding, 1);
  add(price, pieces.mtp, content.mtp_layers);
  // The head is last in a forward, so its compute cannot cover an earlier wait for the host. It is first in a
  // backward, where it can.
  wait_for_host(price.forward);
  if (content.head) add(price, pieces.head, 1);
  wait_for_host(price);
  return price;
}

StagePrice StagePricing::price(HeldStage held) {
  const StageContent& content = network_.plan.stages[static_cast<std::size_t>(held.stage)];
  const PiecePrices* slowest = nullptr;
  StagePrice price;
  for (const std::size_t i : placements_of(network_.plan.places().rank_of(held.stage, held.copy))) {
    const StagePrice here = sum_of(pieces_[i], content);
    if (slowest != nullptr && here.total() <= price.total()) continue;
    slowest = &pieces_[i];
    price = here;
  }
  SC_CHECK(slowest != nullptr, "a pipeline rank has a GPU");
  if (request_.zero_stage() < 2) return price;
  for (const StageUnit& unit : stage_units(model_, network_.plan, held.stage)) {
    const StagePrice& piece = slowest->of(unit);
    price.units.push_back({.gather = {},
                           .reduce = {},
                           .replicate = {},
                           .forward = piece.forward.total(),
                           .input_gradient = piece.recompute.total() + piece.input_gradient.total(),
                           .weight_gradient = piece.weight_gradient.total()});
  }
  return price;
}

}  // namespace stagecraft
