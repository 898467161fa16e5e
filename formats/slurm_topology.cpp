#include "formats/slurm_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "formats/import_entries.hpp"
#include "formats/input_text.hpp"
#include "formats/slurm_reader.hpp"

namespace stagecraft {

namespace {

constexpr int kMostLevels = 16;

// A tree of switches with every parent known.
struct Forest {
  std::vector<std::size_t> roots = {};
  std::vector<std::size_t> leaves = {};
  std::vector<std::vector<std::size_t>> children = {};  // of each switch
  int levels = 0;
};

class ForestBuilder {
 public:
  ForestBuilder(const std::vector<SlurmGroup>& groups, Diagnostics& diagnostics)
      : groups_(groups), diagnostics_(diagnostics) {}

  std::optional<Forest> build() {
    const ErrorWatch watch(diagnostics_);
    for (std::size_t i = 0; i < groups_.size(); ++i) name(i);
    Forest forest{.children = std::vector<std::vector<std::size_t>>(groups_.size())};
    std::vector<bool> has_parent(groups_.size(), false);
    for (std::size_t i = 0; i < groups_.size(); ++i) children(groups_[i], forest.children[i], has_parent);
    if (!watch.clean()) return std::nullopt;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].nodes.empty()) forest.leaves.push_back(i);
      if (!has_parent[i]) forest.roots.push_back(i);
    }
    std::size_t reached = 0;
    for (const std::size_t root : forest.roots)
      forest.levels = std::max(forest.levels, depth(forest, root, 1, reached));
    if (watch.clean() && reached < groups_.size())
      refuse(groups_.front(), "circle", "some switches are below themselves",
             "a tree has a switch below no other");
    if (!watch.clean()) return std::nullopt;
    return forest;
  }

 private:
  void refuse(const SlurmGroup& group, std::string code, std::string message, std::string hint = {}) {
    diagnostics_.error({.code = std::move(code),
                        .where = group.where,
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  void name(std::size_t index) {
    const SlurmGroup& group = groups_[index];
    if (!by_name_.emplace(group.name, index).second)
      refuse(group, "duplicate-name", fmt::format("switch {} is defined twice", in_quotes(group.name)));
    if (group.nodes.empty() == group.children.empty())
      refuse(group, "bad-switch",
             fmt::format("switch {} has {}", in_quotes(group.name),
                         group.nodes.empty() ? "neither switches nor nodes" : "both switches and nodes"),
             "one of Switches= and Nodes=");
    for (const std::string& node : group.nodes) {
      if (nodes_.insert(node).second) continue;
      return refuse(group, "duplicate-node", fmt::format("node {} is below a leaf already", in_quotes(node)),
                    "each node has one leaf switch");
    }
  }

  void children(const SlurmGroup& group, std::vector<std::size_t>& below, std::vector<bool>& has_parent) {
    for (const std::string& child : group.children) {
      const auto known = by_name_.find(child);
      if (known == by_name_.end())
        return refuse(group, "unknown-switch", fmt::format("switch {} is defined nowhere", in_quotes(child)),
                      "a line with its SwitchName");
      if (has_parent[known->second])
        return refuse(group, "two-parents", fmt::format("switch {} is below two others", in_quotes(child)));
      has_parent[known->second] = true;
      below.push_back(known->second);
    }
  }

  // Levels of switches from here down. Every switch has one parent, so each is reached once.
  int depth(const Forest& forest, std::size_t index, int level, std::size_t& reached) {
    ++reached;
    if (level > kMostLevels) {
      refuse(groups_[index], "too-deep", fmt::format("more than {} levels of switches", kMostLevels));
      return level;
    }
    int below = 0;
    for (const std::size_t child : forest.children[index])
      below = std::max(below, depth(forest, child, level + 1, reached));
    return 1 + below;
  }

  const std::vector<SlurmGroup>& groups_;
  Diagnostics& diagnostics_;
  std::map<std::string, std::size_t> by_name_;
  std::set<std::string> nodes_;
};

class FabricImporter {
 public:
  FabricImporter(const SlurmTopology& topology, std::string file, const TopologyRequest& request,
                 Diagnostics& diagnostics)
      : topology_(topology), file_(std::move(file)), request_(request), diagnostics_(diagnostics) {}

  std::optional<Fragment> import() {
    const ErrorWatch watch(diagnostics_);
    if (topology_.kind == SlurmKind::kTree) tree();
    if (topology_.kind == SlurmKind::kBlock) blocks();
    if (topology_.kind == SlurmKind::kFlat) flat();
    if (!watch.clean()) return std::nullopt;
    if (request_.link)
      fabric_.push_back(
          {.key = "nic_bandwidth", .value = fragment_bit_rate(*request_.link, {}), .comment = "--link"});
    notes();
    Entries cluster;
    if (nodes_ > 0)
      cluster.push_back(entry("nodes", nodes_, {.comment = nodes_comment_, .where = topology_.where}));
    cluster.push_back(map_entry("fabric", std::move(fabric_)));
    fragment_.entries.push_back(entry("stagecraft", 1, {}));
    fragment_.entries.push_back(map_entry("cluster", std::move(cluster)));
    return std::move(fragment_);
  }

 private:
  void head(const std::string& what) {
    const std::string named = topology_.name.empty() ? "" : fmt::format(" (topology {})", topology_.name);
    fragment_.head.push_back(fmt::format("From {}{}: {}", file_, named, what));
    for (const SlurmGroup& group : topology_.groups)
      fragment_.head.push_back(fmt::format(
          "  {}: {}", group.name, group.nodes_text.empty() ? group.children_text : group.nodes_text));
  }

  void warn(const SourceLocation& where, std::string code, std::string message, std::string hint = {}) {
    diagnostics_.warning(
        {.code = std::move(code), .where = where, .message = std::move(message), .hint = std::move(hint)});
  }

  void kind(std::string_view name, std::string comment) {
    fabric_.push_back(text_entry("kind", name, {.comment = std::move(comment), .where = topology_.where}));
  }

  // `nodes_per_leaf` of groups that should be alike; the largest where they are not.
  void nodes_per_leaf(const std::vector<std::size_t>& groups, std::string_view what, std::string_view code) {
    std::size_t least = topology_.groups[groups.front()].nodes.size();
    std::size_t largest = groups.front();
    for (const std::size_t index : groups) {
      const std::size_t size = topology_.groups[index].nodes.size();
      nodes_ += static_cast<std::int64_t>(size);
      least = std::min(least, size);
      if (size > topology_.groups[largest].nodes.size()) largest = index;
    }
    const SlurmGroup& group = topology_.groups[largest];
    if (least != group.nodes.size())
      warn(group.where, std::string(code),
           fmt::format("{} have {} to {} nodes: {} are taken for each", what, least, group.nodes.size(),
                       group.nodes.size()),
           "nodes fill the fabric in order");
    fabric_.push_back(entry("nodes_per_leaf", static_cast<std::int64_t>(group.nodes.size()),
                            {.comment = fmt::format("nodes of {}", group.name), .where = group.where}));
  }

  // Three levels are pods below a core, where all pods, and all leaves, are of one size. Says whether they
  // are.
  bool pods(const Forest& forest) {
    const SlurmGroup& root = topology_.groups[forest.roots.front()];
    const std::size_t leaf = topology_.groups[forest.leaves.front()].nodes.size();
    std::optional<std::size_t> each;
    for (const std::size_t pod : forest.children[forest.roots.front()]) {
      std::size_t nodes = 0;
      for (const std::size_t below : forest.children[pod]) {
        if (topology_.groups[below].nodes.size() != leaf) return false;
        nodes += leaf;
      }
      if (nodes == 0 || each.value_or(nodes) != nodes) return false;
      each = nodes;
    }
    fabric_.push_back(
        entry("nodes_per_pod", static_cast<std::int64_t>(*each),
              {.comment = fmt::format("nodes below each switch of {}", root.name), .where = root.where}));
    return true;
  }

  void tree() {
    const std::optional<Forest> forest = ForestBuilder(topology_.groups, diagnostics_).build();
    if (!forest) return;
    if (forest->leaves.empty()) {
      diagnostics_.error({.code = "no-nodes", .where = topology_.where, .message = "no switch has nodes"});
      return;
    }
    nodes_comment_ = "nodes below the leaf switches";
    std::vector<std::string> roots;
    for (const std::size_t root : forest->roots) roots.push_back(topology_.groups[root].name);
    head(fmt::format("switches of Slurm: {} leaves, {} levels, root {}", forest->leaves.size(),
                     forest->levels, join(roots, ", ")));
    if (roots.size() > 1) {
      warn(topology_.groups[forest->roots[1]].where, "no-common-root",
           fmt::format("{} trees share no root: what joins {} is unknown", roots.size(),
                       in_quotes(join(roots, ", "))),
           "say what joins them, or import each part");
      fragment_.missing.push_back(fmt::format(
          "kind: fat-tree   # under cluster.fabric: what joins the {} trees, and how fast", roots.size()));
    } else if (forest->levels == 1) {
      kind("single-switch", "one switch");
    } else {
      kind("fat-tree", fmt::format("{} levels of switches", forest->levels));
    }
    if (roots.size() > 1 || forest->levels > 1)
      nodes_per_leaf(forest->leaves, "leaves", "unlike-leaves");
    else
      nodes_ = static_cast<std::int64_t>(topology_.groups[forest->leaves.front()].nodes.size());
    const bool has_pods = roots.size() == 1 && forest->levels == 3 && pods(*forest);
    if (forest->levels > 2 && !has_pods)
      fragment_.assumed.push_back(
          fmt::format("kind: a fat tree has leaves and one spine for all that is above; {} levels are {} "
                      "switches more on the way",
                      forest->levels, 2 * (forest->levels - 2)));
  }

  void blocks() {
    std::vector<std::size_t> all;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < topology_.groups.size(); ++i) {
      const SlurmGroup& block = topology_.groups[i];
      all.push_back(i);
      for (const std::string& node : block.nodes) {
        if (seen.insert(node).second) continue;
        diagnostics_.error({.code = "duplicate-node",
                            .where = block.where,
                            .message = fmt::format("node {} is in a block already", in_quotes(node))});
        return;
      }
    }
    if (seen.empty()) {
      diagnostics_.error({.code = "no-nodes", .where = topology_.where, .message = "no block has nodes"});
      return;
    }
    nodes_comment_ = "nodes of the blocks";
    head(fmt::format("blocks of Slurm: {}", all.size()));
    kind("rail-optimized", "blocks: nodes of one block share their switches");
    nodes_per_leaf(all, "blocks", "unlike-blocks");
    fragment_.assumed.emplace_back(
        "kind: a block is one group of rail switches; where it is one NVLink domain, make it a node");
    if (!topology_.block_sizes.empty()) {
      std::vector<std::string> sizes;
      for (const std::int64_t size : topology_.block_sizes) sizes.push_back(std::to_string(size));
      fragment_.ignored.push_back(fmt::format("BlockSizes {}: how Slurm places jobs", join(sizes, ", ")));
    }
  }

  void flat() {
    head("a flat topology of Slurm: all nodes alike");
    kind("single-switch", "flat");
    fragment_.missing.emplace_back("nodes: 2   # under cluster: a flat topology names none");
  }

  void notes() {
    fragment_.assumed.emplace_back(
        "oversubscription: 1, since Slurm does not tell how many uplinks there are");
    if (topology_.link_speeds)
      fragment_.ignored.emplace_back("LinkSpeed: parsed and not used by Slurm itself");
    if (!topology_.others.empty())
      fragment_.ignored.push_back("topologies that are not the cluster's default: " +
                                  join(topology_.others, ", "));
    fragment_.missing.emplace_back(
        "node: …   # under cluster: the machine, which Slurm's topology does not tell");
    if (!request_.link)
      fragment_.missing.emplace_back(
          "nic_bandwidth: …   # under cluster.fabric, or the node's own; or import with --link "
          "400Gb/s");
    fragment_.missing.emplace_back(
        "collective_efficiency: 0.85   # under cluster.fabric, with latencies: measure them, or take those "
        "of a preset");
  }

  const SlurmTopology& topology_;
  std::string file_;
  const TopologyRequest& request_;
  Diagnostics& diagnostics_;
  Fragment fragment_;
  Entries fabric_;
  std::int64_t nodes_ = 0;
  std::string nodes_comment_;
};

}  // namespace

bool looks_like_slurm_conf(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  return std::ranges::any_of(lines, [](std::string_view line) {
    const std::string lower = lower_case(trimmed(line));
    return lower.starts_with("switchname=") || lower.starts_with("blockname=");
  });
}

bool looks_like_slurm_yaml(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  return std::ranges::any_of(lines, [](std::string_view line) {
    return line.starts_with("- topology:") || line.starts_with("-   topology:") ||
           trimmed(line).starts_with("cluster_default:");
  });
}

std::optional<Fragment> import_slurm_topology(std::string_view text, const std::string& name,
                                              const TopologyRequest& request, Diagnostics& diagnostics) {
  const bool conf = looks_like_slurm_conf(text);
  const std::optional<SlurmTopology> topology =
      conf ? read_slurm_conf(text, name, diagnostics) : read_slurm_yaml(text, name, diagnostics);
  if (!topology) return std::nullopt;
  return FabricImporter(*topology, name, request, diagnostics).import();
}

}  // namespace stagecraft
