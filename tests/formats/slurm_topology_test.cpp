#include "formats/slurm_topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "formats/hostlist.hpp"
#include "tests/formats/topology_imports.hpp"

namespace stagecraft {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Hostlist, RangesKeepTheirZeros) {
  EXPECT_THAT(expand_hostlist("n[08-10],m7", 100).names, ElementsAre("n08", "n09", "n10", "m7"));
  EXPECT_THAT(expand_hostlist("n[9-10,20]x", 100).names, ElementsAre("n9x", "n10x", "n20x"));
}

TEST(Hostlist, BracketGroupsMultiply) {
  EXPECT_THAT(expand_hostlist("r[1-2]n[1-2]", 100).names, ElementsAre("r1n1", "r1n2", "r2n1", "r2n2"));
}

TEST(Hostlist, MistakesAreNamed) {
  EXPECT_EQ(expand_hostlist("n[1-2", 100).mistake, "'[' is not closed");
  EXPECT_EQ(expand_hostlist("n[2-1]", 100).mistake, "'2-1' is no range of numbers");
  EXPECT_EQ(expand_hostlist("n[]", 100).mistake, "'' is no range of numbers");
  EXPECT_EQ(expand_hostlist("a,,b", 100).mistake, "a name is empty");
  EXPECT_EQ(expand_hostlist("n]", 100).mistake, "'n]' is no name");
  EXPECT_EQ(expand_hostlist("n[1-100]", 99).mistake, "more than 99 names");
  EXPECT_EQ(expand_hostlist("n[1-999999999][1-999999999]", 99).mistake, "more than 99 names");
}

TEST(SlurmTopology, TreeOfThreeLevels) {
  const Import import = import_of_file("slurm/made_tree.conf", {.link = Bandwidth(50e9)});
  EXPECT_THAT(import.messages, IsEmpty());
  EXPECT_EQ(import.at("cluster.nodes"), "64");
  EXPECT_EQ(import.at("cluster.fabric.kind"), "fat-tree");
  EXPECT_EQ(import.at("cluster.fabric.nodes_per_leaf"), "16");
  EXPECT_EQ(import.at("cluster.fabric.nodes_per_pod"), "32");
  EXPECT_EQ(import.at("cluster.fabric.nic_bandwidth"), "400 Gb/s");
  EXPECT_THAT(import.fragment->head, Contains("  leaf01: gpu[0017-0024,0025-0032]"));
}

TEST(SlurmTopology, ForestAsksWhatJoinsItsTrees) {
  const Import import = import_of_file("slurm/made_forest.conf");
  EXPECT_THAT(import.messages, ElementsAre(HasSubstr("4 to 8 nodes"), HasSubstr("3 trees share no root")));
  EXPECT_EQ(import.at("cluster.nodes"), "28");
  EXPECT_EQ(import.at("cluster.fabric.kind"), "absent");
}

TEST(SlurmTopology, BlocksAreGroupsOfRails) {
  const Import import = import_of_file("slurm/made_block.conf");
  EXPECT_THAT(import.messages, IsEmpty());
  EXPECT_EQ(import.at("cluster.nodes"), "36");
  EXPECT_EQ(import.at("cluster.fabric.kind"), "rail-optimized");
  EXPECT_EQ(import.at("cluster.fabric.nodes_per_leaf"), "18");
}

TEST(SlurmTopology, YamlGivesTheDefaultOfTheCluster) {
  const Import import = import_of_file("slurm/made_topology.yaml");
  EXPECT_THAT(import.messages, IsEmpty());
  EXPECT_EQ(import.at("cluster.nodes"), "8");
  EXPECT_EQ(import.at("cluster.fabric.nodes_per_leaf"), "4");
  EXPECT_THAT(import.fragment->ignored, Contains(HasSubstr("racks")));
}

TEST(SlurmTopology, OneSwitchIsOneSwitch) {
  const Import import = import_of("switchname=s nodes=n[1-4]\n");
  EXPECT_EQ(import.at("cluster.fabric.kind"), "single-switch");
  EXPECT_EQ(import.at("cluster.nodes"), "4");
}

TEST(SlurmTopology, LinesMayBeContinued) {
  EXPECT_EQ(import_of("SwitchName=s \\\n  Nodes=n[1-4]").at("cluster.nodes"), "4");
}

TEST(SlurmTopology, WrongTreesAreRefused) {
  const auto first = [](const std::string& text) {
    const Import import = import_of(text);
    EXPECT_FALSE(import.fragment);
    return import.messages.empty() ? std::string() : import.messages.front();
  };
  EXPECT_THAT(first("SwitchName=a Switches=b\nSwitchName=b Switches=a\n"), HasSubstr("below themselves"));
  EXPECT_THAT(first("SwitchName=a Switches=b\n"),
              HasSubstr("topo:1:1: error: switch 'b' is defined nowhere"));
  EXPECT_THAT(first("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n"),
              HasSubstr("topo:2:1: error: switch 'a' is defined twice"));
  EXPECT_THAT(first("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\n"),
              HasSubstr("node 'n1' is below a leaf already"));
  EXPECT_THAT(first("SwitchName=a Switches=c\nSwitchName=b Switches=c\nSwitchName=c Nodes=n\n"),
              HasSubstr("below two others"));
  EXPECT_THAT(first("SwitchName=a\n"), HasSubstr("neither switches nor nodes"));
  EXPECT_THAT(first("SwitchName=a Nodes=n1 Switch=b\n"), HasSubstr("'Switch' is no key of topology.conf"));
  EXPECT_THAT(first("SwitchName=a Nodes=n[1\n"), HasSubstr("error: Nodes: 'n[1': '[' is not closed"));
  for (const std::string& endless : {std::string(300, 'n'), "n" + std::string(300, '0') + "[1-100000]"})
    EXPECT_THAT(first("SwitchName=a Nodes=" + endless + "\n"), HasSubstr("a name has more than 255 letters"));
  std::string groups = "n[1-9]";
  for (int i = 0; i < 300; ++i) groups += "[1]";
  EXPECT_THAT(first("SwitchName=a Nodes=" + groups + "\n"), HasSubstr("a name has more than 255 letters"));
  EXPECT_THAT(first("SwitchName=a Nodes=n\nBlockName=b Nodes=m\n"), HasSubstr("switches and blocks"));
  EXPECT_THAT(first("BlockName=b Nodes=m\nBlockSizes=x,30\n"),
              HasSubstr("BlockSizes: 'x' is no number of nodes"));
}

TEST(SlurmTopology, KindsThatAreNotModelledAreRefusedByName) {
  EXPECT_THAT(import_of("- topology: t\n  torus3d: {}\n").messages,
              ElementsAre(HasSubstr("torus3d: this kind of topology")));
  EXPECT_THAT(import_of("- topology: a\n- topology: b\n").messages,
              ElementsAre(HasSubstr("none of 2 topologies")));
}

}  // namespace
}  // namespace stagecraft
