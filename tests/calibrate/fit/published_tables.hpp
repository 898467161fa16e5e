// The published tables in calibrate/published/data as points for the fits.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/yaml.hpp"
#include "calibrate/fit/curve_fits.hpp"
#include "calibrate/fit/gemm_fit.hpp"
#include "tests/published_data.hpp"

namespace stagecraft {

using published::at;
using published::count;
using published::number;

// OpenXLA: m, n, k and TFLOP/s in bf16 of stand-alone calls.
inline std::vector<GemmPoint> xla_gemms(const std::string& name) {
  std::vector<GemmPoint> points;
  const YamlNode table = published::table(name);
  for (const YamlNode& row : at(table, "rows").items) {
    const GemmSize size{.m = count(row.items[0]), .n = count(row.items[1]), .k = count(row.items[2])};
    const double flops = 2.0 * static_cast<double>(size.m * size.n * size.k);
    points.push_back({.size = size, .seconds = flops / (number(row.items[3]) * 1e12)});
  }
  return points;
}

inline std::vector<GemmPoint> xla_h100_gemms() {
  return xla_gemms("xla_gemm_h100");
}

inline std::vector<GemmPoint> xla_b200_gemms() {
  return xla_gemms("xla_gemm_b200");
}

inline GemmDevice b200() {  // data sheet; 0.67 of it is SimuMax's fit
  return {.sms = 148, .peak = FlopRate(2250e12), .memory_bandwidth = Bandwidth(0.67 * 8e12)};
}

inline GemmDevice h100() {  // data sheet; 0.85 of it is what the grid of docs/calibration.md reaches
  return {.sms = 132, .peak = FlopRate(989e12), .memory_bandwidth = Bandwidth(0.85 * 3.35e12)};
}

// SimuMax: m, k, n, layout, -, -, share of 312 TFLOP/s of kernels on an A100-PCIe.
inline std::vector<GemmPoint> simumax_a100_gemms() {
  std::vector<GemmPoint> points;
  const YamlNode table = published::table("simumax_efficiency_a100_pcie");
  for (const YamlNode& row : at(at(at(table, "ops"), "matmul"), "rows").items) {
    const std::string& layout = row.items[3].text;
    const GemmSize size{.m = count(row.items[0]), .n = count(row.items[2]), .k = count(row.items[1])};
    const double flops = 2.0 * static_cast<double>(size.m * size.n * size.k);
    points.push_back({.size = size,
                      .layout = layout == "TN"   ? GemmLayout::kTN
                                : layout == "NN" ? GemmLayout::kNN
                                                 : GemmLayout::kNT,
                      .seconds = flops / (312e12 * number(row.items[6]))});
  }
  return points;
}

inline GemmDevice a100_pcie() {  // the table's own 0.91 of 1.6 TB/s; kernel times without launch
  return {.sms = 108,
          .peak = FlopRate(312e12),
          .memory_bandwidth = Bandwidth(0.91 * 1.6e12),
          .launch_seconds = 0};
}

struct NamedCurve {
  std::string id;
  CollectiveGroup group;
  std::vector<CurvePoint> points;
};

inline CollectiveKind kind_of(const std::string& name) {
  static const std::map<std::string, CollectiveKind> kKinds = {
      {"all_reduce", CollectiveKind::kAllReduce},         {"all_gather", CollectiveKind::kAllGather},
      {"reduce_scatter", CollectiveKind::kReduceScatter}, {"all_to_all", CollectiveKind::kAllToAll},
      {"sendrecv", CollectiveKind::kSendReceive},
  };
  const auto found = kKinds.find(name);
  return found == kKinds.end() ? CollectiveKind::kSendReceive : found->second;  // permutations of XLA
}

inline NamedCurve read_curve(const YamlNode& row) {
  NamedCurve curve{
      .id = at(row, "id").text,
      .group = {.kind = kind_of(at(row, "collective").text),
                .ranks = static_cast<int>(count(at(row, "ranks"))),
                .nodes = row.find("nodes") != nullptr ? static_cast<int>(count(at(row, "nodes"))) : 1},
      .points = {}};
  const YamlNode* times = row.find("time_us");
  for (std::size_t i = 0; i < at(row, "bytes").items.size(); ++i) {
    const double bytes = number(at(row, "bytes").items[i]);
    const double ranks = curve.group.ranks;  // busbw curves are of all-reduces
    const double seconds =
        times != nullptr ? 1e-6 * number(times->items[i])
                         : bytes * 2 * (ranks - 1) / ranks / (1e9 * number(at(row, "busbw_gb_s").items[i]));
    curve.points.push_back({.size = bytes, .seconds = seconds});
  }
  return curve;
}

inline std::vector<NamedCurve> nccl_curves() {
  std::vector<NamedCurve> curves;
  const YamlNode table = published::table("nccl_curves");
  for (const char* section : {"curves", "busbw_curves_h100_nvlstree"})
    for (const YamlNode& row : at(table, section).items) curves.push_back(read_curve(row));
  return curves;
}

inline std::vector<NamedCurve> azure_curves() {
  std::vector<NamedCurve> curves;
  const YamlNode table = published::table("azure_nd");
  for (const YamlNode& row : at(table, "curves").items) curves.push_back(read_curve(row));
  return curves;
}

inline std::vector<NamedCurve> xla_h100_curves() {
  std::vector<NamedCurve> curves;
  const YamlNode table = published::table("xla_collectives_h100");
  for (const YamlNode& row : at(table, "rows").items) curves.push_back(read_curve(row));
  return curves;
}

inline std::vector<NamedCurve> vtrain_a100_curves() {
  std::vector<NamedCurve> curves;
  const YamlNode table = published::table("vtrain_nccl_allreduce");
  for (int ranks = 2; ranks <= 8; ++ranks) {
    NamedCurve curve{.id = "vtrain_" + std::to_string(ranks), .group = {.ranks = ranks}, .points = {}};
    for (const YamlNode& row : at(at(table, "a100"), "ranks_" + std::to_string(ranks)).items)
      curve.points.push_back(
          {.size = number(row.items[0]) * (1 << 20), .seconds = 1e-6 * number(row.items[1])});
    curves.push_back(std::move(curve));
  }
  return curves;
}

struct AttentionCurve {
  std::string name;
  std::vector<AttentionPoint> points;
};

inline std::vector<AttentionCurve> attention_curves() {
  std::vector<AttentionCurve> curves;
  const YamlNode table = published::table("flash_attention");
  for (const YamlNode& row : at(table, "rows").items) {
    AttentionCurve curve{.name = at(row, "kernel").text + " " + at(row, "gpu").text + " " +
                                 at(row, "direction").text + " causal " + at(row, "causal").text,
                         .points = {}};
    for (std::size_t i = 0; i < at(row, "seqlen").items.size(); ++i) {
      const YamlNode& rate = at(row, "tflops").items[i];
      if (rate.kind == YamlNode::Kind::kScalar)
        curve.points.push_back(
            {.length = number(at(row, "seqlen").items[i]), .rate = FlopRate(number(rate) * 1e12)});
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace stagecraft
