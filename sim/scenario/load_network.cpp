#include "sim/scenario/load_network.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace stagecraft {

namespace {

// Removes `word` and a number from the front of `text`.
std::optional<int> take_number(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return std::nullopt;
  const char* begin = text.data() + word.size();
  int value = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// Do both places contain the same GPUs?
bool same_place(const NodePlace& a, const NodePlace& b, const ClusterSpec* cluster) {
  if (a == b) return true;
  return a.node == b.node && cluster != nullptr && a.node < cluster->server_count() &&
         cluster->gpus_of_server(a.node) == 1;
}

NodePlace load_place(YamlMap& map, std::string_view key, const ClusterSpec* cluster) {
  const ErrorWatch watch(map.diagnostics());
  const std::string text = map.text(key);
  if (!watch.clean()) return {};
  const std::optional<NodePlace> place = parse_place(text);
  if (!place) {
    map.error(key, "no-place", fmt::format("{} is no place in the cluster", in_quotes(text)),
              "write node 3, or node 3 gpu 0");
    return {};
  }
  if (cluster == nullptr) return *place;
  const int nodes = cluster->server_count();
  if (place->node >= nodes)
    map.error(key, "out-of-range", fmt::format("node {} is not one of the cluster's {}", place->node, nodes),
              fmt::format("nodes are 0 to {}", nodes - 1));
  else if (place->gpu && *place->gpu >= cluster->gpus_of_server(place->node))
    map.error(key, "out-of-range",
              fmt::format("gpu {} is not one of the {} of node {}", *place->gpu,
                          cluster->gpus_of_server(place->node), place->node),
              fmt::format("GPUs of a node are 0 to {}", cluster->gpus_of_server(place->node) - 1));
  return *place;
}

BackgroundSpec load_background(YamlMap& map, const ClusterSpec* cluster) {
  BackgroundSpec spec{.from = load_place(map, "from", cluster), .to = load_place(map, "to", cluster)};
  const ErrorWatch watch(map.diagnostics());
  spec.rate = map.bandwidth("rate");
  if (watch.clean() && spec.rate <= Bandwidth(0))
    map.error("rate", "out-of-range", "traffic has a rate above 0", "leave it out where there is none");
  if (map.has("from") && map.has("to") && same_place(spec.from, spec.to, cluster) && watch.clean())
    map.error("to", "contradiction", "traffic from a place to itself crosses no link", "name another place");
  map.finish();
  return spec;
}

}  // namespace

NetworkMode load_mode(YamlMap& map, std::string_view key) {
  return static_cast<NetworkMode>(map.choice(key, {{"closed-form", "flow"}}, 0));
}

std::optional<NodePlace> parse_place(std::string_view text) {
  const std::optional<int> node = take_number(text, "node ");
  if (!node) return std::nullopt;
  NodePlace place{.node = *node};
  if (text.empty()) return place;
  place.gpu = take_number(text, " gpu ");
  if (!place.gpu || !text.empty()) return std::nullopt;
  return place;
}

std::string to_text(const NodePlace& place) {
  return place.gpu ? fmt::format("node {} gpu {}", place.node, *place.gpu)
                   : fmt::format("node {}", place.node);
}

NetworkSpec load_network(YamlMap& root, const ClusterSpec* cluster, Origins& origins) {
  NetworkSpec spec;
  const YamlNode* node = root.get("network");
  if (node == nullptr || node->kind == YamlNode::Kind::kScalar) {
    spec.mode = load_mode(root, "network");
    return spec;
  }
  YamlMap map = root.map("network");
  if (!map.present()) return spec;
  const ErrorWatch watch(map.diagnostics());
  spec.mode = load_mode(map, "mode");
  if (!watch.clean()) spec.mode = NetworkMode::kFlow;  // which takes whatever else is said
  if (map.has("iterations")) {
    spec.iterations = static_cast<int>(map.integer("iterations", {.min = 1, .max = 1000}));
    if (!map.has("jobs"))
      map.error("iterations", "contradiction", "one job alone meets the same in each of its iterations",
                "leave it out, or list other jobs");
  }
  for (const char* key : {"jobs", "placement"}) (void)map.has(key);  // load_jobs() reads them
  const YamlNode* list = map.get("background");
  if (list != nullptr && list->kind != YamlNode::Kind::kSequence) {
    map.error("background", "not-a-list", "is a list of traffic",
              "write [{from: node 0, to: node 1, rate: 10 GB/s}]");
  } else if (list != nullptr) {
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      YamlMap item(&list->items[i], fmt::format("{}.{}", map.path_of("background"), i), list->items[i].where,
                   map.diagnostics(), &origins);
      if (item.present()) spec.background.push_back(load_background(item, cluster));
    }
    if (!spec.shared())
      map.error("background", "contradiction",
                "background traffic shares links, and a closed-form network has none", "use mode: flow");
    else if (!root.has("cluster"))
      map.error("background", "contradiction", "background traffic needs a cluster, and there is none",
                "leave it out, or describe the cluster");
  }
  map.finish();
  return spec;
}

}  // namespace stagecraft
