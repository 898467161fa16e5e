#include "calibrate/fit/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/check.hpp"
#include "base/launcher_prefix.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "base/yaml.hpp"
#include "calibrate/fit/least_squares.hpp"
#include "calibrate/fit/write_profile.hpp"
#include "calibrate/samples/statistics.hpp"

namespace stagecraft {

namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Positions in a row: of the time out of place, and of the wrong results of both halves. Before 2022 there
// was no column `root`, and of some collectives none of the operation.
struct Columns {
  std::size_t time = 0;
  std::size_t fewest = 0;  // that a whole row has
  std::vector<std::size_t> wrong{};
};

class TextReader {
 public:
  TextReader(const std::string& name, Diagnostics& diagnostics) : name_(name), diagnostics_(diagnostics) {}

  void read(std::string_view text) {
    while (!text.empty() && !second_run_) {
      const std::size_t end = text.find('\n');
      ++line_;
      read_line(trimmed(without_launcher_prefix(text.substr(0, end)), "\r"));
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
  }

  NcclRun finish() && {
    if (second_run_) return std::move(run_);
    if (const auto mistake = ranks_.close(run_)) refuse(*mistake);
    if (run_.rows.empty()) refuse("no row of a table was found");
    if (!ended_) {
      diagnostics_.warning({.code = "run-without-end",
                            .where = {name_, line_, 0},
                            .message = "the run has no end: its rows are used as far as they go"});
    }
    return std::move(run_);
  }

 private:
  void read_line(std::string_view line) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) return;
    if (words[0] == "#") {
      read_heading(line, words);
    } else if (words.size() >= 3 && words[0] == "NCCL" && words[1] == "version") {
      run_.nccl_version = words[2];
    } else {
      read_row(words);
    }
  }

  void read_heading(std::string_view line, const std::vector<std::string>& words) {
    constexpr std::string_view kStarting = "Collective test starting: ", kBounds = "Out of bounds values";
    if (const std::size_t at = line.find(kStarting); at != std::string_view::npos)
      read_name(words_of(line.substr(at + kStarting.size())));
    if (line.find(kBounds) != std::string_view::npos && words.back() != "OK")
      refuse(fmt::format("{}: such times say nothing", in_quotes(line.substr(line.find(kBounds)))));
    if (line.find("Avg bus bandwidth") != std::string_view::npos) ended_ = true;
    if (words.size() > 2 && words[1] == "nccl-tests") read_version(words);
    if (words.size() > 9 && words[1] == "Rank" && (words[3] == "Group" || words[3] == "Pid"))
      read_rank(line, words);
    if (words.size() > 3 && words[1] == "size" && words[2] == "count") read_columns(words);
  }

  void read_name(const std::vector<std::string>& words) {
    if (words.empty()) return refuse("the heading names no collective");
    if (!run_.program.empty()) return refuse_second_run(words[0] + " starts");
    run_.program = words[0];
    run_.kind = nccl_collective(words[0]);
  }

  void read_version(const std::vector<std::string>& words) {
    constexpr std::string_view kLibrary = "nccl-library=";
    for (const std::string& word : words) {
      if (!word.starts_with(kLibrary)) continue;
      const std::string version = word.substr(kLibrary.size());
      const std::optional<std::int64_t> number = parse_integer(version);
      run_.nccl_version = number ? detail::nccl_version_text(*number) : version;
    }
  }

  // #  Rank  0 Group  0 Pid  28616 on nccl-gib-test-0 device  0 [0000:8f:00] NVIDIA B200; before 2022 without a
  // group, which was one.
  void read_rank(std::string_view line, const std::vector<std::string>& words) {
    const std::optional<std::int64_t> rank = parse_integer(words[2]);
    if (!rank) return refuse(fmt::format("{} is no rank", in_quotes(words[2])));
    const auto on = std::ranges::find(words, "on");
    const bool on_host = on != words.end() && on + 1 != words.end();
    if (!ranks_.add(words[3] == "Group" ? words[4] : "0", *rank, on_host ? *(on + 1) : ""))
      return refuse_second_run(fmt::format("rank {} is listed again", *rank));
    if (const std::size_t bus = line.find("] "); bus != std::string_view::npos)
      run_.device = join(words_of(line.substr(bus + 2)), " ");
  }

  void read_columns(const std::vector<std::string>& words) {
    std::optional<std::size_t> time;
    std::vector<std::size_t> wrong;
    for (std::size_t i = 1; i < words.size(); ++i) {  // words[0] is '#'
      if (words[i] == "cputime") {
        return refuse("these are host times (-C 1), which are no time of a collective");
      }
      if (words[i] == "time" && !time) time = i - 1;
      if (words[i] == "#wrong") wrong.push_back(i - 1);
    }
    if (!time) return refuse("a table without a column `time`");
    constexpr std::size_t kOfToday = 13;  // options add some behind
    columns_ =
        Columns{.time = *time, .fewest = std::min(words.size() - 1, kOfToday), .wrong = std::move(wrong)};
  }

  void read_row(const std::vector<std::string>& words) {
    const std::optional<std::int64_t> bytes = parse_integer(words[0]);
    if (!bytes || words.size() < 2 || !parse_integer(words[1])) return;  // something else between the rows
    if (!columns_) return refuse("a row before the header of its table");
    if (words.size() < std::max(columns_->fewest, columns_->time + 1)) return refuse("a row that is cut off");
    if (*bytes < 0 || *bytes > detail::kMaxNcclBytes)
      return refuse(fmt::format("{} bytes are no size of a message", *bytes));
    for (const std::size_t column : columns_->wrong) {
      if (column >= words.size() || words[column] == "N/A") continue;
      if (const auto wrong = parse_number(words[column]); !wrong || *wrong > 0)
        return refuse(fmt::format("{} wrong results: such a time says nothing", words[column]));
    }
    const std::optional<double> us = parse_number(words[columns_->time]);
    if (!us || !detail::is_nccl_time(*us))
      return refuse(fmt::format("'{}' is no time", words[columns_->time]));
    detail::add_nccl_row(run_, {.bytes = static_cast<double>(*bytes), .seconds = *us * 1e-6});
  }

  void refuse(std::string message) {
    diagnostics_.error({.code = "bad-nccl-tests", .where = {name_, line_, 0}, .message = std::move(message)});
  }

  void refuse_second_run(const std::string& sign) {
    second_run_ = true;
    diagnostics_.error({.code = "several-runs",
                        .where = {name_, line_, 0},
                        .message = fmt::format("{}: the file holds a second run from here on", sign),
                        .hint = "one run a file: split it where the second one begins"});
  }

  const std::string& name_;
  Diagnostics& diagnostics_;
  NcclRun run_;
  int line_ = 0;
  bool ended_ = false;
  bool second_run_ = false;
  std::optional<Columns> columns_;
  detail::NcclRanks ranks_;
};

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

bool detail::NcclRanks::add(const std::string& group, std::int64_t rank, const std::string& host) {
  if (!seen_.emplace(group, rank).second) return false;
  ++ranks_[group];
  hosts_[group].insert(host);
  return true;
}

std::optional<std::string> detail::NcclRanks::close(NcclRun& run) const {
  for (const auto& [group, ranks] : ranks_) {
    if (run.ranks != 0 && run.ranks != ranks) return "groups of different sizes: one fit is of one size";
    run.ranks = ranks;
    run.nodes = std::max(run.nodes, static_cast<int>(hosts_.at(group).size()));
  }
  if (run.ranks < 2) return "fewer than two ranks are listed: there is nothing to communicate";
  return std::nullopt;
}

void detail::add_nccl_row(NcclRun& run, const NcclRow& row) {
  if (row.bytes > 0)
    run.rows.push_back(row);
  else
    run.launch_seconds = std::min(run.launch_seconds.value_or(row.seconds), row.seconds);
}

std::optional<NcclRun> read_nccl_tests(std::string_view text, const std::string& name,
                                       Diagnostics& diagnostics) {
  text = without_byte_order_mark(text);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{')
    return detail::read_nccl_json(text, name, diagnostics);
  const ErrorWatch watch(diagnostics);
  TextReader reader(name, diagnostics);
  reader.read(text);
  NcclRun run = std::move(reader).finish();
  if (!watch.clean()) return std::nullopt;
  return run;
}

std::string detail::nccl_version_text(std::int64_t version) {
  const std::int64_t major = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
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
