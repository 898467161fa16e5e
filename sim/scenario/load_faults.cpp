#include "sim/scenario/load_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "base/text.hpp"
#include "topology/cluster.hpp"
#include "topology/cluster_links.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {
namespace {

// The GPUs of the job, by their numbers in the cluster.
class JobGpus {
 public:
  explicit JobGpus(const Scenario& scenario) {
    if (!scenario.cluster) return;
    const ClusterSpec& whole = whole_cluster(scenario);
    for (int server = 0; server < whole.server_count(); ++server) {
      first_.push_back(count_);
      count_ += whole.gpus_of_server(server);
    }
    first_.push_back(count_);
    if (scenario.fabric) {
      nodes_ = scenario.network.placement;
    } else {
      for (int server = 0; server < whole.server_count(); ++server) nodes_.push_back(server);
    }
  }

  [[nodiscard]] bool known() const { return count_ > 0; }
  [[nodiscard]] int gpus() const { return count_; }
  [[nodiscard]] int nodes() const { return static_cast<int>(first_.size()) - 1; }
  [[nodiscard]] int node_of(int gpu) const {
    return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), gpu) - first_.begin()) - 1;
  }
  // Ranks of the job on a node; empty when it is none of its.
  [[nodiscard]] std::vector<int> ranks_on(int node) const {
    int rank = 0;
    for (const int mine : nodes_) {
      const int gpus = first_[static_cast<std::size_t>(mine) + 1] - first_[static_cast<std::size_t>(mine)];
      if (mine == node) {
        std::vector<int> ranks;
        for (int i = 0; i < gpus; ++i) ranks.push_back(rank + i);
        return ranks;
      }
      rank += gpus;
    }
    return {};
  }
  [[nodiscard]] int first_gpu(int node) const { return first_[static_cast<std::size_t>(node)]; }

 private:
  std::vector<int> first_;  // GPU of each node, and how many there are
  std::vector<int> nodes_;  // nodes of the job
  int count_ = 0;
};

class FaultReader {
 public:
  FaultReader(YamlMap& map, const Scenario& scenario, const JobGpus& gpus)
      : map_(map), scenario_(scenario), gpus_(gpus), watch_(map.diagnostics()) {}

  FaultSpec read();

 private:
  void refuse(const char* key, std::string_view why);
  Duration read_time(const char* key, std::optional<Duration> fallback = {});
  void read_node();
  void read_gpu();
  void read_link();
  void read_factor();

  YamlMap& map_;
  const Scenario& scenario_;
  const JobGpus& gpus_;
  ErrorWatch watch_;
  FaultSpec fault_;
};

void FaultReader::refuse(const char* key, std::string_view why) {
  if (map_.has(key)) map_.error(key, "contradiction", std::string(why), "leave it out");
}

// A century at most, so that the sum of two stays within what is counted.
Duration FaultReader::read_time(const char* key, std::optional<Duration> fallback) {
  constexpr Duration kLongest = std::chrono::hours(24 * 36'500);
  const Duration time = map_.duration(key, fallback);
  if (time > kLongest)
    map_.error(key, "out-of-range", human(time) + " is more than 100 years", "an iteration takes seconds");
  return time;
}

void FaultReader::read_node() {
  fault_.node = static_cast<int>(map_.integer("node", {.min = 0, .max = 1'000'000}));
  refuse("gpu", "a whole node is meant");
  refuse("link", "a node is meant");
  if (!watch_.clean()) return;
  if (!gpus_.known()) {
    map_.error("node", "contradiction", "there is no cluster, so there is no node", "describe the cluster");
  } else if (fault_.node >= gpus_.nodes()) {
    map_.error("node", "out-of-range",
               fmt::format("node {} is not one of the cluster's {}", fault_.node, gpus_.nodes()),
               fmt::format("nodes are 0 to {}", gpus_.nodes() - 1));
  } else if (fault_.ranks = gpus_.ranks_on(fault_.node); fault_.ranks.empty()) {
    map_.error("node", "no-effect", fmt::format("node {} is none of this job's", fault_.node),
               "name one of network.placement");
  }
}

void FaultReader::read_gpu() {
  fault_.gpu = static_cast<int>(map_.integer("gpu", {.min = 0, .max = 100'000'000}));
  refuse("node", "GPUs are counted over the whole cluster");
  refuse("link", "a GPU is meant");
  if (!watch_.clean()) return;
  if (!gpus_.known()) {
    fault_.ranks = {fault_.gpu};  // prepare() knows how many there are
    return;
  }
  if (fault_.gpu >= gpus_.gpus()) {
    map_.error("gpu", "out-of-range",
               fmt::format("GPU {} is not one of the cluster's {}", fault_.gpu, gpus_.gpus()),
               fmt::format("GPUs are 0 to {}, node by node", gpus_.gpus() - 1));
    return;
  }
  const int node = gpus_.node_of(fault_.gpu);
  const std::vector<int> ranks = gpus_.ranks_on(node);
  if (ranks.empty())
    map_.error("gpu", "no-effect", fmt::format("GPU {} is on node {}, none of this job's", fault_.gpu, node),
               "name a GPU of network.placement");
  else
    fault_.ranks = {ranks[static_cast<std::size_t>(fault_.gpu - gpus_.first_gpu(node))]};
}

void FaultReader::read_link() {
  fault_.link = map_.text("link");
  refuse("node", "links are meant");
  refuse("gpu", "links are meant");
  if (!watch_.clean()) return;
  if (!scenario_.network.shared()) {
    map_.error("kind", "contradiction", "a closed-form network has no links that could degrade",
               "use network: flow, or say in cluster.links what is so from the beginning");
    return;
  }
  if (!scenario_.cluster) {
    map_.error("link", "contradiction", "there is no cluster, so there is no link", "describe the cluster");
    return;
  }
  const Cluster cluster(whole_cluster(scenario_));
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i) {
    names.push_back(cluster.link_name(EdgeId(i)));
    if (matches(fault_.link, names.back())) return;
  }
  if (names.empty()) {
    if (!cluster.unreachable())  // otherwise the cluster is refused for this reason
      map_.error("link", "unknown-link", "the cluster has no link", "leave the fault out");
    return;
  }
  const auto near = nearest_name(fault_.link, names);
  map_.error(
      "link", "unknown-link", fmt::format("no link is named {}", in_quotes(fault_.link)),
      near ? fmt::format("did you mean '{}'?", *near) : fmt::format("for instance '{}'", names.front()));
}

void FaultReader::read_factor() {
  if (fault_.kind == FaultKind::kDeadNode) {
    refuse("factor", "a dead node does nothing at all");
    refuse("for", "a dead node stays dead within the iteration");
    return;
  }
  if (map_.has("for")) {
    fault_.lasts = read_time("for");
    if (watch_.clean() && *fault_.lasts <= Duration::zero())
      map_.error("for", "out-of-range", "it lasts some time", "leave it out where it lasts to the end");
  }
  if (fault_.kind == FaultKind::kDegradedLink)
    fault_.factor = map_.number("factor", {.min = kLeastLinkShare, .max = 1});
  else
    fault_.factor = map_.number("factor", {.min = 1, .max = 1e6});
}

FaultSpec FaultReader::read() {
  fault_.at = read_time("at", Duration::zero());
  fault_.kind = map_.choose<FaultKind>("kind", kFaultKindNames);
  if (!watch_.clean()) {  // whose keys these are is not known
    for (const char* key : {"node", "gpu", "link", "factor", "for"}) (void)map_.has(key);
    map_.finish();
    return {};
  }
  if (fault_.kind == FaultKind::kSlowGpu)
    read_gpu();
  else if (fault_.kind == FaultKind::kDegradedLink)
    read_link();
  else
    read_node();
  read_factor();
  if (fault_.kind == FaultKind::kDeadNode && !scenario_.jobs.empty())
    map_.error("kind", "contradiction", "beside other jobs an iteration that never ends would run for ever",
               "let a node die in a scenario without network.jobs");
  map_.finish();
  return fault_;
}

}  // namespace

std::string to_text(const FaultSpec& fault) {
  std::string when = human(fault.at);
  if (fault.lasts) when += " to " + human(fault.at + *fault.lasts);
  switch (fault.kind) {
    case FaultKind::kDeadNode:
      return fmt::format("{}: node {} dies", when, fault.node);
    case FaultKind::kSlowNode:
      return fmt::format("{}: node {} takes {:.4g} times as long", when, fault.node, fault.factor);
    case FaultKind::kSlowGpu:
      return fmt::format("{}: GPU {} takes {:.4g} times as long", when, fault.gpu, fault.factor);
    case FaultKind::kDegradedLink:
      return fmt::format("{}: {} has {:.4g} of its capacity", when, fault.link, fault.factor);
  }
  return when;
}

std::vector<FaultSpec> load_faults(YamlMap& root, Scenario& scenario) {
  const YamlNode* list = root.get("faults");
  if (list == nullptr) return {};
  if (list->kind != YamlNode::Kind::kSequence) {
    root.error("faults", "not-a-list", "is a list of faults", "write [{at: 2 s, kind: dead-node, node: 3}]");
    return {};
  }
  if (root.get("failures") != nullptr)
    root.error("faults", "contradiction", "they are of one iteration, and `failures` of weeks of them",
               "leave one of them out");
  const JobGpus gpus(scenario);
  std::vector<FaultSpec> faults;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    YamlMap item(&list->items[i], fmt::format("faults.{}", i), list->items[i].where, root.diagnostics(),
                 &scenario.origins);
    if (item.present()) faults.push_back(FaultReader(item, scenario, gpus).read());
  }
  return faults;
}

}  // namespace stagecraft
