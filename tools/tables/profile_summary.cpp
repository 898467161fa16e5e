#include "tools/tables/profile_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "base/json.hpp"
#include "base/text.hpp"
#include "calibrate/fit/fit_errors.hpp"

namespace stagecraft {
namespace {

using Shares = std::array<int, kProvenanceNames.size()>;

Shares constants_by_provenance(const HardwareProfile& profile) {
  Shares shares{};
  const auto count = [&](Provenance provenance) { ++shares[static_cast<std::size_t>(provenance)]; };
  const GemmModel& gemm = profile.gemm;
  for (const Sourced<double>* item :
       {&gemm.scale, &gemm.efficiency_tn, &gemm.efficiency_nn, &gemm.efficiency_nt, &gemm.batched_efficiency,
        &gemm.misaligned_factor, &profile.memory_efficiency, &profile.loss_traffic, &profile.tensor_overlap,
        &profile.gradient_overlap_slowdown, &profile.sharded_overlap_slowdown, &profile.memory.fragmentation,
        &profile.experts.grouped_factor, &profile.experts.permutation_efficiency,
        &profile.attention.half_head_size})
    count(item->provenance);
  for (const Sourced<Duration>* item :
       {&profile.host.kernel_gap, &profile.host.launch, &profile.host.per_iteration,
        &profile.experts.group_gap, &profile.attention.fixed})
    count(item->provenance);
  for (const std::optional<Sourced<double>>& item :
       {profile.host.slowdown, profile.gpu_variability, profile.memory.fp8_copies})
    if (item) count(item->provenance);
  if (profile.supports(Precision::kFp8)) {
    count(gemm.fp8_factor.provenance);
    for (const std::optional<Sourced<double>>& item :
         {gemm.fp8_prologue, gemm.fp8_scale, gemm.blockwise_factor, gemm.mxfp8_factor, gemm.nvfp4_factor})
      if (item) count(item->provenance);
  }
  for (const Sourced<Bytes>* item :
       {&profile.memory.context, &profile.memory.communicators, &profile.memory.workspace})
    count(item->provenance);
  const auto count_kernel = [&](const FlashKernel& kernel) {
    if (kernel.half_head_size) count(kernel.half_head_size->provenance);
    for (const FlashPass* pass : {&kernel.forward, &kernel.backward}) {
      count(pass->causal.provenance);
      count(pass->dense.provenance);
      count(pass->half_blocks.provenance);
      if (pass->window_edge) count(pass->window_edge->provenance);
    }
  };
  for (const FlashKernel& kernel : profile.attention.kernels) count_kernel(kernel);
  for (const NarrowFlashKernel& narrow : profile.attention.narrow) count_kernel(narrow.kernel);
  return shares;
}

Shares rows_by_provenance(const HardwareProfile& profile) {
  Shares shares{};
  const GemmModel& gemm = profile.gemm;
  for (const GemmRow& row : gemm.table.rows) ++shares[static_cast<std::size_t>(row.provenance)];
  if (gemm.fp8_table)
    for (const GemmRow& row : gemm.fp8_table->rows) ++shares[static_cast<std::size_t>(row.provenance)];
  return shares;
}

Shares collectives_by_provenance(const HardwareProfile& profile) {
  Shares shares{};
  for (const CollectiveFit& fit : profile.collectives) ++shares[static_cast<std::size_t>(fit.provenance)];
  return shares;
}

// The table against the formula that speaks where there is no row.
FitErrors formula_errors(const GemmModel& model) {
  FitErrors errors;
  for (const GemmRow& row : model.table.rows) {
    errors.add(fmt::format("{} x {}, k {}, {}", row.m, row.n, row.k,
                           kGemmLayoutNames[static_cast<std::size_t>(row.layout)]),
               std::exp(row.log_ratio), 1);
  }
  return errors;
}

std::string extents(const GemmModel& model, GemmLayout layout, std::int64_t GemmRow::*extent) {
  std::int64_t least = 0, most = 0;
  for (const GemmRow& row : model.table.rows) {
    if (row.layout != layout) continue;
    least = least == 0 ? row.*extent : std::min(least, row.*extent);
    most = std::max(most, row.*extent);
  }
  return most == 0 ? "" : fmt::format("{} to {}", least, most);
}

std::string coverage_table(const GemmModel& model) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.row({"GEMM", "rows", "m", "n", "k", "of peak"});
  for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT}) {
    const auto rows = std::ranges::count(model.table.rows, layout, &GemmRow::layout);
    table.row({std::string(kGemmLayoutNames[static_cast<std::size_t>(layout)]), std::to_string(rows),
               extents(model, layout, &GemmRow::m), extents(model, layout, &GemmRow::n),
               extents(model, layout, &GemmRow::k), fmt::format("{:.3f}", model.efficiency(layout).value)});
  }
  return table.str(2);
}

std::string collective_coverage(const HardwareProfile& profile) {
  TextTable table(
      {Align::kLeft, Align::kRight, Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kLeft});
  table.row({"collective", "ranks", "nodes", "algorithm", "latency", "bus", "known"});
  for (const CollectiveFit& fit : profile.collectives) {
    table.row({std::string(kCollectiveNames[static_cast<std::size_t>(fit.kind)]), std::to_string(fit.ranks),
               std::to_string(fit.nodes), fit.algorithm, human(fit.latency), human(fit.bus_bandwidth),
               std::string(name(fit.provenance))});
  }
  return table.str(2);
}

std::string provenance_table(const HardwareProfile& profile) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.row({"known", "constants", "GEMM rows", "collectives"});
  const Shares constants = constants_by_provenance(profile);
  const Shares rows = rows_by_provenance(profile);
  const Shares collectives = collectives_by_provenance(profile);
  for (std::size_t i = 0; i < kProvenanceNames.size(); ++i) {
    table.row({std::string(kProvenanceNames[i]), std::to_string(constants[i]), std::to_string(rows[i]),
               std::to_string(collectives[i])});
  }
  std::string text = table.str(2);
  if (const auto& fp8 = profile.gemm.fp8_table)
    text += fmt::format("  GEMM rows are {} of 16 bit, above, and {} of fp8\n",
                        profile.gemm.table.rows.size(), fp8->rows.size());
  return text;
}

}  // namespace

std::string summary_text(const HardwareProfile& profile) {
  std::string out =
      fmt::format("{}   {}\n  {}, made by {}\n\n", profile.name, profile.device.name,
                  profile.date.empty() ? "no date" : "newest ingredient of " + profile.date, profile.made_by);
  out += coverage_table(profile.gemm) + "\n" + collective_coverage(profile) + "\n";
  out += provenance_table(profile) + "\n";
  const FitErrors errors = formula_errors(profile.gemm);
  out += fmt::format("  GEMM rows against the tile model: {}\n", errors.summary());
  out += fmt::format("  off the rows, with measured times that are mostly launch and make no row: {}\n",
                     profile.gemm.correction_source);
  out += "  farthest from the tile model:\n";
  TextTable table({Align::kRight, Align::kLeft});
  for (const RowError& row : errors.worst(5)) table.row({fmt::format("{:+.1f} %", 100 * row.error), row.row});
  return out + table.str(4);
}

std::string summary_json(const HardwareProfile& profile) {
  const FitErrors errors = formula_errors(profile.gemm);
  const Shares constants = constants_by_provenance(profile);
  const Shares rows = rows_by_provenance(profile);
  const Shares collectives = collectives_by_provenance(profile);
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.profile-summary/1");
  json.field("name", profile.name).field("device", profile.device.name);
  json.field("date", profile.date).key("provenance").begin_object();
  for (std::size_t i = 0; i < kProvenanceNames.size(); ++i) {
    json.key(kProvenanceNames[i]).begin_object().field("constants", constants[i]);
    json.field("gemm_rows", rows[i]).field("collectives", collectives[i]).end_object();
  }
  json.end_object().key("gemm_error").begin_object();
  json.field("median", errors.median()).field("p95", errors.p95()).key("worst").begin_array();
  for (const RowError& row : errors.worst(5)) {
    json.begin_object().field("row", row.row).field("error", row.error).end_object();
  }
  json.end_array().end_object().end_object();
  return json.str();
}

}  // namespace stagecraft
