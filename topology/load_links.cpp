#include "topology/load_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "topology/cluster.hpp"
#include "topology/cluster_links.hpp"
#include "topology/load_cluster.hpp"

namespace stagecraft {
namespace {

const std::vector<std::string> kDirections = {"both", "one-way"};

LinkException load_link(YamlMap& item) {
  LinkException link;
  link.name = item.text("name");
  const ErrorWatch watch(item.diagnostics());
  if (item.has("bandwidth")) {
    link.bandwidth = item.bandwidth("bandwidth");
    if (watch.clean() && *link.bandwidth <= Bandwidth(0))
      item.error("bandwidth", "out-of-range", "must be above 0",
                 "a link that is not there is `missing: true`");
  }
  link.share = item.number("share", {.min = kLeastLinkShare, .max = 1, .fallback = 1.0});
  if (item.has("latency")) link.latency = load_latency(item, "latency", {});
  link.missing = item.boolean("missing", false);
  link.both = item.choice("direction", kDirections, 0) == 0;
  if (item.has("bandwidth") && item.has("share"))
    item.error("share", "contradiction", "is given together with `bandwidth`", "give one of them");
  const bool changes = item.has("bandwidth") || item.has("share") || item.has("latency");
  if (link.missing && changes)
    item.error("missing", "contradiction", "a missing link has no bandwidth, share or latency",
               "leave them out, or leave `missing` out");
  if (!link.missing && !changes)
    item.error("name", "says-nothing", "nothing is said about this link",
               "give `bandwidth`, `share`, `latency` or `missing: true`");
  item.finish();
  return link;
}

class Check {
 public:
  Check(const ClusterSpec& spec, std::vector<LinkException> links, std::vector<YamlMap>& items)
      : spec_(spec), items_(items) {
    spec_.links.clear();
    bare_.emplace(spec_);
    spec_.links = std::move(links);
  }

  void names_and_clashes() {
    const LinkChoice choice = choose_links(bare_->graph(), spec_.links);
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (choice.count[i] == 0)
        items_[i].error("name", "unknown-link", fmt::format("no link is named {}", in_quotes(name(i))),
                        hint(i));
    for (const LinkChoice::Clash& clash : choice.clashes)
      items_[clash.second].error(
          "name", "duplicate",
          fmt::format("{} means {} as well", in_quotes(name(clash.first)),
                      in_quotes(bare_->link_name(clash.link))),
          "one exception for each link: make the names tell them apart, or use direction: one-way");
    bandwidths(choice);
  }

 private:
  // Refuses bandwidths below the limit of `share`; each exception is reported once.
  void bandwidths(const LinkChoice& choice) {
    std::vector<bool> told(items_.size());
    for (std::uint32_t i = 0; i < choice.by_link.size(); ++i) {
      if (!choice.by_link[i] || told[*choice.by_link[i]]) continue;
      const std::optional<Bandwidth>& bandwidth = spec_.links[*choice.by_link[i]].bandwidth;
      const Bandwidth usual = bare_->link(EdgeId(i)).capacity;
      if (!bandwidth || *bandwidth >= kLeastLinkShare * usual) continue;
      told[*choice.by_link[i]] = true;
      items_[*choice.by_link[i]].error(
          "bandwidth", "out-of-range",
          fmt::format("{} is less than a millionth of the {} that {} would have", human(*bandwidth),
                      human(usual), in_quotes(bare_->link_name(EdgeId(i)))),
          "give it more; a link that is not there is `missing: true`");
    }
  }

  [[nodiscard]] const std::string& name(std::size_t i) const { return spec_.links[i].name; }

  [[nodiscard]] std::string hint(std::size_t i) const {
    std::vector<std::string> names;
    for (std::uint32_t link = 0; link < bare_->link_count(); ++link)
      names.push_back(bare_->link_name(EdgeId(link)));
    if (const auto near = nearest_name(name(i), names)) return fmt::format("did you mean '{}'?", *near);
    std::string text = fmt::format("for instance '{}'", names.front());
    for (std::uint32_t link = 0; link < bare_->link_count(); ++link)
      if (bare_->between_nodes(EdgeId(link))) return text + fmt::format(" or '{}'", names[link]);
    return text;
  }

  ClusterSpec spec_;
  std::vector<YamlMap>& items_;
  std::optional<Cluster> bare_;
};

}  // namespace

std::vector<LinkException> load_links(YamlMap& map, const ClusterSpec* spec, Origins& origins) {
  const YamlNode* list = map.get("links");
  if (list == nullptr) return {};
  const ErrorWatch watch(map.diagnostics());
  if (list->kind != YamlNode::Kind::kSequence) {
    map.error("links", "not-a-list", "expected a list of links",
              "[{name: \"node 3 nic 1 -> leaf 0\", bandwidth: 100 Gb/s}]");
    return {};
  }
  std::vector<LinkException> links;
  std::vector<YamlMap> items;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    items.emplace_back(&list->items[i], fmt::format("{}.{}", map.path_of("links"), i), list->items[i].where,
                       map.diagnostics(), &origins);
    if (items.back().present()) links.push_back(load_link(items.back()));
  }
  if (!watch.clean() || spec == nullptr || links.empty())
    return watch.clean() ? links : std::vector<LinkException>{};
  Check check(*spec, links, items);
  check.names_and_clashes();
  return watch.clean() ? links : std::vector<LinkException>{};
}

}  // namespace stagecraft
