#include "topology/cluster_view.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "topology/cluster_drawing.hpp"

namespace stagecraft {
namespace {

// Nodes with the same links to the same switches. All pairs of nodes between two such sites are equal.
struct Site {
  std::vector<int> nodes;  // ascending
};

// Links of one node, with its own vertices numbered from its first one and the others as they are.
using SiteKey = std::vector<std::uint64_t>;

enum class Reach : std::uint8_t { kInside, kOutside };  // links inside a node alone, or those out of it too

std::vector<Site> sites_of(const Cluster& cluster, const ClusterDrawing& drawing, Reach reach) {
  constexpr std::uint64_t kElsewhere = std::uint64_t{1} << 32;
  const auto nodes = static_cast<std::size_t>(cluster.node_count());
  std::vector<std::size_t> first(nodes, drawing.vertices.size());
  for (std::size_t v = drawing.vertices.size(); v-- > 0;)
    if (drawing.vertices[v].node >= 0) first[static_cast<std::size_t>(drawing.vertices[v].node)] = v;
  std::vector<SiteKey> keys(nodes);
  const auto note = [&](int node, EdgeId link) {
    if (node < 0) return;
    const auto at = static_cast<std::size_t>(node);
    for (const std::size_t v : {drawing.ends[link].from, drawing.ends[link].to})
      keys[at].push_back(drawing.vertices[v].node == node ? v - first[at] : kElsewhere + v);
    keys[at].push_back(std::bit_cast<std::uint64_t>(cluster.link(link).capacity.count()));
    keys[at].push_back(static_cast<std::uint64_t>(cluster.link(link).latency.count()));
  };
  for (std::uint32_t i = 0; i < drawing.ends.size(); ++i) {
    const auto [from, to] = drawing.ends[EdgeId(i)];
    const int from_node = drawing.vertices[from].node, to_node = drawing.vertices[to].node;
    if (reach == Reach::kInside && from_node != to_node) continue;
    note(from_node, EdgeId(i));
    if (to_node != from_node) note(to_node, EdgeId(i));
  }
  std::map<SiteKey, std::size_t> known;
  std::vector<Site> sites;
  for (int node = 0; node < cluster.node_count(); ++node) {
    const auto [place, added] =
        known.try_emplace(std::move(keys[static_cast<std::size_t>(node)]), sites.size());
    if (added) sites.emplace_back();
    sites[place->second].nodes.push_back(node);
  }
  return sites;
}

class PairCount {
 public:
  PairCount(const Cluster& cluster, const ClusterDrawing& drawing) : cluster_(cluster), drawing_(drawing) {}

  // Adds `weight` pairs of nodes, represented by `a` and `b`. A node paired with itself gives pairs of its
  // GPUs.
  void add_nodes(int a, int b, double weight) {
    for (int i = 0; i < cluster_.gpus_in(a); ++i)
      for (int j = a == b ? i + 1 : 0; j < cluster_.gpus_in(b); ++j) {
        PairClass pair = look(gpu(a, i), gpu(b, j));
        const auto key = std::tuple(pair.switches, pair.links, pair.latency, -megabytes(pair), pair.name);
        auto& [example, pairs] = classes_.try_emplace(key, std::move(pair), 0.0).first->second;
        pairs += weight;
      }
  }

  // Scales the pairs between nodes so that there are `total` of them.
  void scale_between_nodes(double total) {
    double seen = 0;
    for (const auto& [key, entry] : classes_)
      if (between_nodes(entry.first)) seen += entry.second;
    for (auto& [key, entry] : classes_)
      if (between_nodes(entry.first)) entry.second *= total / seen;
  }

  [[nodiscard]] std::vector<PairClass> take() {
    std::vector<PairClass> list;
    for (auto& [key, entry] : classes_) {
      entry.first.pairs = std::llround(entry.second);
      list.push_back(std::move(entry.first));
    }
    return list;
  }

 private:
  using Key = std::tuple<int, int, Duration, std::int64_t, std::string>;

  [[nodiscard]] DeviceId gpu(int node, int slot) const { return device_of(cluster_.first_gpu(node) + slot); }
  [[nodiscard]] bool between_nodes(const PairClass& pair) const {
    return cluster_.node_of(pair.from) != cluster_.node_of(pair.to);
  }
  static std::int64_t megabytes(const PairClass& pair) { return std::llround(pair.bandwidth.count() / 1e6); }

  [[nodiscard]] PairClass look(DeviceId a, DeviceId b) const {
    double links = 0, switches = 0, latency = 0, rate = 0;
    bool pcie = false, spine = false, core = false, router = false;
    for (const LinkShare& way : cluster_.spread(a, b)) {
      const Link& link = cluster_.link(way.link);
      const auto [from, to] = drawing_.ends[way.link];
      const VertexKind start = drawing_.vertices[from].kind, end = drawing_.vertices[to].kind;
      links += way.share;
      if (is_fabric_switch(end)) switches += way.share;
      // Each switch delays once. Its latency is on all of its cables, so the last cable is not counted.
      if (!is_fabric_switch(start) || is_fabric_switch(end))
        latency += way.share * static_cast<double>(link.latency.count());
      const double carries = link.capacity.count() / way.share;
      rate = rate == 0 ? carries : std::min(rate, carries);
      pcie = pcie || end == VertexKind::kPcieRoot || end == VertexKind::kPcieSwitch;
      spine = spine || end == VertexKind::kSpineSwitch;
      core = core || end == VertexKind::kCoreSwitch;
      router = router || end == VertexKind::kRouter;
    }
    std::string_view name = pcie ? "same node" : "same NVLink domain";
    if (switches > 0) name = core ? "through a core" : (spine ? "through a spine" : "same leaf");
    if (router) name = switches > 1.5 ? "over routers" : "same router";
    return {.name = std::string(name),
            .links = static_cast<int>(std::lround(links)),
            .switches = static_cast<int>(std::lround(switches)),
            .latency = Duration(std::llround(latency)),
            .bandwidth = Bandwidth(rate),
            .from = a,
            .to = b};
  }

  const Cluster& cluster_;
  const ClusterDrawing& drawing_;
  std::map<Key, std::pair<PairClass, double>> classes_;
};

// Unordered pairs of GPUs of different nodes.
double pairs_between_nodes(const Cluster& cluster) {
  const double gpus = cluster.gpu_count();
  double ordered = gpus * gpus;
  for (int node = 0; node < cluster.node_count(); ++node) {
    const double inside = cluster.gpus_in(node);
    ordered -= inside * inside;
  }
  return ordered / 2;
}

// Every `step`-th of these sites keeps the links that are looked at below the limit.
std::size_t step_of(const Cluster& cluster, const std::vector<Site>& sites, std::int64_t max_links) {
  const DeviceId first(0), last(static_cast<std::uint32_t>(cluster.gpu_count() - 1));
  // Links on the longest route, approximately.
  const auto links = static_cast<double>(cluster.spread(first, last).size());
  double gpus = 0;
  for (const Site& site : sites) gpus += cluster.gpus_in(site.nodes.front());
  const double looked_at = gpus * gpus * links, limit = static_cast<double>(max_links);
  if (looked_at / 2 <= limit) return 1;
  return std::min(static_cast<std::size_t>(std::ceil(looked_at / limit)), sites.size());
}

}  // namespace

PairClasses pair_classes(const Cluster& cluster, std::int64_t max_links) {
  const ClusterDrawing drawing = draw(cluster);
  const std::vector<Site> sites = sites_of(cluster, drawing, Reach::kOutside);
  const std::size_t step = step_of(cluster, sites, max_links);
  PairCount count(cluster, drawing);
  for (const Site& site : sites_of(cluster, drawing, Reach::kInside))
    count.add_nodes(site.nodes.front(), site.nodes.front(), static_cast<double>(site.nodes.size()));
  for (std::size_t i = 0; i < sites.size(); i += step)
    for (std::size_t j = step == 1 ? i : 0; j < sites.size(); ++j) {
      const auto &a = sites[i].nodes, &b = sites[j].nodes;
      const auto in_a = static_cast<double>(a.size()), in_b = static_cast<double>(b.size());
      if (i != j)
        count.add_nodes(a.front(), b.front(), in_a * in_b);
      else if (a.size() > 1)
        count.add_nodes(a[0], a[1], in_a * (in_a - 1) / (step == 1 ? 2 : 1));
    }
  if (step > 1) count.scale_between_nodes(pairs_between_nodes(cluster));
  return {.classes = count.take(), .sampled = step > 1};
}

ClusterTotals totals(const Cluster& cluster) {
  const ClusterDrawing drawing = draw(cluster);
  ClusterTotals sum{
      .nodes = cluster.server_count(), .domains = cluster.node_count(), .gpus = cluster.gpu_count()};
  for (const Vertex& vertex : drawing.vertices) {
    sum.nics += vertex.kind == VertexKind::kNic;
    sum.switches += is_fabric_switch(vertex.kind);
  }
  std::vector<std::pair<std::size_t, std::size_t>> cables;
  for (const LinkEnds& link : drawing.ends) cables.emplace_back(std::minmax(link.from, link.to));
  std::ranges::sort(cables);
  sum.cables = static_cast<std::size_t>(std::unique(cables.begin(), cables.end()) - cables.begin());
  for (int node = 0; node < cluster.node_count(); ++node)
    sum.injection += cluster.node_network(device_of(cluster.first_gpu(node)));
  return sum;
}

}  // namespace stagecraft
