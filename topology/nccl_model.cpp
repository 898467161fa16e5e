#include "topology/nccl_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"

namespace stagecraft {
namespace {

// Per protocol: LL, LL128, Simple. Times in us and rates in GB/s, as in NCCL's source.
using PerProtocol = std::array<double, 3>;

constexpr PerProtocol kTreeBase{6.8, 14.0, 8.4}, kRingBase{6.6, 14.0, 8.4};
constexpr PerProtocol kTreeNvlink{0.6, 1.25, 4.0}, kRingNvlink{0.6, 1.9, 3.4};
constexpr PerProtocol kTreeNetwork{5.0, 8.5, 14.0}, kRingNetwork{2.7, 4.0, 14.0};
constexpr PerProtocol kProxy{1, 1, 3};  // host floor of each step in a node where others leave it; Intel
constexpr double kNvlsTreeNetwork = 20.9, kPatBase = 8, kPatNetwork = 14;
constexpr double kFlushOfSimple =
    1.4;  // ring, Simple, all-reduce over nodes, from 64 B per channel and rank on

// Values for one node, two nodes, and more.
using PerNodes = std::array<double, 3>;
struct Generation {
  double channels, bus_per_channel;  // channels of rings and trees in a node
  double nvls_channels, nvls_per_channel, nvls_efficiency;
  PerNodes ll_max, ring_ll128, tree_ll128, tree, nvls_tree;
};
constexpr Generation kGenerations[] = {
    {12, 10, 0, 0, 0, {39, 39, 20.4}, {20, 20, 20}, {20, 20, 20}, {26.5, 18.5, 10}, {26.5, 18.5, 10}},
    {12, 20, 0, 0, 0, {87.7, 22.5, 19}, {20, 20, 20}, {20, 20, 20}, {24, 23.6, 17.8}, {24, 23.6, 17.8}},
    {12,
     30,
     8,
     40,
     0.85,
     {141, 45, 35},
     {36.7, 36.7, 36.7},
     {36.7, 36.7, 29},
     {38.7, 41.4, 36},
     {0, 57.7, 45.5}},
    {12,
     60,
     8,
     80,
     0.74,
     {282, 90, 70},
     {73.4, 34.6, 73.4},
     {55.6, 31.67, 20},
     {70, 42.8, 24},
     {0, 96, 43.8}},
};

// The correction of a tree's rate by floor(log2(S / 64 B)); the last holds beyond 256 MB.
constexpr std::array<std::array<double, 23>, 3> kTreeCorrection{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

// GB/s of bus bandwidth of a channel inside a node, all-reduce.
double nvls_channel_rate(const Generation& card) {
  return card.nvls_per_channel * card.nvls_efficiency * (card.nvls_channels - 1) / card.nvls_channels * 2;
}

struct Model {
  const Generation& card;
  std::size_t column;  // index into PerNodes
  double n, nodes, per_node, bytes;
  double bus;  // GB/s of all channels
  double network;
  [[nodiscard]] double depth() const { return std::log2(nodes); }
};

Model model_of(const NcclSystem& system, Bytes size) {
  const Generation& card = kGenerations[static_cast<std::size_t>(system.generation)];
  const double nodes = system.nodes;
  const double in_node = card.channels * card.bus_per_channel;
  const double network = 0.96 * system.network.count() / 1e9;
  return {.card = card,
          .column = static_cast<std::size_t>(std::min(system.nodes, 3) - 1),
          .n = static_cast<double>(system.ranks),
          .nodes = nodes,
          .per_node = system.ranks / nodes,
          .bytes = static_cast<double>(size.count()),
          .bus = system.nodes == 1 ? in_node : std::min(in_node, network),
          .network = network};
}

NcclEstimate estimate(std::string_view algorithm, std::size_t protocol, double microseconds) {
  return {algorithm, static_cast<NcclProtocol>(protocol), from_seconds(microseconds * 1e-6)};
}

// `steps` of the ring, each of S/n.
void add_ring(std::vector<NcclEstimate>& all, const Model& m, CollectiveKind kind) {
  const bool all_reduce = kind == CollectiveKind::kAllReduce;
  const double steps = (all_reduce ? 2 : 1) * (m.n - 1), over_network = (all_reduce ? 2 : 1) * (m.nodes - 1);
  const PerProtocol rate{std::min(m.card.ll_max[m.column], m.bus / 2),
                         std::min(kNcclTreeShare * m.bus, m.card.channels * m.card.ring_ll128[m.column]),
                         m.bus};
  for (std::size_t p = 0; p < 3; ++p) {
    const double in_node = m.nodes > 1 ? std::max(kRingNvlink[p], kProxy[p]) : kRingNvlink[p];
    double latency = kRingBase[p] + (steps - over_network) * in_node + over_network * kRingNetwork[p];
    const bool flushes = p == 2 && all_reduce && m.nodes > 1 && m.bytes / (m.card.channels * m.n) >= 64;
    if (flushes) latency *= kFlushOfSimple;
    all.push_back(estimate("ring", p, latency + m.bytes * steps / m.n / (rate[p] * 1e3)));
  }
}

void add_tree(std::vector<NcclEstimate>& all, const Model& m) {
  const double ll128 = m.nodes > 1 ? 120.0 / 128 : 7.0 / 9;
  const double simple = std::min(kNcclTreeShare * m.bus, m.card.channels * m.card.tree[m.column]);
  const PerProtocol rate{std::min(simple / 3.8, m.card.ll_max[m.column]),
                         std::min(simple * ll128, m.card.channels * m.card.tree_ll128[m.column]), simple};
  const double doublings = std::clamp(std::floor(std::log2(m.bytes / 64)), 0.0, 22.0);
  for (std::size_t p = 0; p < 3; ++p) {
    const double latency =
        kTreeBase[p] + 2 * ((m.per_node - 1) * kTreeNvlink[p] + m.depth() * kTreeNetwork[p]);
    const double bus = rate[p] * kTreeCorrection[p][static_cast<std::size_t>(doublings)];
    all.push_back(estimate("tree", p, latency + m.bytes / (bus / 2 * 1e3)));
  }
}

void add_nvls(std::vector<NcclEstimate>& all, const Model& m) {
  if (m.card.nvls_efficiency == 0 || m.per_node <= 2) return;
  const double channels = m.card.nvls_channels;
  double rate = nvls_channel_rate(m.card);
  double latency = to_seconds(kNcclNvlsLatency) * 1e6;
  if (m.nodes > 1) {
    const double nic = m.network / channels * (m.nodes > 2 ? 1 : 2);
    rate = std::min({rate, nic, m.card.nvls_tree[m.column]});
    latency += 2 * m.depth() * kNvlsTreeNetwork;
  }
  const double seconds_per_byte = 2 * (m.n - 1) / m.n / (channels * rate * 1e3);
  all.push_back(estimate(m.nodes > 1 ? "nvls-tree" : "nvls", 2, latency + m.bytes * seconds_per_byte));
}

void add_pat(std::vector<NcclEstimate>& all, const Model& m) {
  if (m.nodes == 1 || m.per_node > 1) return;
  const double latency = kPatBase + m.depth() * kPatNetwork / 3.5 + 2.8 * m.n;
  all.push_back(estimate("pat", 2, latency + m.bytes / (kNcclPatShare * m.bus / 2 * 1e3)));
}

}  // namespace

std::optional<NcclGeneration> nccl_generation(Bandwidth nvlink) {
  using namespace literals;
  if (nvlink >= 800_GBps) return NcclGeneration::kBlackwell;
  if (nvlink >= 400_GBps) return NcclGeneration::kHopper;
  if (nvlink >= 200_GBps) return NcclGeneration::kAmpere;
  if (nvlink > Bandwidth(0)) return NcclGeneration::kVolta;
  return std::nullopt;
}

std::optional<NcclGeneration> nccl_generation(const HardwareProfile& profile, Bandwidth nvlink) {
  if (nvlink == Bandwidth(0)) return std::nullopt;
  const Bandwidth own = profile.device.nvlink;
  const auto by_links = nccl_generation(own > Bandwidth(0) ? own : nvlink);
  const bool adds_in_switch = std::ranges::any_of(profile.collectives, [](const CollectiveFit& fit) {
    return fit.algorithm == "nvls" || fit.algorithm == "nvls-tree";
  });
  if (!profile.supports(Precision::kFp8) && !adds_in_switch) return by_links;
  return std::max(by_links, std::optional(NcclGeneration::kHopper));
}

Bandwidth nccl_usual_nvlink(NcclGeneration generation) {
  constexpr std::array kGigabytes = {150.0, 300.0, 450.0, 900.0};
  return Bandwidth(kGigabytes.at(static_cast<std::size_t>(generation)) * 1e9);
}

int nccl_network_channels(int nics, Bandwidth nic) {
  const int found = nic >= Bandwidth(25e9) ? 2 * nics : nics;
  return std::min(2 * found, kNcclNetworkChannels);
}

Bandwidth nccl_nvls_bandwidth(NcclGeneration generation) {
  const Generation& card = kGenerations[static_cast<std::size_t>(generation)];
  if (card.nvls_efficiency == 0) return {};
  return Bandwidth(card.nvls_channels * nvls_channel_rate(card) * 1e9);
}

std::vector<NcclEstimate> nccl_estimates(const NcclSystem& system, CollectiveKind kind, Bytes size) {
  SC_CHECK(system.ranks >= 2 && system.nodes >= 1 && system.ranks % system.nodes == 0 && size >= Bytes(1),
           "a group has as many ranks on each node and something to send");
  const Model m = model_of(system, size);
  SC_CHECK(m.bus > 0, "a group over nodes has a network");
  std::vector<NcclEstimate> all;
  const bool all_reduce = kind == CollectiveKind::kAllReduce;
  const bool gathers = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
  if (all_reduce || gathers) add_ring(all, m, kind);
  if (all_reduce) add_tree(all, m);
  if (all_reduce) add_nvls(all, m);
  if (gathers) add_pat(all, m);
  return all;
}

std::optional<NcclEstimate> nccl_choice(const NcclSystem& system, CollectiveKind kind, Bytes size) {
  const std::vector<NcclEstimate> all = nccl_estimates(system, kind, size);
  const auto least = std::ranges::min_element(all, {}, &NcclEstimate::time);
  if (least == all.end()) return std::nullopt;
  return *least;
}

}  // namespace stagecraft
