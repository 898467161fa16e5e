#include "calibrate/fit/write_profile.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {

namespace {

// The text as a YAML scalar in single quotes.
std::string scalar(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

std::string written(double value) {
  return fmt::format("{}", value);
}
std::string written(Duration time) {
  return fmt::format("{} ns", time.count());
}
std::string written(Bytes bytes) {
  return fmt::format("{} B", bytes.count());
}
std::string written(Bandwidth rate) {
  return fmt::format("{:.10g} GB/s", rate.count() / 1e9);
}
std::string written(FlopRate rate) {
  return fmt::format("{:.10g} TFLOP/s", rate.count() / 1e12);
}

std::string story(Provenance provenance, const std::string& source) {
  return fmt::format("provenance: {}, source: {}", name(provenance), scalar(source));
}

// A constant on a line of its own, `indent` columns deep.
template <class T>
std::string constant(std::string_view key, const Sourced<T>& item, int indent = 0) {
  return fmt::format("{:{}}{}: {{value: {}, {}}}\n", "", indent, key, written(item.value),
                     story(item.provenance, item.source));
}
// "" where the profile has none.
template <class T>
std::string constant(std::string_view key, const std::optional<Sourced<T>>& item, int indent = 0) {
  return item ? constant(key, *item, indent) : "";
}

constexpr int kInSection = 2;

std::string device_section(const DeviceFacts& device) {
  std::string out =
      fmt::format("device:\n  name: {}\n  sms: {}\n  memory: {}\n  memory_bandwidth: {}\n",
                  scalar(device.name), device.sms, written(device.memory), written(device.memory_bandwidth));
  if (device.nvlink.count() > 0) out += fmt::format("  nvlink: {}\n", written(device.nvlink));
  for (const auto& [key, rate] :
       {std::pair{"peak_fp32", device.peak_fp32}, std::pair{"peak_fp16", device.peak_fp16},
        std::pair{"peak_bf16", device.peak_bf16}, std::pair{"peak_fp8", device.peak_fp8}}) {
    if (rate.count() > 0) out += fmt::format("  {}: {}\n", key, written(rate));
  }
  return out +
         fmt::format("  provenance: {}\n  source: {}\n", name(device.provenance), scalar(device.source));
}

std::string gemm_rows(const std::vector<GemmRow>& rows, const std::vector<std::string>& remarks) {
  std::string out = "    columns: [m, n, k, layout, efficiency]\n    rows:\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const GemmRow& row = rows[i];
    SC_CHECK(row.provenance == rows.front().provenance, "a table has one story for all its rows");
    out += fmt::format("    - [{}, {}, {}, {}, {}]", row.m, row.n, row.k,
                       kGemmLayoutNames[static_cast<std::size_t>(row.layout)], row.efficiency);
    if (!remarks.empty()) out += "  # " + remarks[i];
    out += '\n';
  }
  return out;
}

std::string gemm_table(const GemmModel& model, const ProfileRemarks& remarks) {
  SC_CHECK(model.table.rows.empty() || model.table.rows.front().provenance == remarks.table,
           "the rows are of the table");
  std::string precisions;
  for (const Precision precision : model.table_precisions)
    precisions +=
        (precisions.empty() ? "" : ", ") + std::string(kPrecisionNames[static_cast<std::size_t>(precision)]);
  return fmt::format("  table:\n    provenance: {}\n    source: {}\n    precisions: [{}]\n",
                     name(remarks.table), scalar(model.table.source), precisions) +
         gemm_rows(model.table.rows, remarks.gemm_rows);
}

std::string fp8_table(const GemmTable& table, const std::vector<std::string>& remarks) {
  const Provenance provenance = table.rows.empty() ? Provenance::kMeasured : table.rows.front().provenance;
  return fmt::format("  fp8_table:\n    provenance: {}\n    source: {}\n    radius: {}\n    prior: {}\n",
                     name(provenance), scalar(table.source), table.radius, table.prior) +
         gemm_rows(table.rows, remarks);
}

std::string gemm_section(const GemmModel& model, const ProfileRemarks& remarks, bool fp8) {
  std::string out = "gemm:\n" + constant("scale", model.scale, kInSection) +
                    constant("efficiency_tn", model.efficiency_tn, kInSection) +
                    constant("efficiency_nn", model.efficiency_nn, kInSection) +
                    constant("efficiency_nt", model.efficiency_nt, kInSection) +
                    constant("batched_efficiency", model.batched_efficiency, kInSection) +
                    constant("misaligned_factor", model.misaligned_factor, kInSection);
  if (fp8)
    out += constant("fp8_factor", model.fp8_factor, kInSection) +
           constant("fp8_prologue", model.fp8_prologue, kInSection) +
           constant("blockwise_factor", model.blockwise_factor, kInSection) +
           constant("mxfp8_factor", model.mxfp8_factor, kInSection) +
           constant("nvfp4_factor", model.nvfp4_factor, kInSection) +
           constant("fp8_scale", model.fp8_scale, kInSection);
  out += fmt::format(
      "  tiles:\n    provenance: analytic\n    source: {}\n    columns: [m, n, rate]\n    rows:\n",
      scalar(model.tile_source));
  for (const GemmTile& tile : model.tiles)
    out += fmt::format("    - [{}, {}, {}]\n", tile.m, tile.n, tile.rate);
  out +=
      fmt::format("  split_k: {{max: {}, min_depth: {}, prologue: {}, {}}}\n", model.split_k_max,
                  model.split_k_min_depth, model.prologue_k, story(Provenance::kAnalytic, model.tile_source));
  out += fmt::format("  correction: {{radius: {}, prior: {}, {}}}\n", model.table.radius, model.table.prior,
                     story(Provenance::kAnalytic, model.correction_source));
  out += gemm_table(model, remarks);
  return fp8 && model.fp8_table ? out + fp8_table(*model.fp8_table, remarks.fp8_rows) : out;
}

std::string flash_curve(std::string_view key, const FlashCurve& curve) {
  return fmt::format("        {}: {{rate: {}, half_length: {}, {}}}\n", key, written(curve.rate),
                     written(curve.half_length), story(curve.provenance, curve.source));
}

std::string flash_pass(std::string_view key, const FlashPass& pass) {
  return fmt::format("      {}:\n", key) + flash_curve("causal", pass.causal) +
         flash_curve("dense", pass.dense) + constant("half_blocks", pass.half_blocks, 8) +
         constant("window_edge", pass.window_edge, 8);
}

std::string flash_kernel(const FlashKernel& kernel) {
  return fmt::format("    {}:\n", scalar(kernel.name)) + flash_pass("forward", kernel.forward) +
         flash_pass("backward", kernel.backward) + constant("half_head_size", kernel.half_head_size, 6);
}

std::string attention_section(const AttentionModel& attention) {
  std::string out = fmt::format("attention:\n  kernel: {}\n", scalar(attention.kernel().name));
  if (!attention.sdpa.empty()) out += fmt::format("  sdpa: {}\n", scalar(attention.sdpa));
  out += constant("fixed", attention.fixed, kInSection) +
         constant("half_head_size", attention.half_head_size, kInSection) + "  kernels:\n";
  for (const FlashKernel& kernel : attention.kernels) out += flash_kernel(kernel);
  if (!attention.narrow.empty()) out += "  fp8_kernels:\n";
  for (const NarrowFlashKernel& narrow : attention.narrow) out += flash_kernel(narrow.kernel);
  return out;
}

std::string experts_section(const ExpertKernels& experts) {
  return "experts:\n" + constant("grouped_factor", experts.grouped_factor, kInSection) +
         constant("group_gap", experts.group_gap, kInSection) +
         constant("permutation_efficiency", experts.permutation_efficiency, kInSection);
}

std::string host_section(const HostModel& host) {
  return "host:\n" + constant("kernel_gap", host.kernel_gap, kInSection) +
         constant("launch", host.launch, kInSection) + constant("slowdown", host.slowdown, kInSection) +
         constant("per_iteration", host.per_iteration, kInSection);
}

std::string software_section(const DefaultSoftware& software) {
  std::string out = fmt::format("software: {{replicated: {}, sharded: {}", scalar(software.replicated),
                                scalar(software.sharded));
  if (!software.sharded_gated.empty())
    out += fmt::format(", sharded_gated: {}", scalar(software.sharded_gated));
  if (!software.sharded_fp16.empty()) out += fmt::format(", sharded_fp16: {}", scalar(software.sharded_fp16));
  if (software.cuda_graphs != CudaGraphs::kNone)
    out += fmt::format(", cuda_graphs: {}", kCudaGraphsNames[static_cast<std::size_t>(software.cuda_graphs)]);
  return out + "}\n";
}

std::string memory_section(const MemoryOverheads& memory) {
  return "memory:\n" + constant("context", memory.context, kInSection) +
         constant("communicators", memory.communicators, kInSection) +
         constant("workspace", memory.workspace, kInSection) +
         constant("fragmentation", memory.fragmentation, kInSection) +
         constant("fp8_copies", memory.fp8_copies, kInSection);
}

std::string collectives_section(const std::vector<CollectiveFit>& fits) {
  std::string out = "collectives:\n";
  std::vector<CollectiveFit> rest = fits;
  while (!rest.empty()) {
    std::vector<CollectiveFit> same, others;
    for (const CollectiveFit& fit : rest) {
      const bool joins = fit.provenance == rest.front().provenance && fit.source == rest.front().source;
      (joins ? same : others).push_back(fit);
    }
    out += collective_table(same);
    rest = std::move(others);
  }
  return out;
}

std::string spread_section(const HardwareProfile& profile) {
  std::string out = "relative_spread:\n";
  for (std::size_t i = 0; i < kProvenanceNames.size(); ++i)
    out += fmt::format("  {}: {}\n", kProvenanceNames[i], profile.relative_spread[i]);
  return out + fmt::format("  provenance: analytic\n  source: {}\n", scalar(profile.spread_source));
}

}  // namespace

std::string collective_table(const std::vector<CollectiveFit>& fits) {
  SC_CHECK(!fits.empty(), "a table without rows");
  std::string out = fmt::format(
      "- provenance: {}\n  source: {}\n"
      "  columns: [kind, ranks, nodes, algorithm, latency, bus_bandwidth, sqrt_seconds]\n  rows:\n",
      name(fits.front().provenance), scalar(fits.front().source));
  for (const CollectiveFit& fit : fits)
    out += fmt::format("  - [{}, {}, {}, {}, {}, {}, {}]\n",
                       kCollectiveNames[static_cast<std::size_t>(fit.kind)], fit.ranks, fit.nodes,
                       fit.algorithm, written(fit.latency), written(fit.bus_bandwidth), fit.sqrt_seconds);
  return out;
}

std::string collective_points_section(const std::vector<CollectiveFit>& fits) {
  std::string out;
  for (const CollectiveFit& fit : fits) {
    if (fit.points.empty()) continue;
    out += fmt::format(
        "- provenance: {}\n  source: {}\n  columns: [kind, ranks, algorithm, size, time]\n  rows:\n",
        name(fit.provenance), scalar(fit.points_source.empty() ? fit.source : fit.points_source));
    for (const CollectivePoint& point : fit.points)
      out += fmt::format("  - [{}, {}, {}, {}, {}]\n", kCollectiveNames[static_cast<std::size_t>(fit.kind)],
                         fit.ranks, fit.algorithm, written(point.size), written(point.time));
  }
  return out.empty() ? out : "collective_points:\n" + out;
}

std::string residual_section(const ResidualModel& residuals) {
  std::string out = "residuals:\n";
  for (std::size_t i = 0; i < kOpFamilyCount; ++i)
    out += constant(kOpFamilyNames[i], residuals.families[i], kInSection);
  out +=
      constant("run", residuals.run, kInSection) + constant("correlation", residuals.correlation, kInSection);
  for (std::size_t i = 0; i < kUnnamedNames.size(); ++i)
    if (!residuals.unnamed[i].source.empty())
      out += constant(kUnnamedNames[i], residuals.unnamed[i], kInSection);
  return out;
}

std::string write_profile(const HardwareProfile& profile, const ProfileRemarks& remarks) {
  std::string out = fmt::format(
      "# {}\n# Format: calibrate/profile/README.md.\nstagecraft_profile: 1\nname: {}\ndate: {}\nmade_by: "
      "{}\n",
      remarks.heading, scalar(profile.name), scalar(profile.date), scalar(profile.made_by));
  out += device_section(profile.device);
  out += gemm_section(profile.gemm, remarks, profile.device.peak_fp8.count() > 0);
  out += constant("memory_efficiency", profile.memory_efficiency);
  out += constant("loss_traffic", profile.loss_traffic);
  out += attention_section(profile.attention);
  out += experts_section(profile.experts);
  out += host_section(profile.host);
  out += constant("tensor_overlap", profile.tensor_overlap);
  out += constant("gradient_overlap_slowdown", profile.gradient_overlap_slowdown);
  out += constant("sharded_overlap_slowdown", profile.sharded_overlap_slowdown);
  out += constant("gpu_variability", profile.gpu_variability);
  out += software_section(profile.software);
  out += collectives_section(profile.collectives) + collective_points_section(profile.collectives);
  out += memory_section(profile.memory);
  out += spread_section(profile);
  return profile.residuals ? out + residual_section(*profile.residuals) : out;
}

}  // namespace stagecraft
