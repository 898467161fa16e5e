#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "formats/machine_fragment.hpp"
#include "tools/tables/topology_view.hpp"
#include "topology/cluster_view.hpp"
#include "topology/fabric_graph.hpp"

namespace stagecraft {
namespace {

// One end of cables inside a node: "gpu 0-7".
using CableSort = std::tuple<VertexKind, VertexKind, double>;
using Cable = std::pair<std::size_t, std::size_t>;  // vertices, the one nearer the GPU first

// A node seen from inside: its cables by sort, with the indices of their ends.
struct NodeShape {
  bool shares_nvswitch = false;  // with the others of its NVLink domain
  std::map<CableSort, std::vector<std::pair<int, int>>> cables;
  friend auto operator<=>(const NodeShape&, const NodeShape&) = default;
};

// Cables between the same ends, of which some may be slower than others.
struct Bundle {
  int cables = 0;
  std::map<double, int, std::greater<>> by_rate;  // fastest first

  void add(double rate) { ++cables, ++by_rate[rate]; }
  [[nodiscard]] double rate() const {
    double sum = 0;
    for (const auto& [rate, count] : by_rate) sum += rate * count;
    return sum;
  }
  friend auto operator<=>(const Bundle&, const Bundle&) = default;
};

// Cables of a switch: towards the GPUs, away from them, and to its peers.
struct Ports {
  VertexKind kind = VertexKind::kLeafSwitch;
  Bundle down, up, across;
  friend auto operator<=>(const Ports&, const Ports&) = default;
};

struct Shapes {
  std::map<NodeShape, std::vector<std::int64_t>> nodes;  // of equal shape
  std::map<Ports, std::vector<std::int64_t>> switches;   // of equal ports
};

// The nodes that a vertex is shown with: its own, or those of its NVLink domain.
std::vector<int> nodes_at(const Cluster& cluster, const Vertex& vertex) {
  if (vertex.node >= 0) return {vertex.node};
  std::vector<int> nodes;
  for (int node = 0; !is_fabric_switch(vertex.kind) && node < cluster.server_count(); ++node)
    if (cluster.node_of_server(node) == vertex.index) nodes.push_back(node);
  return nodes;
}

Shapes shapes_of(const Cluster& cluster) {
  const FabricGraph& graph = cluster.graph();
  std::vector<NodeShape> nodes(static_cast<std::size_t>(cluster.server_count()));
  std::map<VertexId, Ports> ports;
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i) {
    const Link& link = cluster.link(EdgeId(i));
    const Vertex &from = graph.vertex(link.from), &to = graph.vertex(link.to);
    const double rate = link.capacity.count();
    if (from.kind == to.kind && is_fabric_switch(from.kind)) ports[link.from].across.add(rate);
    // Each cable is seen from its end nearer the GPU.
    if (from.kind > to.kind || (from.kind == to.kind && link.from > link.to)) continue;
    for (const int node : nodes_at(cluster, from)) {
      NodeShape& shape = nodes[static_cast<std::size_t>(node)];
      shape.cables[{from.kind, to.kind, rate}].emplace_back(from.node >= 0 ? from.index : 0,
                                                            to.node >= 0 ? to.index : 0);
      if (to.kind == VertexKind::kNvSwitch) shape.shares_nvswitch = to.node < 0;
    }
    if (from.kind == to.kind) continue;
    if (is_fabric_switch(to.kind)) ports[link.to].down.add(rate);
    if (is_fabric_switch(from.kind)) ports[link.from].up.add(rate);
  }
  Shapes shapes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (auto& [sort, ends] : nodes[i].cables) std::sort(ends.begin(), ends.end());
    shapes.nodes[nodes[i]].push_back(static_cast<std::int64_t>(i));
  }
  for (auto& [vertex, port] : ports) {
    port.kind = graph.vertex(vertex).kind;
    shapes.switches[port].push_back(graph.vertex(vertex).index);
  }
  return shapes;
}

std::string title(std::string_view text, bool color) {
  return color ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}

// "gpu 0-7", each once.
std::string ends_of(std::string_view kind, std::vector<std::int64_t> indices) {
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return fmt::format("{} {}", kind, as_ranges(indices));
}

// "gpu 0-7 ── nvswitch", "gpu 0-7 ── nic 0-7, one each".
std::string cable_line(const CableSort& sort, const std::vector<std::pair<int, int>>& ends,
                       bool shares_nvswitch) {
  const std::string_view near = kind_name(std::get<0>(sort), shares_nvswitch);
  const std::string_view far = kind_name(std::get<1>(sort), shares_nvswitch);
  std::vector<std::int64_t> first, second;
  for (const auto& [a, b] : ends) {
    first.push_back(a);
    second.push_back(b);
  }
  const std::set<std::int64_t> distinct(second.begin(), second.end());
  std::string other(far);
  if (distinct.size() > 1) other = ends_of(far, second);
  if (distinct.size() > 1 && distinct.size() == ends.size()) other += ", one each";
  if (distinct.size() > 1 && distinct.size() < ends.size()) {
    std::map<std::int64_t, std::vector<std::int64_t>> groups;
    for (std::size_t i = 0; i < first.size(); ++i) groups[second[i]].push_back(first[i]);
    std::vector<std::string> parts;
    for (const auto& [index, members] : groups)
      parts.push_back(fmt::format("{} on {}", as_ranges(members), index));
    other += fmt::format(" ({})", join(parts, ", "));
  }
  return fmt::format("{} ── {}", ends_of(near, first), other);
}

std::string node_text(const Cluster& cluster, const NodeShape& shape, const std::vector<std::int64_t>& nodes,
                      bool color) {
  const auto first = static_cast<int>(nodes.front());
  const DeviceId gpu(static_cast<std::uint32_t>(cluster.first_gpu_of_server(first)));
  const NodeSpec& spec = cluster.node_spec_of(gpu);
  std::string out =
      fmt::format("{}  {} x {}{}\n", title("node " + as_ranges(nodes), color), cluster.gpus_in_server(first),
                  spec.device, spec.name.empty() ? "" : fmt::format(" ({})", spec.name));
  TextTable table({Align::kLeft, Align::kRight});
  std::size_t left = shape.cables.size();
  for (const auto& [sort, ends] : shape.cables)
    table.row({fmt::format("{} {}", --left == 0 ? "└─" : "├─", cable_line(sort, ends, shape.shares_nvswitch)),
               human(Bandwidth(std::get<double>(sort)))});
  return out + table.str(2);
}

// "3 x 10 GB/s, 1 x 1 GB/s" of `copies` such bundles.
std::string bundle_text(const Bundle& bundle, std::int64_t copies = 1) {
  std::vector<std::pair<std::string, std::int64_t>> classes;
  for (const auto& [rate, count] : bundle.by_rate) {
    std::string each = human(Bandwidth(rate));
    if (classes.empty() || classes.back().first != each) classes.emplace_back(std::move(each), 0);
    classes.back().second += copies * count;
  }
  std::vector<std::string> parts;
  for (const auto& [each, count] : classes) parts.push_back(fmt::format("{} x {}", count, each));
  return parts.empty() ? "–" : join(parts, ", ");
}

std::string fabric_text(const Cluster& cluster, const Shapes& shapes, bool color) {
  if (shapes.switches.empty()) return {};
  const FabricSpec& fabric = cluster.spec().fabric;
  std::string out = fmt::format("{}  {}{}\n", title("fabric", color),
                                kFabricKindNames[static_cast<std::size_t>(fabric.kind)],
                                fabric.name.empty() ? "" : fmt::format(" ({})", fabric.name));
  const bool across = std::any_of(shapes.switches.begin(), shapes.switches.end(),
                                  [](const auto& level) { return level.first.across.cables > 0; });
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.row({"level", "switches", "down", across ? "across" : "up", "oversubscription"});
  for (auto level = shapes.switches.rbegin(); level != shapes.switches.rend(); ++level) {
    const Ports& port = level->first;
    table.row({std::string(kind_name(port.kind)),
               with_thousands(static_cast<std::int64_t>(level->second.size())), bundle_text(port.down),
               bundle_text(across ? port.across : port.up),
               port.up.cables == 0 ? "–" : fmt::format("{:.3g}", port.down.rate() / port.up.rate())});
  }
  return out + table.str(2);
}

std::string pairs_text(const Cluster& cluster, bool color) {
  const PairClasses pairs = pair_classes(cluster);
  if (pairs.classes.empty()) return {};
  // NVLink's is all that a message waits for, a switch's is the smaller part.
  const Duration software = cluster.spec().fabric.point_to_point_latency;
  const bool far =
      software > Duration::zero() &&
      std::ranges::any_of(pairs.classes, [](const PairClass& pair) { return pair.switches > 0; });
  std::string out = fmt::format(
      "{}  (latency of links and switches{}{})\n", title("pairs of GPUs", color),
      far ? fmt::format("; a message between nodes takes {} more, point_to_point_latency", human(software))
          : " alone",
      pairs.sampled ? "; from evenly spaced nodes" : "");
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.row({"class", "pairs", "links", "switches", "latency", "bandwidth"});
  for (const PairClass& pair : pairs.classes)
    table.row({pair.name, with_thousands(pair.pairs), fmt::format("{}", pair.links),
               fmt::format("{}", pair.switches), human(pair.latency), human(pair.bandwidth)});
  return out + table.str(2);
}

std::string axes_text(const TopologyView& view, bool color) {
  if (view.plan == nullptr) return {};
  const AxisClasses axes = axis_classes(view.cluster, view.job, *view.plan);
  if (axes.classes.empty()) return {};
  std::string out =
      title("neighbours of the plan", color) + (axes.sampled ? "  (evenly spaced ranks)\n" : "\n");
  TextTable table({Align::kLeft, Align::kRight, Align::kLeft, Align::kRight, Align::kRight});
  table.row({"axis", "ranks", "between neighbours", "share", "bandwidth"});
  for (const AxisClass& axis : axes.classes)
    table.row(
        {axis.axis, fmt::format("{}", axis.degree), axis.name, percent(axis.share), human(axis.bandwidth)});
  return out + table.str(2);
}

std::string whole_text(const Cluster& cluster, bool color) {
  const ClusterTotals sum = totals(cluster);
  const Bisection half = bisection(cluster);
  std::string out;
  if (half.first_gpus > 0)
    out += fmt::format("{}  {} from the first {} to the others, over {}\n", title("bisection", color),
                       human(half.bandwidth), counted_thousands(half.first_gpus, "GPU"),
                       counted_thousands(std::ssize(half.cut), "link"));
  const char* tier = sum.domains == sum.nodes ? "node" : "NVLink domain";
  if (sum.domains > 1)
    out += fmt::format(
        "{}  {} out of all nodes\n{}  {} without a common link from {} 0 to {} {}; a bundle counts once\n",
        title("injection", color), human(sum.injection), title("ways", color),
        disjoint_ways(cluster, 0, sum.domains - 1), tier, tier, sum.domains - 1);
  return out;
}

// Names of DOT: in quotes, which no name of ours holds.
std::string quoted(const std::string& name) {
  return '"' + name + '"';
}

std::string vertex_name(const Cluster& cluster, VertexId vertex) {
  return quoted(cluster.graph().name(vertex));
}

std::string full_dot(const Cluster& cluster) {
  const FabricGraph& graph = cluster.graph();
  std::string out;
  for (std::uint32_t i = 0; i < graph.vertex_count(); ++i)
    out += fmt::format("  {};\n", vertex_name(cluster, VertexId(i)));
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    const Link& link = graph.link(EdgeId(i));
    const bool both = graph.find(link.to, link.from).has_value();
    if (both && link.from > link.to) continue;  // one line for both directions
    out +=
        fmt::format("  {} -- {} [label={}{}];\n", vertex_name(cluster, link.from),
                    vertex_name(cluster, link.to), quoted(human(link.capacity)), both ? "" : ", dir=forward");
  }
  return out;
}

// Uplinks of a node: its cables to each switch.
using Uplinks = std::map<VertexId, Bundle>;

std::string collapsed_dot(const Cluster& cluster) {
  const FabricGraph& graph = cluster.graph();
  std::vector<Uplinks> uplinks(static_cast<std::size_t>(cluster.server_count()));
  std::string out;
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i) {
    const Link& link = cluster.link(EdgeId(i));
    const Vertex &from = graph.vertex(link.from), &to = graph.vertex(link.to);
    if (!is_fabric_switch(to.kind) || from.kind > to.kind || (from.kind == to.kind && link.from > link.to))
      continue;
    if (from.node >= 0) {
      uplinks[static_cast<std::size_t>(from.node)][link.to].add(link.capacity.count());
    } else {
      out += fmt::format("  {} -- {} [label={}];\n", vertex_name(cluster, link.from),
                         vertex_name(cluster, link.to), quoted(human(link.capacity)));
    }
  }
  std::map<std::pair<Uplinks, int>, std::vector<std::int64_t>> boxes;
  for (std::size_t i = 0; i < uplinks.size(); ++i)
    boxes[{uplinks[i], cluster.gpus_in_server(static_cast<int>(i))}].push_back(static_cast<std::int64_t>(i));
  for (const auto& [box, nodes] : boxes) {
    const auto& [switches, gpus] = box;
    const std::string name = quoted("node " + as_ranges(nodes));
    out += fmt::format("  {} [label=\"node {}\\n{} each\"];\n", name, as_ranges(nodes), counted(gpus, "GPU"));
    for (const auto& [vertex, cables] : switches)
      out += fmt::format("  {} -- {} [label=\"{}\"];\n", name, vertex_name(cluster, vertex),
                         bundle_text(cables, static_cast<std::int64_t>(nodes.size())));
  }
  return out;
}

}  // namespace

std::string render_topology_text(const TopologyView& view, bool color) {
  const Cluster& cluster = view.cluster;
  const ClusterTotals sum = totals(cluster);
  const Shapes shapes = shapes_of(cluster);
  std::string nodes = counted(sum.nodes, "node");
  if (sum.domains != sum.nodes) nodes += " in " + counted(sum.domains, "NVLink domain");
  std::string out = fmt::format("{}: {}, GPUs: {}, switches: {}, cables: {}\n", view.scenario.source, nodes,
                                with_thousands(sum.gpus), with_thousands(sum.switches),
                                with_thousands(static_cast<std::int64_t>(sum.cables)));
  for (const auto& [shape, alike] : shapes.nodes) out += node_text(cluster, shape, alike, color);
  return out + fabric_text(cluster, shapes, color) + whole_text(cluster, color) + pairs_text(cluster, color) +
         axes_text(view, color);
}

std::string render_topology_dot(const Cluster& cluster, bool full) {
  return "graph cluster {\n  node [shape=box];\n" + (full ? full_dot(cluster) : collapsed_dot(cluster)) +
         "}\n";
}

}  // namespace stagecraft
