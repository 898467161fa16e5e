#include "formats/nvidia_smi.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/formats/topology_imports.hpp"

namespace stagecraft {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(NvidiaSmi, RespacedMatrixOfEightGpusIsRead) {
  const Import import = import_of_file("nvidia_smi/topo_m_b200_8gpu_8nic_respaced.txt");
  EXPECT_THAT(import.messages, IsEmpty());
  EXPECT_EQ(import.at("cluster.node.gpus"), "8");
  EXPECT_EQ(import.at("cluster.node.nics"), "8");
  EXPECT_EQ(import.at("cluster.node.nvlink"), "absent");
  EXPECT_THAT(import.fragment->missing, Contains(HasSubstr("18 links a GPU (NV18)")));
  EXPECT_THAT(import.fragment->head, Contains("  GPU0: NUMA node 0, nearest NIC0 mlx5_0, NIC1 mlx5_1 (PIX)"));
  EXPECT_THAT(import.fragment->head, Contains("  GPU4: NUMA node 1, nearest NIC4 mlx5_4, NIC5 mlx5_5 (PIX)"));
}

TEST(NvidiaSmi, TabbedMatrixOfFourGpusIsRead) {
  const Import import = import_of_file("nvidia_smi/made_topo_m_tabs.txt");
  EXPECT_THAT(import.messages, IsEmpty());
  EXPECT_EQ(import.at("cluster.node.gpus"), "4");
  EXPECT_EQ(import.at("cluster.node.nics"), "2");
  EXPECT_THAT(import.fragment->missing, Contains(HasSubstr("12 links a GPU (NV12)")));
}

// 18 links of 50 GB/s on B200.
TEST(NvidiaSmi, DeviceTellsTheRateOfNvlinks) {
  const Import import = import_of_file("nvidia_smi/topo_m_b200_8gpu_8nic_respaced.txt",
                                       {.device = "B200-SXM-180GB", .link = Bandwidth(50e9)});
  EXPECT_EQ(import.at("cluster.node.nvlink"), "900 GB/s");
  EXPECT_EQ(import.at("cluster.node.nic_bandwidth"), "400 Gb/s");
}

// As nvidia-smi and Kubernetes name it.
TEST(NvidiaSmi, ADeviceIsKnownByTheNameOfItsProduct) {
  for (const char* name : {"NVIDIA B200", "NVIDIA-B200", "b200", "b200-sxm-180gb"}) {
    const Import import = import_of_file("nvidia_smi/topo_m_b200_8gpu_8nic_respaced.txt", {.device = name});
    EXPECT_EQ(import.at("cluster.node.device"), "B200-SXM-180GB") << name;
    EXPECT_EQ(import.at("cluster.node.nvlink"), "900 GB/s") << name;
    EXPECT_EQ(import.at("cluster.node.profile"), "b200-sxm-180gb") << name;
  }
}

TEST(NvidiaSmi, AnUnknownDeviceIsSaid) {
  const Import import =
      import_of_file("nvidia_smi/topo_m_b200_8gpu_8nic_respaced.txt", {.device = "H100-SXM5-80G"});
  EXPECT_EQ(import.at("cluster.node.device"), "H100-SXM5-80G");
  EXPECT_THAT(import.messages, Contains(AllOf(HasSubstr("warning: --device: 'H100-SXM5-80G' is no GPU"),
                                              HasSubstr("did you mean 'H100-SXM5-80GB'?"))));
}

// 18 links of 50 GB/s: no rate is written of a device that nobody knows.
TEST(NvidiaSmi, DevicesWithAProfileAreKnown) {
  const std::string four = "GPU0 GPU1\nGPU0 X NV18\nGPU1 NV18 X\n";
  for (const char* name : {"NVIDIA GB200", "GB200-186GB"}) {
    const Import gb200 = import_of(four, {.device = name, .link = {}});
    EXPECT_THAT(gb200.messages, IsEmpty());
    EXPECT_EQ(gb200.at("cluster.node.nvlink"), "900 GB/s");
    EXPECT_EQ(gb200.at("cluster.node.profile"), "gb200-186gb");
    EXPECT_THAT(gb200.fragment->missing, Contains(testing::StartsWith("pcie: 225 GB/s ")));
  }
  EXPECT_EQ(import_of(four, {.device = "NVIDIA GB300", .link = {}}).at("cluster.node.profile"),
            "gb300-288gb");
  EXPECT_EQ(import_of(four, {.device = "NVIDIA B300", .link = {}}).at("cluster.node.profile"),
            "b300-sxm-288gb");
  for (const char* name : {"NVIDIA H100 80GB HBM2e", "H100-SXM5-96GB-HBM2e"})
    EXPECT_EQ(import_of(four, {.device = name, .link = {}}).at("cluster.node.nvlink"), "450 GB/s") << name;
  EXPECT_EQ(import_of(four, {.device = "H100-SXM5-96GB-HBM2e", .link = {}}).at("cluster.node.profile"),
            "h100-hbm2e-96gb-500w");
  EXPECT_THAT(import_of(four, {.device = "NVIDIA X1", .link = {}}).fragment->missing,
              Contains(testing::StartsWith("nvlink: … ")));
}

// System: two GPUs with a NIC each behind their switches, and one of storage on the CPU.
TEST(NvidiaSmi, NicsOfStorageAreNotTheGpus) {
  const Import import = import_of(
      "GPU0 GPU1 NIC0 NIC1 NIC2\nGPU0 X NV12 PXB NODE SYS\nGPU1 NV12 X SYS NODE PIX\nNIC0 PXB SYS X NODE "
      "SYS\n"
      "NIC1 NODE NODE NODE X SYS\nNIC2 SYS PIX SYS SYS X\n\nNIC Legend:\n\n  NIC1: mlx5_4\n");
  EXPECT_THAT(import.messages, IsEmpty());
  EXPECT_EQ(import.at("cluster.node.nics"), "2");
  EXPECT_THAT(to_yaml(*import.fragment),
              HasSubstr("nics: 2  # those that are PIX or PXB to a GPU; not NIC1 mlx5_4\n"));
  // Where a GPU has none of its own nobody can tell.
  const Import far = import_of(
      "GPU0 GPU1 NIC0 NIC1 NIC2\nGPU0 X NV12 PHB PHB SYS\nGPU1 NV12 X SYS SYS PIX\nNIC0 PHB SYS X NODE SYS\n"
      "NIC1 PHB SYS NODE X SYS\nNIC2 SYS PIX SYS SYS X\n");
  EXPECT_EQ(far.at("cluster.node.nics"), "3");
  EXPECT_THAT(far.messages, ElementsAre(HasSubstr("warning: all 3 NICs are counted for 2 GPUs")));
}

// Three pairs of 6 links are the 18 that a GPU has: no switch; 3 pairs of 12 are more, so there is one.
TEST(NvidiaSmi, MoreLinksThanGpuHasMeanSwitch) {
  const std::string head = "\tGPU0\tGPU1\tGPU2\tGPU3\n";
  const auto matrix = [&](const std::string& nv) {
    return head + "GPU0 X " + nv + " " + nv + " " + nv + "\nGPU1 " + nv + " X " + nv + " " + nv + "\nGPU2 " +
           nv + " " + nv + " X " + nv + "\nGPU3 " + nv + " " + nv + " " + nv + " X\n";
  };
  EXPECT_EQ(import_of(matrix("NV6"), {.device = "H100-SXM5-80GB"}).at("cluster.node.nvlink"), "450 GB/s");
  EXPECT_EQ(import_of(matrix("NV12"), {.device = "A100-SXM4-80GB"}).at("cluster.node.nvlink"), "300 GB/s");
  EXPECT_EQ(import_of(matrix("PHB"), {.device = "A100-PCIe-80GB"}).at("cluster.node.nvlink"), "absent");
}

TEST(NvidiaSmi, TerminalCodesAreTakenOut) {
  const Import import = import_of(
      "\x1b[4m\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\x1b[0m\nGPU0\t X \tSYS\tPIX\t0-3, 8\nGPU1\tSYS\t X "
      "\tSYS\t0\n"
      "mlx5_0\tPIX\tSYS\t X \n");
  EXPECT_THAT(import.messages, IsEmpty());
  EXPECT_EQ(import.at("cluster.node.gpus"), "2");
  EXPECT_THAT(import.fragment->head, Contains("  GPU0: nearest mlx5_0 (PIX)"));
  EXPECT_EQ(import.at("cluster.node.nvlink"), "absent");
}

// NVLink-C2C is no PCIe: nothing is near, and nothing is said.
TEST(NvidiaSmi, NothingIsConcludedWhereEveryNicIsFar) {
  const Import import = import_of("GPU0 NIC0 NIC1\nGPU0 X SYS SYS\nNIC0 SYS X PIX\nNIC1 SYS PIX X\n");
  EXPECT_THAT(import.fragment->head, ElementsAre(HasSubstr("1 GPU, 2 NICs"), "  GPU0"));
}

TEST(NvidiaSmi, UnlikePairsAreLeftToTheUser) {
  const Import import = import_of("GPU0 GPU1 GPU2\nGPU0 X NV4 SYS\nGPU1 NV4 X SYS\nGPU2 SYS SYS X\n");
  EXPECT_THAT(import.messages,
              ElementsAre(AllOf(HasSubstr("do not join every GPU"), HasSubstr("nvlink_pairs"))));
  EXPECT_EQ(import.at("cluster.node.nvlink"), "absent");
  // The example is of the device: 18 links of 50 GB/s; open where nobody names one.
  const auto example = [](const std::string& device) {
    const Import unlike = import_of("GPU0 GPU1 GPU2\nGPU0 X NV4 SYS\nGPU1 NV4 X SYS\nGPU2 SYS SYS X\n",
                                    {.device = device, .link = {}});
    return unlike.fragment ? unlike.fragment->missing : std::vector<std::string>{};
  };
  EXPECT_THAT(example("B200-SXM-180GB"), testing::Contains(HasSubstr("nvlink: 900 GB/s")));
  EXPECT_THAT(import.fragment->missing, testing::Contains(HasSubstr("nvlink: …")));
}

// What the device has is no question.
TEST(NvidiaSmi, OffersThePcieRateOfTheDeviceAndNoneOfAnother) {
  const auto offered = [](const std::optional<std::string>& device) {
    const Import import = import_of("GPU0 GPU1\nGPU0 X NV12\nGPU1 NV12 X\n", {.device = device, .link = {}});
    return import.fragment ? import.fragment->missing : std::vector<std::string>{};
  };
  using testing::StartsWith;
  EXPECT_THAT(offered("A100-SXM4-80GB"), Contains(StartsWith("pcie: 31.5 GB/s ")));
  EXPECT_THAT(offered("H100-SXM5-80GB"), Contains(StartsWith("pcie: 63 GB/s ")));
  EXPECT_THAT(offered("V100-SXM2-32GB"), Contains(StartsWith("pcie: 15.75 GB/s ")));
  EXPECT_THAT(offered(std::nullopt), Contains(StartsWith("pcie: … ")));
  EXPECT_THAT(offered(std::nullopt), Contains(StartsWith("device: … ")));
}

TEST(NvidiaSmi, BrokenMatricesAreRefused) {
  EXPECT_THAT(import_of("GPU0 GPU1\nGPU0 X NV4\n").messages, ElementsAre(HasSubstr("1 of 2 rows are there")));
  EXPECT_THAT(import_of("GPU0 GPU1\nGPU0 X\n").messages,
              ElementsAre(HasSubstr("topo:2: error: 1 of 2 columns of 'GPU0'")));
  EXPECT_THAT(import_of("GPU0 GPU1\nGPU1 NV4 X\n").messages,
              ElementsAre(HasSubstr("the row of 'GPU1' stands where 'GPU0'")));
  EXPECT_THAT(import_of("GPU0 GPU1\nGPU0 X NV4\nGPU1 NV8 X\n").messages,
              ElementsAre(HasSubstr("NV8 one way and NV4 the other")));
  EXPECT_THAT(import_of("GPU0 GPU1\nGPU0 X FAST\nGPU1 FAST X\n").messages,
              ElementsAre(HasSubstr("'FAST' stands between")));
}

}  // namespace
}  // namespace stagecraft
