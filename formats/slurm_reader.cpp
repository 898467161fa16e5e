#include "formats/slurm_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "base/yaml.hpp"
#include "formats/hostlist.hpp"
#include "formats/input_text.hpp"

namespace stagecraft {

namespace {

constexpr std::size_t kMostNames = 200'000;  // of a file, switches included

// Names of a file so far, and what is wrong with a list of them.
class Names {
 public:
  explicit Names(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  std::vector<std::string> expand(std::string_view text, const SourceLocation& where, std::string path) {
    HostlistResult result = expand_hostlist(text, left_);
    if (!result.mistake.empty())
      diagnostics_.error({.code = "bad-hostlist",
                          .where = where,
                          .path = std::move(path),
                          .message = fmt::format("{}: {}", in_quotes(text), result.mistake),
                          .hint = "names are listed as n[01-16,20],m7"});
    left_ -= result.names.size();
    return std::move(result.names);
  }

 private:
  Diagnostics& diagnostics_;
  std::size_t left_ = kMostNames;
};

// One line of topology.conf: Key=Value words.
class ConfReader {
 public:
  ConfReader(std::string file, Diagnostics& diagnostics)
      : file_(std::move(file)), diagnostics_(diagnostics), names_(diagnostics) {}

  std::optional<SlurmTopology> read(std::string_view text) {
    const ErrorWatch watch(diagnostics_);
    std::string joined;
    int first_line = 0, number = 0;
    for (const std::string_view raw : lines_of(text)) {
      ++number;
      const std::string_view words = trimmed(raw.substr(0, raw.find('#')));
      if (joined.empty()) first_line = number;
      if (words.ends_with('\\')) {
        joined += std::string(words.substr(0, words.size() - 1)) + ' ';
        continue;
      }
      joined += words;
      line(joined, {.file = file_, .line = first_line, .column = 1});
      joined.clear();
    }
    line(joined, {.file = file_, .line = first_line, .column = 1});
    if (switches_ && blocks_)
      refuse({file_, 0, 0}, "contradiction", "holds switches and blocks", "a topology is a tree or blocks");
    topology_.kind = blocks_ ? SlurmKind::kBlock : SlurmKind::kTree;
    topology_.where = {file_, 0, 0};
    if (!watch.clean()) return std::nullopt;
    return std::move(topology_);
  }

 private:
  static constexpr std::array<std::string_view, 6> kKeys{"SwitchName", "Switches",  "Nodes",
                                                         "LinkSpeed",  "BlockName", "BlockSizes"};

  void refuse(const SourceLocation& where, std::string code, std::string message, std::string hint) {
    diagnostics_.error(
        {.code = std::move(code), .where = where, .message = std::move(message), .hint = std::move(hint)});
  }

  void line(std::string_view words, const SourceLocation& where) {
    SlurmGroup group{.where = where};
    bool any = false;
    while (!(words = trimmed(words)).empty()) {
      const std::size_t end = std::min(words.find_first_of(" \t"), words.size());
      any = assign(words.substr(0, end), where, group) || any;
      words.remove_prefix(end);
    }
    if (!any) return;
    if (group.name.empty()) {
      if (!group.nodes_text.empty() || !group.children_text.empty())
        refuse(where, "no-name", "the line has no SwitchName or BlockName", {});
      return;
    }
    topology_.groups.push_back(std::move(group));
  }

  // "Switches=s[2-3]": whether it says something of a group.
  bool assign(std::string_view word, const SourceLocation& where, SlurmGroup& group) {
    const std::size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const auto* const known =
        std::ranges::find_if(kKeys, [&](std::string_view k) { return lower_case(k) == lower_case(key); });
    if (known == kKeys.end() || equals == std::string_view::npos) {
      const std::vector<std::string> keys(kKeys.begin(), kKeys.end());
      refuse(where, "unknown-key", fmt::format("{} is no key of topology.conf", in_quotes(key)),
             suggest(key, keys));
      return false;
    }
    std::string_view value = word.substr(equals + 1);
    if (value.size() > 1 && value.starts_with('"') && value.ends_with('"'))
      value = value.substr(1, value.size() - 2);
    set(*known, value, where, group);
    return true;
  }

  void set(std::string_view key, std::string_view value, const SourceLocation& where, SlurmGroup& group) {
    if (key == "LinkSpeed") topology_.link_speeds = true;
    if (key == "SwitchName" || key == "BlockName") {
      (key == "SwitchName" ? switches_ : blocks_) = true;
      group.name = value;
      if (value.empty()) refuse(where, "no-name", fmt::format("{} is empty", key), {});
    }
    if (key == "Nodes") {
      group.nodes_text = value;
      group.nodes = names_.expand(value, where, "Nodes");
    }
    if (key == "Switches") {
      group.children_text = value;
      group.children = names_.expand(value, where, "Switches");
    }
    if (key == "BlockSizes") block_sizes(value, where);
  }

  void block_sizes(std::string_view value, const SourceLocation& where) {
    while (!value.empty()) {
      const std::size_t end = std::min(value.find(','), value.size());
      const std::optional<std::int64_t> size = parse_integer(value.substr(0, end));
      if (!size || *size < 1 || *size > static_cast<std::int64_t>(kMostNames))
        return refuse(where, "bad-number",
                      fmt::format("BlockSizes: {} is no number of nodes", in_quotes(value.substr(0, end))),
                      {});
      topology_.block_sizes.push_back(*size);
      value.remove_prefix(std::min(end + 1, value.size()));
    }
  }

  std::string file_;
  Diagnostics& diagnostics_;
  Names names_;
  SlurmTopology topology_;
  bool switches_ = false, blocks_ = false;
};

class YamlReader {
 public:
  explicit YamlReader(Diagnostics& diagnostics) : diagnostics_(diagnostics), names_(diagnostics) {}

  std::optional<SlurmTopology> read(const YamlNode& root) {
    const ErrorWatch watch(diagnostics_);
    const YamlNode* chosen = choose(root);
    if (chosen == nullptr) return std::nullopt;
    YamlMap map(chosen, "", chosen->where, diagnostics_);
    topology_.name = map.text("topology", "");
    topology_.where = chosen->where;
    (void)map.boolean("cluster_default", false);
    for (const std::string_view kind : {"ring", "torus3d"}) {
      if (map.has(kind))
        map.error(kind, "not-supported-yet", "this kind of topology is not supported yet",
                  "tree, block and flat are read");
    }
    if (map.has("tree")) tree(map);
    if (map.has("block")) blocks(map);
    if (map.has("flat")) {
      (void)map.get("flat");
      topology_.kind = SlurmKind::kFlat;
    }
    if (!map.has("tree") && !map.has("block") && !map.has("flat") && watch.clean())
      map.error("", "no-kind", "is of no kind", "one of tree, block, flat");
    map.finish();
    if (!watch.clean()) return std::nullopt;
    return std::move(topology_);
  }

 private:
  const YamlNode* choose(const YamlNode& root) {
    const YamlNode* chosen = nullptr;
    for (const YamlNode& item : root.items) {
      const YamlNode* is_default = item.find("cluster_default");
      const bool yes = is_default != nullptr && is_default->text == "true";
      if (yes && chosen != nullptr) {
        diagnostics_.error({.code = "two-defaults",
                            .where = is_default->where,
                            .path = "cluster_default",
                            .message = "a second topology is the cluster's default",
                            .hint = "one has cluster_default: true"});
        return nullptr;
      }
      if (yes || root.items.size() == 1) chosen = &item;
    }
    if (chosen == nullptr) {
      diagnostics_.error(
          {.code = "no-default",
           .where = root.where,
           .message = fmt::format("none of {} topologies is the cluster's default", root.items.size()),
           .hint = "give one `cluster_default: true`"});
      return nullptr;
    }
    for (const YamlNode& item : root.items) {
      const YamlNode* name = item.find("topology");
      if (&item != chosen)
        topology_.others.push_back(name == nullptr ? "a topology without a name" : name->text);
    }
    return chosen;
  }

  void tree(YamlMap& map) {
    topology_.kind = SlurmKind::kTree;
    YamlMap tree = map.map("tree");
    list(tree, "switches", "switch");
    tree.finish();
  }

  void blocks(YamlMap& map) {
    topology_.kind = SlurmKind::kBlock;
    YamlMap block = map.map("block");
    topology_.block_sizes =
        block.integers("block_sizes", {.min = 1, .max = static_cast<std::int64_t>(kMostNames)});
    list(block, "blocks", "block");
    block.finish();
  }

  void list(YamlMap& map, std::string_view key, std::string_view name_key) {
    const YamlNode* items = map.get(key);
    if (items == nullptr || items->kind != YamlNode::Kind::kSequence) {
      map.error(key, "missing-key", "is no list of what belongs to it");
      return;
    }
    for (std::size_t i = 0; i < items->items.size(); ++i) {
      YamlMap item(&items->items[i], fmt::format("{}.{}", map.path_of(key), i), items->items[i].where,
                   diagnostics_);
      if (!item.present()) continue;
      SlurmGroup group{.name = item.text(name_key), .where = items->items[i].where};
      group.nodes_text = names(item, "nodes", group.nodes);
      if (name_key == "switch") group.children_text = names(item, "children", group.children);
      item.finish();
      topology_.groups.push_back(std::move(group));
    }
  }

  std::string names(YamlMap& item, std::string_view key, std::vector<std::string>& expanded) {
    std::string text = item.text(key, "");
    if (item.has(key)) expanded = names_.expand(text, item.where_of(key), item.path_of(key));
    return text;
  }

  Diagnostics& diagnostics_;
  Names names_;
  SlurmTopology topology_;
};

}  // namespace

std::optional<SlurmTopology> read_slurm_conf(std::string_view text, const std::string& name,
                                             Diagnostics& diagnostics) {
  return ConfReader(name, diagnostics).read(text);
}

std::optional<SlurmTopology> read_slurm_yaml(std::string_view text, const std::string& name,
                                             Diagnostics& diagnostics) {
  const std::optional<YamlNode> root = parse_yaml(text, name, diagnostics);
  if (!root) return std::nullopt;
  if (root->kind != YamlNode::Kind::kSequence || root->items.empty()) {
    diagnostics.error({.code = "not-a-topology",
                       .where = root->where,
                       .message = "is no list of topologies",
                       .hint = "topology.yaml begins with `- topology: NAME`"});
    return std::nullopt;
  }
  return YamlReader(diagnostics).read(*root);
}

}  // namespace stagecraft
