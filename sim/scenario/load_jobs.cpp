#include "sim/scenario/load_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "sim/scenario/load_network.hpp"
#include "sim/scenario/scenario_tree.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNodes = 1'000'000;

std::optional<int> take_integer(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value >= kMostNodes || end == text.data()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// Two kinds of node count as one when jobs cannot distinguish them.
bool same_kind(NodeSpec a, NodeSpec b) {
  for (NodeSpec* node : {&a, &b}) {
    node->name.clear();
    node->source.clear();
    node->default_profile.clear();
    node->default_fabric.clear();
  }
  return a == b;
}

std::string kind_name(const NodeSpec& node) {
  return node.name.empty() ? node.device : node.name;
}

class JobsReader {
 public:
  JobsReader(YamlMap& network, Scenario& scenario, const PresetPlaces& places)
      : network_(network), scenario_(scenario), places_(places), whole_(*scenario.cluster) {}

  void read();

 private:
  std::optional<std::vector<int>> read_nodes(YamlMap& map);
  void take(YamlMap& map, const std::vector<int>& nodes, const std::string& whose);
  void read_placement();
  void read_job(YamlMap& map);
  std::optional<Scenario> read_scenario_of(YamlMap& map, const std::string& file);
  void check_job(YamlMap& map, const OtherJob& job);
  std::string free_name(const std::string& wanted) const;
  void take_the_rest();

  YamlMap& network_;
  Scenario& scenario_;
  const PresetPlaces& places_;
  const ClusterSpec whole_;
  std::map<int, std::string> taken_;  // node -> whose
};

std::optional<std::vector<int>> JobsReader::read_nodes(YamlMap& map) {
  if (!map.has("nodes")) {
    map.error("nodes", "missing-key", "is required, but not given",
              "write the nodes that it runs on: [0-15, 32]");
    return std::nullopt;
  }
  const ErrorWatch watch(map.diagnostics());
  std::vector<int> nodes;
  for (const std::string& text : map.texts("nodes")) {
    const auto some = parse_node_list(text);
    if (!some || nodes.size() + some->size() > kMostNodes) {
      map.error("nodes", "no-nodes", fmt::format("{} is no list of nodes", in_quotes(text)),
                "write nodes and ranges that ascend: [0-15, 32]");
      return std::nullopt;
    }
    nodes.insert(nodes.end(), some->begin(), some->end());
  }
  if (!watch.clean()) return std::nullopt;
  const int count = whole_.server_count();
  for (const int node : nodes) {
    if (node < count) continue;
    map.error("nodes", "out-of-range", fmt::format("node {} is not one of the cluster's {}", node, count),
              fmt::format("nodes are 0 to {}", count - 1));
    return std::nullopt;
  }
  if (nodes.empty()) {
    map.error("nodes", "no-nodes", "a job runs on a node at least", "write nodes and ranges: [0-15, 32]");
    return std::nullopt;
  }
  return nodes;
}

// Nodes that a job has; those that another has already are a mistake.
void JobsReader::take(YamlMap& map, const std::vector<int>& nodes, const std::string& whose) {
  std::vector<int> twice;
  std::string owner;
  for (const int node : nodes) {
    const auto [at, is_free] = taken_.emplace(node, whose);
    if (is_free) continue;
    if (twice.empty()) owner = at->second;
    if (at->second == owner) twice.push_back(node);
  }
  if (twice.empty()) return;
  std::ranges::sort(twice);
  twice.erase(std::unique(twice.begin(), twice.end()), twice.end());
  const std::string which = plural(std::ssize(twice), "node") + " " + node_list_text(twice);
  map.error(
      "nodes", "overlap",
      owner == whose ? which + " stands in the list twice" : fmt::format("{} belongs to {}", which, owner),
      "a node runs one job: take others");
}

void JobsReader::read_placement() {
  YamlMap map = network_.map("placement");
  if (!map.present()) return;
  if (const auto nodes = read_nodes(map)) {
    take(map, *nodes, "the scenario's own job");
    scenario_.network.placement = *nodes;
  }
  map.finish();
}

std::string JobsReader::free_name(const std::string& wanted) const {
  const auto known = [&](const std::string& name) {
    return std::ranges::any_of(scenario_.jobs, [&](const OtherJob& job) { return job.name == name; });
  };
  if (!known(wanted)) return wanted;
  for (int i = 2;; ++i)
    if (const std::string name = fmt::format("{} {}", wanted, i); !known(name)) return name;
}

std::optional<Scenario> JobsReader::read_scenario_of(YamlMap& map, const std::string& file) {
  const fs::path path = fs::path(file).is_absolute() ? fs::path(file) : places_.folder / file;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    map.error("scenario", "no-such-file", fmt::format("there is no file {}", in_quotes(file)),
              "a path is relative to the folder of this scenario");
    return std::nullopt;
  }
  const ErrorWatch watch(map.diagnostics());
  const YamlNode* root = places_.library.tree(path, map.diagnostics());
  if (root == nullptr) return std::nullopt;
  if (const YamlNode* network = root->find("network")) {
    for (const char* key : {"jobs", "placement", "background"})
      if (const YamlNode* value = network->find(key))
        map.diagnostics().error(
            {.code = "contradiction",
             .where = value->where,
             .path = std::string("network.") + key,
             .message = "this scenario is placed by another one, which says who is on the fabric",
             .hint = "say it there"});
  }
  if (const YamlNode* faults = root->find("faults"))
    map.diagnostics().error({.code = "contradiction",
                             .where = faults->where,
                             .path = "faults",
                             .message = "faults are of the job that is measured, and this is another one",
                             .hint = "say them in the scenario that places it"});
  if (!watch.clean()) return std::nullopt;
  return read_scenario({.root = *root, .source = path.string(), .folder = path.parent_path()},
                       places_.library, map.diagnostics());
}

void JobsReader::check_job(YamlMap& map, const OtherJob& job) {
  const std::optional<ClusterSpec>& own = job.scenario.cluster;
  if (!own) {
    map.error("scenario", "contradiction", "it has no cluster, so it has nothing to place",
              "give it a cluster with as many nodes as it takes");
    return;
  }
  const int needs = own->server_count(), has = static_cast<int>(job.nodes.size());
  if (needs != has) {
    map.error("nodes", "wrong-count",
              fmt::format("{} for a job that is written for {}", counted(has, "node"), needs),
              fmt::format("list {} of them, or change its cluster.nodes", needs));
    return;
  }
  if (own->gpus_used > 0 && own->gpus_used != own->groups.front().node.gpus)
    map.error("scenario", "contradiction", "it uses a part of a node", "give it whole nodes: cluster.nodes");
  if (!own->links.empty())
    map.error("scenario", "contradiction", "its cluster.links name links of a fabric that is not used",
              "say them in the scenario that places it");
  for (int i = 0; i < has; ++i) {
    const NodeSpec& wanted = own->groups[group_of(*own, i)].node;
    const int node = job.nodes[static_cast<std::size_t>(i)];
    const NodeSpec& given = whole_.groups[group_of(whole_, node)].node;
    if (same_kind(wanted, given)) continue;
    const bool alike = kind_name(given) == kind_name(wanted);
    map.error("nodes", "other-node",
              alike ? fmt::format("node {} is {} with other parts than the job is written for", node,
                                  kind_name(given))
                    : fmt::format("node {} is {}, and the job is written for {}", node, kind_name(given),
                                  kind_name(wanted)),
              "place it on nodes of the kind that it has, or write its cluster.node as here");
    return;
  }
}

void JobsReader::read_job(YamlMap& map) {
  OtherJob job;
  const ErrorWatch watch(map.diagnostics());
  job.file = map.text("scenario");
  const bool has_file = watch.clean();
  const std::string name = map.name("name", fs::path(job.file).stem().string());
  job.start = map.duration("start", Duration::zero());
  job.name = map.has("name") ? name : free_name(name);
  if (free_name(job.name) != job.name)
    map.error("name", "overlap", fmt::format("there is a job {} already", in_quotes(job.name)),
              "give every job a name of its own");
  const auto nodes = read_nodes(map);
  if (nodes) {
    job.nodes = *nodes;
    take(map, job.nodes, "job " + in_quotes(job.name));
  }
  map.finish();
  if (!has_file) return;
  auto scenario = read_scenario_of(map, job.file);
  if (!scenario) return;
  job.scenario = *std::move(scenario);
  job.scenario.network.mode = NetworkMode::kFlow;
  if (nodes) check_job(map, job);
  scenario_.jobs.push_back(std::move(job));
}

void JobsReader::take_the_rest() {
  if (!scenario_.network.placement.empty()) return;
  for (int node = 0; node < whole_.server_count(); ++node)
    if (!taken_.contains(node)) scenario_.network.placement.push_back(node);
  if (scenario_.network.placement.empty())
    network_.error("jobs", "out-of-range", "they leave no node to the scenario's own job",
                   "give them fewer nodes, or the cluster more");
}

// GPUs of an NVLink domain are numbered side by side.
bool tears_domain(const ClusterSpec& whole, const std::vector<int>& nodes) {
  std::set<std::pair<std::size_t, int>> seen;
  std::optional<std::pair<std::size_t, int>> last;
  for (const int node : nodes) {
    const std::size_t group = group_of(whole, node);
    int first = 0;
    for (std::size_t i = 0; i < group; ++i) first += whole.groups[i].count;
    const std::pair here{group, (node - first) / whole.groups[group].node.nvlink_domain};
    if (here != last && !seen.insert(here).second) return true;
    last = here;
  }
  return false;
}

void JobsReader::read() {
  const ErrorWatch watch(network_.diagnostics());
  read_placement();
  const YamlNode* list = network_.get("jobs");
  if (list != nullptr && list->kind != YamlNode::Kind::kSequence) {
    network_.error("jobs", "not-a-list", "is a list of jobs",
                   "write [{scenario: other.yaml, nodes: [16-31]}]");
  } else if (list != nullptr) {
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      YamlMap item(&list->items[i], fmt::format("{}.{}", network_.path_of("jobs"), i), list->items[i].where,
                   network_.diagnostics(), &scenario_.origins);
      if (item.present()) read_job(item);
    }
  }
  if (!watch.clean()) return;
  take_the_rest();
  if (tears_domain(whole_, scenario_.network.placement))
    network_.error("placement", "out-of-order", "nodes of one NVLink domain stand apart in the list",
                   "list the nodes of a domain one after the other");
  for (std::size_t i = 0; i < scenario_.jobs.size(); ++i)
    if (tears_domain(whole_, scenario_.jobs[i].nodes))
      network_.error(
          "jobs", "out-of-order",
          fmt::format("job {} lists nodes of one NVLink domain apart", in_quotes(scenario_.jobs[i].name)),
          "list the nodes of a domain one after the other");
  if (!watch.clean()) return;
  scenario_.fabric = whole_;
  scenario_.cluster = part_of(whole_, scenario_.network.placement);
}

}  // namespace

std::optional<std::vector<int>> parse_node_list(std::string_view text) {
  std::vector<int> nodes;
  for (;;) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    const auto first = take_integer(text);
    if (!first) return std::nullopt;
    auto last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = take_integer(text);
      if (!last || *last < *first) return std::nullopt;
    }
    if (nodes.size() + static_cast<std::size_t>(*last - *first) >= kMostNodes) return std::nullopt;
    for (int node = *first; node <= *last; ++node) nodes.push_back(node);
    if (text.empty()) return nodes;
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
  }
}

std::string node_list_text(const std::vector<int>& nodes) {
  std::string text;
  for (std::size_t i = 0; i < nodes.size();) {
    std::size_t end = i + 1;
    while (end < nodes.size() && nodes[end] == nodes[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += end == i + 1 ? fmt::format("{}", nodes[i]) : fmt::format("{}-{}", nodes[i], nodes[end - 1]);
    i = end;
  }
  return text;
}

bool load_jobs(YamlMap& root, Scenario& scenario, const PresetPlaces& places) {
  const YamlNode* node = root.get("network");
  if (node == nullptr || node->kind != YamlNode::Kind::kMap) return true;
  const char* given = nullptr;
  for (const char* key : {"placement", "jobs"})
    if (node->find(key) != nullptr) given = key;
  if (given == nullptr) return true;
  YamlMap network(node, root.path_of("network"), node->where, root.diagnostics(), &scenario.origins);
  if (!scenario.network.shared()) {
    network.error(given, "contradiction",
                  given == std::string_view("jobs")
                      ? "jobs share links, and a closed-form network has none"
                      : "a placement picks links, and a closed-form network has none",
                  "use mode: flow");
  } else if (root.get("failures") != nullptr) {
    network.error(given, "contradiction",
                  "`failures` take nodes of a whole cluster away, not of a part of one",
                  "leave one of them out");
  } else if (root.get("cluster") == nullptr) {
    network.error(given, "contradiction", "there is no cluster to place a job on", "describe the cluster");
  } else if (scenario.cluster) {  // otherwise already reported
    if (root.diagnostics().survey() != nullptr) (void)load_mode(network, "mode");  // whose keys these are
    JobsReader(network, scenario, places).read();
  }
  return scenario.fabric.has_value();
}

}  // namespace stagecraft
