// Exceptions of links: what names mean, what changes, what is refused.
#include "topology/load_links.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/diagnostic.hpp"
#include "tests/topology/clusters.hpp"
#include "topology/cluster_links.hpp"

namespace stagecraft {
namespace {

using namespace testing_topology;

// 3 nodes of 2 GPUs and 2 NICs on one leaf.
ClusterSpec spec(FabricKind kind = FabricKind::kSingleSwitch) {
  NodeSpec node = round_node();
  node.gpus = node.nics = 2;
  return {.groups = {{node, 3}}, .fabric = round_fabric(kind)};
}

struct Read {
  std::vector<LinkException> links;
  std::string said = "\n";
};

Read read(const std::string& links, const ClusterSpec& cluster = spec()) {
  Diagnostics diagnostics;
  Origins origins;
  const auto root = parse_yaml("links:\n" + links, "bad.yaml", diagnostics);
  YamlMap map(root ? &*root : nullptr, "cluster", {"bad.yaml", 1, 1}, diagnostics, &origins);
  Read read{.links = load_links(map, &cluster, origins)};
  for (const Diagnostic& d : diagnostics.sorted()) read.said += render(d) + "\n";
  return read;
}

Cluster with(const std::string& links, ClusterSpec cluster = spec()) {
  const Read read = ::stagecraft::read(links, cluster);
  EXPECT_EQ(read.said, "\n");
  cluster.links = read.links;
  return Cluster(cluster);
}

const Link* find(const Cluster& cluster, const std::string& name) {
  for (std::uint32_t i = 0; i < cluster.link_count(); ++i)
    if (cluster.link_name(EdgeId(i)) == name) return &cluster.link(EdgeId(i));
  return nullptr;
}

TEST(Matches, TakesAStarForAnything) {
  EXPECT_TRUE(matches("node 1 nic 0 -> leaf 0", "node 1 nic 0 -> leaf 0"));
  EXPECT_TRUE(matches("node * nic 0 -> *", "node 17 nic 0 -> leaf 3"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "abbbc"));
  EXPECT_FALSE(matches("a*b*c", "abbb"));
  EXPECT_FALSE(matches("node 1", "node 11"));
}

TEST(Links, ChangeBothDirectionsUnlessToldOtherwise) {
  const Cluster cluster = with(
      "- {name: node 1 nic 0 -> leaf 0, bandwidth: 4 GB/s, latency: 9 us}\n"
      "- {name: leaf 0 -> node 2 nic *, share: 0.5, direction: one-way}\n");
  EXPECT_EQ(find(cluster, "node 1 nic 0 -> leaf 0")->capacity, 4_GBps);
  EXPECT_EQ(find(cluster, "leaf 0 -> node 1 nic 0")->capacity, 4_GBps);
  EXPECT_EQ(find(cluster, "leaf 0 -> node 1 nic 0")->latency, 9us);
  EXPECT_EQ(find(cluster, "leaf 0 -> node 2 nic 1")->capacity, 5_GBps);
  EXPECT_EQ(find(cluster, "node 2 nic 1 -> leaf 0")->capacity, 10_GBps);
  EXPECT_EQ(find(cluster, "node 0 nic 1 -> leaf 0")->capacity, 10_GBps);
}

// Without its NIC a GPU sends over NVLink to the other GPU and its NIC; links keep dense numbers.
TEST(Links, ThatAreMissingAreAvoided) {
  const Cluster cluster = with("- {name: node 1 nic 0 -> leaf 0, missing: true}\n");
  EXPECT_EQ(find(cluster, "node 1 nic 0 -> leaf 0"), nullptr);
  EXPECT_EQ(find(cluster, "leaf 0 -> node 1 nic 0"), nullptr);
  EXPECT_EQ(cluster.link_count(), round_cluster(3, round_fabric(), spec().groups[0].node).link_count() - 2);
  const auto route = cluster.route(gpu(2), gpu(4));
  ASSERT_EQ(route.size(), 6u);
  EXPECT_EQ(cluster.link_name(route[1]), "node 1 nvswitch -> gpu 1");
  EXPECT_EQ(cluster.link_name(route[3]), "node 1 nic 1 -> leaf 0");
  EXPECT_EQ(cluster.route(gpu(0), gpu(4)).size(), 4u);
}

// One of two spines has lost its cable to leaf 0: everything from there takes the other.
TEST(Links, ThatAreMissingLeaveTheOtherSpines) {
  ClusterSpec cluster = spec(FabricKind::kFatTree);
  cluster.fabric.nodes_per_leaf = 1;
  cluster.fabric.spines = 2;
  const Cluster cut = with("- {name: leaf 0 -> spine 1, missing: true, direction: one-way}\n", cluster);
  for (const LinkShare& share : cut.spread(gpu(0), gpu(2))) EXPECT_EQ(share.share, 1);
  EXPECT_EQ(cut.spread(gpu(0), gpu(2)).size(), 6u);
  EXPECT_EQ(cut.spread(gpu(2), gpu(0)).size(), 8u);
}

TEST(LoadLinks, HelpsWithNames) {
  EXPECT_EQ(read("- {name: node 1 nic 0 -> leav 0, share: 0.5}\n- {name: switch 9, share: 0.5}\n").said, R"(
bad.yaml:2:10: error: cluster.links.0.name: no link is named 'node 1 nic 0 -> leav 0'
  hint: did you mean 'node 1 nic 0 -> leaf 0'?
bad.yaml:3:10: error: cluster.links.1.name: no link is named 'switch 9'
  hint: for instance 'node 0 gpu 0 -> nvswitch' or 'node 0 nic 0 -> leaf 0'
)");
}

TEST(LoadLinks, RefusesALinkThatIsMeantTwice) {
  EXPECT_EQ(
      read("- {name: node * nic 0 -> *, share: 0.5}\n- {name: leaf 0 -> node 1 nic 0, missing: true}\n").said,
      R"(
bad.yaml:3:10: error: cluster.links.1.name: 'node * nic 0 -> *' means 'leaf 0 -> node 1 nic 0' as well
  hint: one exception for each link: make the names tell them apart, or use direction: one-way
)");
}

TEST(LoadLinks, RefusesWhatContradictsItself) {
  EXPECT_EQ(read("- {name: a, share: 0.5, bandwidth: 1 GB/s}\n"
                 "- {name: b, missing: true, latency: 1 us}\n"
                 "- {name: c}\n"
                 "- {name: d, bandwidth: 0 GB/s}\n"
                 "- {name: e, share: 1.5, direction: up}\n"
                 "- {name: f, latency: 2 h}\n")
                .said,
            R"(
bad.yaml:2:20: error: cluster.links.0.share: is given together with `bandwidth`
  hint: give one of them
bad.yaml:3:22: error: cluster.links.1.missing: a missing link has no bandwidth, share or latency
  hint: leave them out, or leave `missing` out
bad.yaml:4:10: error: cluster.links.2.name: nothing is said about this link
  hint: give `bandwidth`, `share`, `latency` or `missing: true`
bad.yaml:5:24: error: cluster.links.3.bandwidth: must be above 0
  hint: a link that is not there is `missing: true`
bad.yaml:6:20: error: cluster.links.4.share: 1.5 is more than 1, the largest allowed
bad.yaml:6:36: error: cluster.links.4.direction: 'up' is not known here
  hint: one of both, one-way
bad.yaml:7:22: error: cluster.links.5.latency: 2.00 h is more than an hour
  hint: latencies are microseconds
)");
}

TEST(LoadLinks, WantsAList) {
  EXPECT_EQ(read("  name: a\n").said, R"(
bad.yaml:2:3: error: cluster.links: expected a list of links
  hint: [{name: "node 3 nic 1 -> leaf 0", bandwidth: 100 Gb/s}]
)");
}

}  // namespace
}  // namespace stagecraft
