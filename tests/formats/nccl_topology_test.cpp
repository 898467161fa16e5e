#include "formats/nccl_topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/units.hpp"
#include "tests/formats/topology_imports.hpp"
#include "topology/cluster_spec.hpp"
#include "topology/load_cluster.hpp"

namespace stagecraft {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string gpu(int index, const std::string& links) {
  return "<pci busid=\"0000:0" + std::to_string(index) +
         ":00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" link_speed=\"32 GT/s\" "
         "link_width=\"16\"><gpu dev=\"" +
         std::to_string(index) + "\" sm=\"90\">" + links + "</gpu></pci>";
}

std::string nvlink(int target, int count) {
  return "<nvlink target=\"0000:0" + std::to_string(target) + ":00.0\" count=\"" + std::to_string(count) +
         "\" tclass=\"0x030200\"/>";
}

std::string machine(const std::string& devices) {
  return "<system version=\"1\"><cpu numaid=\"0\">" + devices + "</cpu></system>";
}

// The rates of formats/gpu_models.cpp and formats/nccl_machine.cpp: 18 links of 20.6 GB/s are 370.8 GB/s,
// PCIe 5.0 x16 is 16 * 240 / 80 = 48 GB/s, 400000 Mbit/s are 400 Gb/s.
TEST(NcclTopology, DumpOfAnHgxGivesWholeNode) {
  const Import import = import_of_file("nccl_topo/made_hgx8_dump.xml");
  EXPECT_THAT(import.messages, IsEmpty());
  EXPECT_EQ(import.at("cluster.node.device"), "H100-SXM5-80GB");
  EXPECT_EQ(import.at("cluster.node.gpus"), "8");
  EXPECT_EQ(import.at("cluster.node.nvlink"), "370.8 GB/s");
  EXPECT_EQ(import.at("cluster.node.nics"), "8");
  EXPECT_EQ(import.at("cluster.node.nic_bandwidth"), "400 Gb/s");
  EXPECT_EQ(import.at("cluster.node.pcie"), "48 GB/s");
}

// System: two of four V100 on NVLinks. Expectation: the line that asks for the rate offers six links of 25 GB/s.
TEST(NcclTopology, AnOpenRateIsThatOfTheGeneration) {
  std::string devices = gpu(0, nvlink(1, 2)) + gpu(1, nvlink(0, 2)) + gpu(2, "") + gpu(3, "");
  for (const auto& [hopper, volta] : {std::pair("sm=\"90\"", "sm=\"70\""), {"0x2330", "0x1db1"}})
    for (std::size_t at = devices.find(hopper); at != std::string::npos; at = devices.find(hopper))
      devices.replace(at, std::string(hopper).size(), volta);
  const Import import = import_of(machine(devices));
  ASSERT_TRUE(import.fragment);
  EXPECT_THAT(import.fragment->missing, Contains(HasSubstr("nvlink: 150 GB/s")));
}

TEST(NcclTopology, ImportedNodeLoads) {
  const Import import = import_of_file("nccl_topo/made_hgx8_dump.xml");
  Diagnostics diagnostics;
  const auto tree = parse_yaml(to_yaml(*import.fragment), "fragment", diagnostics);
  ASSERT_TRUE(tree);
  YamlMap node(tree->find("cluster")->find("node"), "cluster.node", {}, diagnostics);
  const NodeSpec spec = load_node(node);
  EXPECT_FALSE(diagnostics.has_errors());
  EXPECT_EQ(spec.gpus, 8);
  EXPECT_EQ(spec.nic_bandwidth, Bandwidth(50e9));
  EXPECT_EQ(spec.default_profile, "h100-sxm5-80gb");
}

TEST(NcclTopology, VirtualMachineHidesSwitchAndPcieSpeed) {
  const Import import = import_of_file("nccl_topo/made_vm_2gpu_dump.xml");
  EXPECT_THAT(import.messages, ElementsAre(HasSubstr("PCIe speed of GPU 0 is not told: 12 GB/s is assumed")));
  EXPECT_EQ(import.at("cluster.node.gpus"), "2");
  EXPECT_EQ(import.at("cluster.node.nvlink"), "370.8 GB/s");
  EXPECT_EQ(import.at("cluster.node.nics"), "1");
  EXPECT_EQ(import.at("cluster.node.nic_bandwidth"), "100 Gb/s");
  EXPECT_EQ(import.at("cluster.node.pcie"), "12 GB/s");
}

// Two GPUs below each of four switches; with a switch of its own a GPU shares none.
TEST(NcclTopology, SwitchesThatGpusShareAreCounted) {
  EXPECT_EQ(import_of_file("nccl_topo/aws_p4d-24xl-topo.xml").at("cluster.node.gpus_per_pcie_switch"), "2");
  EXPECT_EQ(import_of_file("nccl_topo/made_hgx8_dump.xml").at("cluster.node.gpus_per_pcie_switch"), "absent");
}

TEST(NcclTopology, HandWrittenFilesTellGpusByClass) {
  struct Sample {
    const char* file;
    const char* nics;
    const char* pcie;
  };
  for (const Sample& sample :
       {Sample{"azure_ndv5-topo.xml", "8", "48 GB/s"}, Sample{"azure_ndv4-topo.xml", "8", "24 GB/s"},
        Sample{"aws_p4d-24xl-topo.xml", "4", "12 GB/s"}}) {
    SCOPED_TRACE(sample.file);
    const Import import = import_of_file(std::string("nccl_topo/") + sample.file);
    EXPECT_THAT(import.messages, IsEmpty());
    EXPECT_EQ(import.at("cluster.node.gpus"), "8");
    EXPECT_EQ(import.at("cluster.node.nics"), sample.nics);
    EXPECT_EQ(import.at("cluster.node.pcie"), sample.pcie);
    EXPECT_EQ(import.at("cluster.node.nvlink"), "absent");
    EXPECT_EQ(import.at("cluster.node.nic_bandwidth"), "absent");
  }
}

TEST(NcclTopology, WhatTheUserAddsFillsIn) {
  const Import import =
      import_of_file("nccl_topo/azure_ndv4-topo.xml", {.device = "A100-SXM4-80GB", .link = Bandwidth(25e9)});
  EXPECT_EQ(import.at("cluster.node.device"), "A100-SXM4-80GB");
  EXPECT_EQ(import.at("cluster.node.profile"), "a100-sxm4-80gb");
  EXPECT_EQ(import.at("cluster.node.nic_bandwidth"), "200 Gb/s");
}

TEST(NcclTopology, WhatTheUserAddsContradictsADumpThatSaysOtherwise) {
  const char* dump = "nccl_topo/made_hgx8_dump.xml";
  EXPECT_THAT(
      import_of_file(dump, {.device = "A100-SXM4-80GB"}).messages,
      ElementsAre(HasSubstr("error: --device: A100-SXM4-80GB is asked for, and the file says PCI device "
                            "0x2330, of H100-SXM5-80GB")));
  EXPECT_THAT(
      import_of_file(dump, {.link = Bandwidth(25e9)}).messages,
      ElementsAre(HasSubstr("error: --link: 200 Gb/s is asked for, and the file says net speed 400 Gb/s")));
  const Import same = import_of_file(dump, {.device = "h100-sxm5-80gb", .link = Bandwidth(50e9)});
  EXPECT_THAT(same.messages, IsEmpty());
  EXPECT_EQ(same.at("cluster.node.device"), "H100-SXM5-80GB");
}

TEST(NcclTopology, LinksToItselfHaveUnknownPeer) {
  const Import import = import_of_file("nccl_topo/azure_ncv4-topo.xml");
  EXPECT_THAT(import.messages, testing::Contains(HasSubstr("48 NVLinks of GPU 0-3 lead to the GPU itself")));
  EXPECT_EQ(import.at("cluster.node.gpus"), "4");
  EXPECT_EQ(import.at("cluster.node.nvlink"), "absent");
}

TEST(NcclTopology, GraphsAndRcclAreRefusedByName) {
  const Import graphs = import_of_file("nccl_topo/azure_ncv4-graph.xml");
  EXPECT_FALSE(graphs.fragment);
  EXPECT_THAT(graphs.messages, ElementsAre(HasSubstr("rings and trees that NCCL chose")));
  const Import rccl = import_of_file("nccl_topo/made_version2.xml");
  EXPECT_FALSE(rccl.fragment);
  EXPECT_THAT(rccl.messages, ElementsAre(HasSubstr("RCCL")));
}

// Three GPUs, each with 6 links to both others: 12 links of 20.6 GB/s.
TEST(NcclTopology, FullMeshCountsAllLinksOfGpu) {
  const Import import =
      import_of(machine(gpu(0, nvlink(1, 6) + nvlink(2, 6)) + gpu(1, nvlink(0, 6) + nvlink(2, 6)) +
                        gpu(2, nvlink(0, 6) + nvlink(1, 6))));
  EXPECT_EQ(import.at("cluster.node.nvlink"), "247.2 GB/s");
}

TEST(NcclTopology, PartialMeshIsLeftToTheUser) {
  const Import import = import_of(machine(gpu(0, nvlink(1, 6)) + gpu(1, nvlink(0, 6)) + gpu(2, "")));
  EXPECT_EQ(import.at("cluster.node.nvlink"), "absent");
  EXPECT_THAT(import.messages, ElementsAre(HasSubstr("do not join every GPU")));
}

TEST(NcclTopology, SlowerNicsAreLeftAside) {
  const Import import = import_of(
      machine(gpu(0, "") + "<nic><net name=\"ib0\" speed=\"400000\"/><net name=\"ib1\" speed=\"400000\"/>"
                           "<net name=\"eth0\" speed=\"25000\"/></nic>"));
  EXPECT_EQ(import.at("cluster.node.nics"), "2");
  EXPECT_THAT(import.messages, ElementsAre(HasSubstr("eth0")));
}

TEST(NcclTopology, NicWithoutSpeedIsMissing) {
  const Import import = import_of(machine(gpu(0, "") + "<nic><net name=\"ib0\" speed=\"-1\"/></nic>"));
  EXPECT_EQ(import.at("cluster.node.nic_bandwidth"), "absent");
  EXPECT_THAT(import.messages, ElementsAre(HasSubstr("1 of 1 NICs do not tell their speed")));
}

TEST(NcclTopology, NegativeSpeedOtherThanLinuxsUnknownIsRefused) {
  const Import import = import_of(machine(gpu(0, "") + "<nic><net name=\"ib0\" speed=\"-400000\"/></nic>"));
  EXPECT_THAT(import.messages, ElementsAre(HasSubstr("net.speed: '-400000' is no speed in Mbit/s")));
}

TEST(NcclTopology, FusedHostsAreToldApart) {
  const Import import = import_of("<system version=\"1\"><cpu host_hash=\"0x1\">" + gpu(0, "") +
                                  "</cpu><cpu host_hash=\"0x2\">" + gpu(1, "") + "</cpu></system>");
  EXPECT_EQ(import.at("cluster.node.gpus"), "2");
  EXPECT_THAT(import.messages, ElementsAre(HasSubstr("2 hosts are fused")));
}

TEST(NcclTopology, WrongAttributesAreToldAllAtOnce) {
  const Import import = import_of(
      "<system version=\"1\">\n<cpu>\n"
      "<pci class=\"0x060400\"/>\n"
      "<pci busid=\"0\" class=\"0x030200\"><gpu dev=\"x\" sm=\"90\"><nvlink target=\"1\"/></gpu></pci>\n"
      "<nic><net speed=\"fast\"/></nic>\n</cpu></system>");
  EXPECT_FALSE(import.fragment);
  EXPECT_THAT(import.messages, ElementsAre(HasSubstr("topo:3:1: error: pci.busid: is missing"),
                                           HasSubstr("topo:4:33: error: gpu.dev: 'x'"),
                                           HasSubstr("error: nvlink.count: is missing"),
                                           HasSubstr("topo:5:6: error: net.speed: 'fast'")));
}

TEST(NcclTopology, MachineWithoutGpusIsRefused) {
  EXPECT_THAT(import_of("<system version=\"1\"><cpu/></system>").messages,
              ElementsAre(HasSubstr("has no GPU")));
}

}  // namespace
}  // namespace stagecraft
