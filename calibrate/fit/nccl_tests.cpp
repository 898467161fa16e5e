#include "calibrate/fit/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "calibrate/fit/least_squares.hpp"
#include "calibrate/fit/write_profile.hpp"
#include "calibrate/samples/statistics.hpp"

namespace stagecraft {

namespace {

// Median over repeats, out of place.
std::vector<CurvePoint> points_of(const NcclRun& run) {
  std::map<double, std::vector<double>> times;
  for (const NcclRow& row : run.rows) times[row.bytes].push_back(row.seconds);
  std::vector<CurvePoint> points;
  for (const auto& [bytes, of_size] : times) points.push_back({.size = bytes, .seconds = median(of_size)});
  return points;
}

bool ever_falls(const std::vector<CurvePoint>& points) {
  return std::ranges::adjacent_find(points, [](const CurvePoint& a, const CurvePoint& b) {
           return b.seconds < a.seconds;
         }) != points.end();
}

// Bytes on the bus over time, both beyond the shortest time: what the bus alone reaches, without launches.
double bus_beyond_launch(const CollectiveGroup& group, const std::vector<CurvePoint>& points) {
  const auto shortest = std::ranges::min_element(points, {}, &CurvePoint::seconds);
  return (points.back().size - shortest->size) * bus_factor(group.kind, group.ranks) /
         (points.back().seconds - shortest->seconds);
}

// Guesses the path from the plateau of the bus bandwidth. The bounds are those of common adapters: 100 Gb/s
// Ethernet moves 12.5 GB/s a node, and every node with NVLink exceeds that on its faster network.
std::string verdict(const NcclRun& run, double bus_bytes_per_s) {
  if (run.nodes > 1 && bus_bytes_per_s < 12.5e9)
    return "this is what TCP over one adapter reaches: check that NCCL found the fast network";
  if (run.nodes == 1 && bus_bytes_per_s < 50e9) return "this is what PCIe reaches, not NVLink";
  return run.nodes > 1 ? "over the network between nodes" : "inside one node";
}

CollectiveGroup group_of(const NcclRun& run) {
  SC_CHECK(run.kind.has_value(), "a fit of a collective without a name");
  return {.kind = *run.kind, .ranks = run.ranks, .nodes = run.nodes, .algorithm = "any"};
}

// "# all-reduce, 8 ranks, 1 node: 1 KiB to 1 GiB", and of runs with an empty message its time.
std::string heading(const NcclRun& run, const std::vector<CurvePoint>& points) {
  std::string out = fmt::format("# {}: {} to {}\n", group_name(group_of(run)),
                                human(to_bytes(points.front().size)), human(to_bytes(points.back().size)));
  if (run.launch_seconds)
    out += fmt::format("# an empty message takes {}\n", human(from_seconds(*run.launch_seconds)));
  return out;
}

double bus_at(const CollectiveGroup& group, const CurvePoint& point) {
  return point.size * bus_factor(group.kind, group.ranks) / point.seconds;
}

constexpr std::string_view kFabricCounts =
    "no price uses a curve over several nodes: between nodes the fabric counts, by nic_bandwidth, "
    "collective_efficiency and step_latency of cluster.fabric";

// The share of a node's NICs that a plateau of the bus is, as topology/collective.hpp has its inverse: a ring
// takes each byte of the bus out of a node once; in an all-to-all all ranks of a node send at once; a
// send-receive leaves a node by one NIC.
std::string share_of_nics(const CollectiveGroup& group, double bus) {
  const double of_node = static_cast<double>(group.ranks) / group.nodes, ranks = group.ranks;
  if (group.kind == CollectiveKind::kSendReceive)
    return fmt::format("cluster.fabric.point_to_point_efficiency = {} / nic_bandwidth",
                       human(Bandwidth(bus)));
  const bool all_to_all = group.kind == CollectiveKind::kAllToAll;
  const double out = all_to_all ? of_node * (ranks - of_node) / (ranks - 1) : 1;
  return fmt::format("cluster.fabric.{} = {} / (nics x nic_bandwidth of a node)",
                     of_node == 1 ? "rail_efficiency" : "collective_efficiency", human(Bandwidth(out * bus)));
}

// The hint beside kFabricCounts. `bus`: 0 where none shows.
std::string use_of_curve(const CollectiveGroup& group, double bus) {
  return bus > 0
             ? "its plateau says " + share_of_nics(group, bus)
             : "measure up to 1 GiB (-e 1G): the plateau over the NICs' bandwidth is collective_efficiency";
}

std::string origin_of(const NcclRun& run, const std::string& name, std::size_t sizes) {
  return fmt::format("nccl-tests {} on {}, NCCL {}, {} out of place", name,
                     run.device.empty() ? "an unnamed device" : run.device,
                     run.nccl_version.empty() ? "of unknown version" : run.nccl_version,
                     counted(static_cast<std::int64_t>(sizes), "size"));
}

// The bandwidth of the bus that large messages reach; 0 where none shows.
double plateau(const NcclRun& run, const std::vector<CurvePoint>& points) {
  if (!shows_bus(points)) return 0;
  const CollectiveGroup group = group_of(run);
  return missing_for_a_fit(run).empty() ? fit_collective(group, points).fit.bus_bandwidth.count()
                                        : bus_at(group, points.back());
}

// The comment of a fragment over several nodes; empty inside a node.
std::string note_of_nodes(const NcclRun& run) {
  const std::optional<Diagnostic> warning = curve_without_effect(run);
  return warning ? fmt::format("# {}\n# {}\n", warning->message, warning->hint) : "";
}

// Of times that no fit is made of.
std::string times_alone(const NcclRun& run, const std::string& name, const std::vector<CurvePoint>& points) {
  const CollectiveGroup group = group_of(run);
  std::string out = note_of_nodes(run);
  for (const Diagnostic& missing : missing_for_a_fit(run))
    out += fmt::format("# {}: {}\n", missing.message, missing.hint);
  const bool bus = shows_bus(points);
  if (bus)
    out += fmt::format("# the bus reaches {} at the largest size: {}\n",
                       human(Bandwidth(bus_at(group, points.back()))),
                       verdict(run, bus_beyond_launch(group, points)));
  for (const CurvePoint& point : points)
    out += fmt::format("#   {} in {}\n", human(to_bytes(point.size)), human(from_seconds(point.seconds)));
  const CollectiveFit table{
      .kind = group.kind,
      .ranks = group.ranks,
      .provenance = Provenance::kInterpolated,
      .source = origin_of(run, name, points.size()),
      .points = group.nodes == 1 && bus ? rising_points(points) : std::vector<CollectivePoint>{}};
  return out + collective_points_section({table});
}

}  // namespace

std::optional<CollectiveKind> nccl_collective(std::string_view name) {
  std::string word(name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1));
  if (word.ends_with("_perf")) word.resize(word.size() - 5);
  std::ranges::replace(word, '_', '-');
  if (word == "alltoall") word = "all-to-all";
  if (word == "sendrecv" || word == "send-recv") word = "send-receive";
  const auto found = std::ranges::find(kCollectiveNames, word);
  if (found == std::end(kCollectiveNames)) return std::nullopt;
  return static_cast<CollectiveKind>(found - std::begin(kCollectiveNames));
}

std::vector<Diagnostic> missing_for_a_fit(const NcclRun& run) {
  const std::vector<CurvePoint> points = points_of(run);
  Diagnostics missing;
  if (points.size() < kMinCollectivePoints)
    missing.warning({.code = "too-few-sizes",
                     .message = fmt::format("{}, and {} are needed to fit latency, bandwidth and root",
                                            counted(std::ssize(points), "size"), kMinCollectivePoints),
                     .hint = "measure from 1 KiB to 1 GiB (-b 1K -e 1G -f 2)"});
  if (points.size() > 1 && !shows_bus(points))
    missing.warning({.code = "no-bandwidth",
                     .message =
                         "no size takes much longer than the smallest: launches are what was timed, and "
                         "no bandwidth shows",
                     .hint = "measure up to 1 GiB (-e 1G)"});
  return missing.items();
}

std::optional<Diagnostic> curve_without_effect(const NcclRun& run) {
  if (run.nodes == 1) return std::nullopt;
  return Diagnostic{.severity = Severity::kWarning,
                    .code = "no-effect",
                    .message = std::string(kFabricCounts),
                    .hint = use_of_curve(group_of(run), plateau(run, points_of(run)))};
}

std::string to_fragment(const NcclRun& run, const std::string& name) {
  const std::vector<CurvePoint> points = points_of(run);
  std::string out = heading(run, points);
  if (!missing_for_a_fit(run).empty()) return out + times_alone(run, name, points);
  out += note_of_nodes(run);
  const CollectiveGroup group = group_of(run);
  FittedCollective fitted = fit_collective(group, points);
  CollectiveFit& fit = fitted.fit;
  fit.provenance = Provenance::kInterpolated;
  fit.source =
      fmt::format("{}; each left out: {}", origin_of(run, name, points.size()), fitted.left_out.summary());
  const CurvePoint& largest = points.back();
  const double miss = formula_seconds(fit, largest.size) / largest.seconds - 1;
  out +=
      fmt::format("# bus_bandwidth {}, {} at the largest size: {}\n", human(fit.bus_bandwidth),
                  human(Bandwidth(bus_at(group, largest))), verdict(run, bus_beyond_launch(group, points)));
  out += fmt::format("# latency {}: where small messages end\n", human(fit.latency));
  out +=
      fmt::format("# sqrt_seconds {:.3g}: what a straight line misses at middle sizes\n", fit.sqrt_seconds);
  if (ever_falls(points))
    out += "# a larger message was faster than a smaller one somewhere; the fit is smooth\n";
  const double typical = fitted.left_out.median();
  if (std::abs(miss) > kOutlier || typical > kOutlier) {
    out += fmt::format("# {}: these times do not follow the formula; measure again with more iterations\n",
                       std::abs(miss) > kOutlier
                           ? fmt::format("the largest size is missed by {:+.0f} %", 100 * miss)
                           : fmt::format("half the sizes are missed by over {:.0f} %", 100 * typical));
  }
  return out + "collectives:\n" + collective_table({fit}) + collective_points_section({fit});
}

}  // namespace stagecraft
