#include "topology/fabric.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "base/ceil_div.hpp"
#include "base/check.hpp"

namespace stagecraft {
namespace {

int block_size(const FabricSpec& spec, int servers) {
  switch (spec.kind) {
    case FabricKind::kSingleSwitch:
      return servers;
    case FabricKind::kFatTree:
    case FabricKind::kRailOptimized:
      return spec.nodes_per_leaf;
    case FabricKind::kDragonfly:
      return spec.nodes_per_router;
    case FabricKind::kTorus:
      return 1;
  }
  SC_CHECK(false, "every kind of fabric is listed");
  return 1;
}

int rails(const FabricSpec& spec, int nics) {
  return spec.kind == FabricKind::kRailOptimized ? nics : spec.planes;
}

int pods(const FabricSpec& spec, int servers) {
  return spec.nodes_per_pod > 0 ? ceil_div(servers, spec.nodes_per_pod) : 1;
}

int cores_per_spine(const FabricSpec& spec) {
  return std::max(1, spec.cores / spec.spines);
}

// Two of n.
double pairs(double n) {
  return n * (n - 1) / 2;
}

}  // namespace

double cables_of(const FabricSpec& spec, int servers, int nics) {
  const double planes = spec.planes;
  if (spec.kind == FabricKind::kDragonfly)
    return planes * (spec.groups * pairs(spec.routers_per_group) + pairs(spec.groups) * spec.global_links);
  if (spec.kind == FabricKind::kTorus) {
    double rings = 0;  // cables of a router, those to the next one of each dimension
    for (const int size : spec.dims) rings += size > 2 ? 1 : (size - 1) / 2.0;
    return planes * servers * rings;
  }
  const double leaves = static_cast<double>(ceil_div(servers, block_size(spec, servers))) * rails(spec, nics);
  if (leaves <= planes) return 0;
  const double spines = planes * pods(spec, servers) * spec.spines;
  return leaves * spec.spines + (pods(spec, servers) > 1 ? spines * cores_per_spine(spec) : 0);
}

Fabric::Fabric(const FabricSpec& spec, int servers, int nics)
    : spec_(spec),
      servers_(servers),
      block_size_(block_size(spec, servers)),
      rails_(rails(spec, nics)),
      pods_(pods(spec, servers)) {
  SC_CHECK(block_size_ > 0, "a leaf switch has nodes below it");
  SC_CHECK(spec.planes > 0 && rails_ % spec.planes == 0, "every plane has the same rails");
  blocks_ = ceil_div(servers, block_size_);
  if (spec.kind == FabricKind::kDragonfly) {
    SC_CHECK(blocks_ <= spec.groups * spec.routers_per_group, "the nodes fit a dragonfly");
    blocks_ = spec.groups * spec.routers_per_group;
  }
  if (spec.kind == FabricKind::kTorus)
    SC_CHECK(std::accumulate(spec.dims.begin(), spec.dims.end(), 1, std::multiplies<>()) == servers,
             "a torus has its nodes");
  SC_CHECK(spec.nodes_per_pod % block_size_ == 0, "a pod has whole leaves");
}

bool Fabric::is_tree() const {
  return spec_.kind != FabricKind::kDragonfly && spec_.kind != FabricKind::kTorus;
}

Entry Fabric::entry_of(int server, int nic) const {
  return server / block_size_ * rails_ + nic % rails_;
}

void Fabric::add_entries(FabricGraph& graph) {
  const VertexKind kind = is_tree() ? VertexKind::kLeafSwitch : VertexKind::kRouter;
  for (int i = 0; i < blocks_ * rails_; ++i)
    entries_.push_back(graph.add_vertex({.kind = kind, .index = i, .one = false}));
}

void Fabric::add_cables(FabricGraph& graph, const std::vector<Bandwidth>& down) {
  if (spec_.kind == FabricKind::kDragonfly) return add_dragonfly(graph);
  if (spec_.kind == FabricKind::kTorus) return add_torus(graph);
  if (blocks_ * rails_ > spec_.planes) add_tree(graph, down);
}

int Fabric::pod_of(int block) const {
  return spec_.nodes_per_pod > 0 ? block * block_size_ / spec_.nodes_per_pod : 0;
}

VertexId Fabric::spine(int pod, int plane, int i) const {
  return spines_.at(static_cast<std::size_t>((pod * spec_.planes + plane) * spec_.spines + i));
}

VertexId Fabric::core(int plane, int i) const {
  return cores_.at(static_cast<std::size_t>(plane * spec_.cores + i));
}

// Ports of the leaves of a block over those that its servers take: a switch has them all, however few servers there
// are.
double Fabric::ports_per_server(int block) const {
  return static_cast<double>(block_size_) / std::min(block_size_, servers_ - block * block_size_);
}

void Fabric::add_tree(FabricGraph& graph, const std::vector<Bandwidth>& down) {
  for (int i = 0; i < pods_ * spec_.planes * spec_.spines; ++i)
    spines_.push_back(graph.add_vertex({.kind = VertexKind::kSpineSwitch, .index = i, .one = false}));
  std::vector<Bandwidth> up(static_cast<std::size_t>(pods_ * spec_.planes));
  for (Entry leaf = 0; leaf < blocks_ * rails_; ++leaf) {
    // Where the servers of a block have fewer NICs than there are rails, some leaves have no servers.
    if (static_cast<std::size_t>(leaf) >= down.size()) break;
    if (down[static_cast<std::size_t>(leaf)] == Bandwidth(0)) continue;
    const int block = leaf / rails_, plane = plane_of(leaf % rails_), pod = pod_of(block);
    const Bandwidth uplinks =
        down[static_cast<std::size_t>(leaf)] * (ports_per_server(block) / spec_.oversubscription);
    for (int i = 0; i < spec_.spines; ++i)
      graph.add_cable(vertex_of(leaf), spine(pod, plane, i), uplinks / spec_.spines, spec_.switch_latency);
    up[static_cast<std::size_t>(pod * spec_.planes + plane)] += uplinks;
  }
  if (pods_ > 1) add_cores(graph, up);
}

void Fabric::add_cores(FabricGraph& graph, const std::vector<Bandwidth>& up) {
  SC_CHECK(spec_.cores == 1 || spec_.cores % spec_.spines == 0, "every spine switch has as many cores");
  for (int i = 0; i < spec_.planes * spec_.cores; ++i)
    cores_.push_back(graph.add_vertex({.kind = VertexKind::kCoreSwitch, .index = i, .one = false}));
  const int leaves_per_pod = spec_.nodes_per_pod / block_size_;
  for (int pod = 0; pod < pods_; ++pod) {
    const int leaves = std::min(leaves_per_pod, blocks_ - pod * leaves_per_pod);
    for (int plane = 0; plane < spec_.planes; ++plane) {
      const Bandwidth all = up[static_cast<std::size_t>(pod * spec_.planes + plane)] *
                            (static_cast<double>(leaves_per_pod) / leaves / spec_.core_oversubscription);
      for (int i = 0; i < spec_.spines; ++i)
        for (int k = 0; k < cores_per_spine(spec_); ++k) {
          const int index = spec_.cores == 1 ? 0 : i * cores_per_spine(spec_) + k;
          graph.add_cable(spine(pod, plane, i), core(plane, index),
                          all / (spec_.spines * cores_per_spine(spec_)), spec_.switch_latency);
        }
    }
  }
}

int Fabric::gateway(int group, int other, int i) const {
  const int away = (other - group - 1 + spec_.groups) % spec_.groups;  // 0 .. groups-2
  return group * spec_.routers_per_group + (away * spec_.global_links + i) % spec_.routers_per_group;
}

void Fabric::add_dragonfly(FabricGraph& graph) {
  const int routers = spec_.routers_per_group;
  const Bandwidth global =
      spec_.global_bandwidth > Bandwidth(0) ? spec_.global_bandwidth : spec_.link_bandwidth;
  SC_CHECK(spec_.global_links <= routers, "cables between two groups end at different routers");
  const auto at = [&](int router, int plane) { return vertex_of(router * rails_ + plane); };
  for (int plane = 0; plane < spec_.planes; ++plane) {
    for (int group = 0; group < spec_.groups; ++group)
      for (int a = 0; a < routers; ++a)
        for (int b = a + 1; b < routers; ++b)
          graph.add_cable(at(group * routers + a, plane), at(group * routers + b, plane),
                          spec_.link_bandwidth, spec_.switch_latency);
    for (int g = 0; g < spec_.groups; ++g)
      for (int h = g + 1; h < spec_.groups; ++h)
        for (int i = 0; i < spec_.global_links; ++i)
          graph.add_cable(at(gateway(g, h, i), plane), at(gateway(h, g, i), plane), global,
                          spec_.switch_latency);
  }
}

void Fabric::add_torus(FabricGraph& graph) {
  for (int plane = 0; plane < spec_.planes; ++plane)
    for (int server = 0; server < servers_; ++server) {
      int stride = 1;
      for (const int size : spec_.dims) {
        const int at = server / stride % size;
        const int next = server + ((at + 1) % size - at) * stride;
        // A ring of two has one cable, not two.
        if (size > 2 || (size == 2 && at == 0))
          graph.add_cable(vertex_of(server * rails_ + plane), vertex_of(next * rails_ + plane),
                          spec_.link_bandwidth, spec_.switch_latency);
        stride *= size;
      }
    }
}

void Fabric::walk(Ways& ways, Entry from, Entry to) const {
  if (from == to) return;
  if (spec_.kind == FabricKind::kDragonfly) return walk_dragonfly(ways, from, to);
  if (spec_.kind == FabricKind::kTorus) return walk_torus(ways, from, to);
  walk_tree(ways, from, to);
}

void Fabric::walk_tree(Ways& ways, Entry from, Entry to) const {
  const int up = pod_of(from / rails_), down = pod_of(to / rails_), plane = plane_of(from % rails_);
  SC_CHECK(plane == plane_of(to % rails_), "no way leads from plane to plane");
  const VertexId start = vertex_of(from), end = vertex_of(to);
  const bool fluid_core = spec_.cores == 1 && spec_.spines > 1;
  const auto spines = ways.choices(spec_.spines, 0);
  for (int i = spines.first; i < spines.last; ++i) {
    ways.hop(start, spine(up, plane, i), spines.share);
    if (up != down && fluid_core) ways.hop(spine(up, plane, i), core(plane, 0), spines.share);
    if (up != down && !fluid_core) {
      const auto cores = ways.choices(cores_per_spine(spec_), 1);
      for (int k = cores.first; k < cores.last; ++k) {
        const VertexId top = core(plane, i * cores_per_spine(spec_) + k);
        ways.walk({spine(up, plane, i), top, spine(down, plane, i)}, spines.share * cores.share);
      }
    }
    if (up == down || !fluid_core) ways.hop(spine(down, plane, i), end, spines.share);
  }
  if (up == down || !fluid_core) return;
  const auto below = ways.choices(spec_.spines, 2);
  for (int i = below.first; i < below.last; ++i)
    ways.walk({core(plane, 0), spine(down, plane, i), end}, below.share);
}

void Fabric::walk_dragonfly(Ways& ways, Entry from, Entry to) const {
  const int plane = from % rails_, a = from / rails_, b = to / rails_;
  const int g = a / spec_.routers_per_group, h = b / spec_.routers_per_group;
  const auto at = [&](int router) { return vertex_of(router * rails_ + plane); };
  if (g == h) return ways.hop(at(a), at(b));
  std::vector<int> nearest;
  int least = 3;  // hops
  for (int i = 0; i < spec_.global_links; ++i) {
    const int hops = 1 + (gateway(g, h, i) != a ? 1 : 0) + (gateway(h, g, i) != b ? 1 : 0);
    if (hops < least) nearest.clear();
    least = std::min(least, hops);
    if (hops == least) nearest.push_back(i);
  }
  const auto cables = ways.choices(static_cast<int>(nearest.size()), 0);
  for (int k = cables.first; k < cables.last; ++k) {
    const int i = nearest[static_cast<std::size_t>(k)];
    const int out = gateway(g, h, i), in = gateway(h, g, i);
    if (out != a) ways.hop(at(a), at(out), cables.share);
    ways.hop(at(out), at(in), cables.share);
    if (in != b) ways.hop(at(in), at(b), cables.share);
  }
}

void Fabric::walk_torus(Ways& ways, Entry from, Entry to) const {
  const int plane = from % rails_;
  int at = from / rails_, stride = 1, level = 0;
  const int goal = to / rails_;
  for (const int size : spec_.dims) {
    const int here = at / stride % size, there = goal / stride % size;
    const int up = (there - here + size) % size, down = (size - up) % size;
    const bool both = up == down && size > 2 && up > 0;
    const auto directions = both ? ways.choices(2, level) : Ways::Choices{};
    for (int d = directions.first; d < directions.last && up > 0; ++d) {
      const bool upwards = both ? d == 0 : up <= down;
      int place = here;
      for (int hops = upwards ? up : down; hops > 0; --hops) {
        const int next = (place + (upwards ? 1 : size - 1)) % size;
        ways.hop(vertex_of((at + (place - here) * stride) * rails_ + plane),
                 vertex_of((at + (next - here) * stride) * rails_ + plane), directions.share);
        place = next;
      }
    }
    at += (there - here) * stride;
    stride *= size;
    ++level;
  }
}

}  // namespace stagecraft
