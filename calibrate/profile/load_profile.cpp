#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/text_file.hpp"
#include "base/yaml.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "calibrate/profile/profile_reader.hpp"
#include "calibrate/profile/tile_model.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kSchema = 1;
// A thousandth of a rate is no device any more, and what divides by less does not fit into a time.
constexpr double kLeastShare = 1e-3;
// Above 1: FLOPs counted in full that a kernel skips.
constexpr Range kEfficiency{.above = kLeastShare, .up_to = 1.2, .closed_below = true};
// GEMMs of a few rows and columns are mostly launch.
constexpr Range kRowEfficiency{.above = 1e-6, .up_to = 1.2, .closed_below = true};
constexpr Range kFactor{.above = kLeastShare, .up_to = 1, .closed_below = true};
constexpr Range kFp8Factor{.above = kLeastShare, .up_to = kMostFp8Factor, .closed_below = true};
constexpr Range kNvfp4Factor{.above = kLeastShare, .up_to = kMostNvfp4Factor, .closed_below = true};
constexpr Range kScale{.above = kLeastShare, .up_to = 2, .closed_below = true};
constexpr Range kRadius{.above = 0, .up_to = 10, .closed_below = true};
constexpr Range kPrior{.above = 0, .up_to = 1000};
constexpr Range kHeadSize{.above = 0, .up_to = 1000, .closed_below = true};
constexpr Range kSlowdown{.above = 1, .up_to = 2, .closed_below = true};
constexpr Range kShare{.above = 0, .up_to = 1, .closed_below = true};
constexpr std::int64_t kMostDepth = 10'000, kMostTile = 65'536;
constexpr Duration kLongestIteration = std::chrono::hours(1);
constexpr Bytes kMostMemory(std::int64_t{1} << 50);
constexpr Within<Bandwidth> kBandwidth{.least = Bandwidth(1e9), .most = Bandwidth(1e15)};
constexpr Within<FlopRate> kFlopRate{.least = FlopRate(1e12), .most = FlopRate(1e18)};
constexpr std::string_view kTableIs = "a table has provenance, source, columns and rows";

Bandwidth read_bandwidth(YamlMap& in, std::string_view key) {
  return read_within(in, key, kBandwidth, [&] { return in.bandwidth(key); });
}

FlopRate read_rate(YamlMap& in, std::string_view key) {
  return read_within(in, key, kFlopRate, [&] { return in.flop_rate(key); });
}

// 0 where it is not given.
FlopRate optional_rate(YamlMap& in, std::string_view key) {
  return in.has(key) ? read_rate(in, key) : FlopRate(0);
}

DeviceFacts read_device(YamlMap& root) {
  Section section = required_section(root, "device", "the data sheet of the device");
  if (!section.ok) return {};
  YamlMap& in = section.map;
  DeviceFacts device;
  device.name = in.text("name");
  device.sms = static_cast<int>(in.integer("sms", {.min = 1, .max = 100'000}));
  device.memory = read_within(in, "memory", Within<Bytes>{.least = Bytes(1), .most = kMostMemory},
                              [&] { return in.bytes("memory"); });
  device.memory_bandwidth = read_bandwidth(in, "memory_bandwidth");
  if (in.has("nvlink")) device.nvlink = read_bandwidth(in, "nvlink");
  device.peak_fp32 = optional_rate(in, "peak_fp32");
  device.peak_fp16 = optional_rate(in, "peak_fp16");
  device.peak_bf16 = optional_rate(in, "peak_bf16");
  device.peak_fp8 = optional_rate(in, "peak_fp8");
  Story story = read_story(in);
  device.provenance = story.provenance;
  device.source = std::move(story.source);
  in.finish();
  return device;
}

void read_tiles(YamlMap& gemm, GemmModel& model) {
  Section section = required_section(gemm, "tiles", kTableIs);
  if (!section.ok) return;
  model.tile_source = read_story(section.map).source;
  const std::vector<std::string> columns = {"m", "n", "rate"};
  for (TableRow& row : read_rows(section.map, columns)) {
    const GemmTile tile{
        .m = row.integer(0, 1, kMostTile), .n = row.integer(1, 1, kMostTile), .rate = row.number(2, kFactor)};
    if (std::ranges::any_of(model.tiles, [&](const GemmTile& t) { return t.m == tile.m && t.n == tile.n; }))
      row.error("duplicate-row", "the tile of an earlier row again");
    model.tiles.push_back(tile);
  }
  section.map.finish();
}

void read_split_k(YamlMap& gemm, GemmModel& model) {
  Section section = required_section(gemm, "split_k", "{max, min_depth, prologue, provenance, source}");
  if (!section.ok) return;
  model.split_k_max = section.map.integer("max", {.min = 1, .max = 64});
  model.split_k_min_depth = section.map.integer("min_depth", {.min = 1, .max = kMostDepth});
  model.prologue_k = section.map.integer("prologue", {.min = 0, .max = kMostDepth});
  static_cast<void>(read_story(section.map));
  section.map.finish();
}

void read_correction(YamlMap& gemm, GemmModel& model) {
  Section section = required_section(gemm, "correction", "{radius, prior, provenance, source}");
  if (!section.ok) return;
  model.table.radius = read_in_range(section.map, "radius", kRadius);
  model.table.prior = read_in_range(section.map, "prior", kPrior);
  model.correction_source = read_story(section.map).source;
  section.map.finish();
}

// Key of a table row. Two rows with one key would make the cost depend on the order of the file.
using GemmKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, GemmLayout>;

std::vector<Precision> read_precisions(YamlMap& table) {
  if (!table.has("precisions")) {
    table.error("precisions", "missing-key", "is required, but not given",
                "the precisions that the table speaks for");
  }
  const std::vector<std::string> names = to_strings(kPrecisionNames);
  std::vector<Precision> precisions;
  for (const std::string& word : table.texts("precisions")) {
    const auto found = std::ranges::find(names, word);
    if (found == names.end()) {
      table.error("precisions", "unknown-name", fmt::format("unknown precision '{}'", word),
                  suggest(word, names));
    } else {
      precisions.push_back(static_cast<Precision>(found - names.begin()));
    }
  }
  return precisions;
}

std::vector<GemmRow> read_gemm_rows(YamlMap& table, Provenance provenance) {
  const std::vector<std::string> columns = {"m", "n", "k", "layout", "efficiency"};
  std::vector<GemmRow> rows;
  std::set<GemmKey> seen;
  for (TableRow& row : read_rows(table, columns)) {
    const GemmRow entry{.m = row.integer(0),
                        .n = row.integer(1),
                        .k = row.integer(2),
                        .layout = static_cast<GemmLayout>(row.choice(3, kGemmLayoutNames)),
                        .efficiency = row.number(4, kRowEfficiency),
                        .provenance = provenance};
    if (!seen.emplace(entry.m, entry.n, entry.k, entry.layout).second) {
      row.error("duplicate-row", "the shape and layout of an earlier row again");
    }
    rows.push_back(entry);
  }
  return rows;
}

void read_gemm_table(YamlMap& gemm, GemmModel& model) {
  Section section = required_section(gemm, "table", kTableIs);
  if (!section.ok) return;
  Story story = read_story(section.map);
  model.table_precisions = read_precisions(section.map);
  model.table.rows = read_gemm_rows(section.map, story.provenance);
  model.table.source = std::move(story.source);
  section.map.finish();
}

std::optional<GemmTable> read_fp8_table(YamlMap& gemm) {
  Section section = required_section(gemm, "fp8_table", "{radius, prior, columns, rows, provenance, source}");
  if (!section.ok) return std::nullopt;
  Story story = read_story(section.map);
  GemmTable table{.radius = read_in_range(section.map, "radius", kRadius),
                  .prior = read_in_range(section.map, "prior", kPrior),
                  .source = std::move(story.source),
                  .rows = read_gemm_rows(section.map, story.provenance)};
  section.map.finish();
  return table;
}

// Reads the constants of fp8, which a device with that mode must have: fp8 kernels are other kernels.
void read_fp8(YamlMap& gemm, bool device_has_it, GemmModel& model) {
  if (device_has_it || gemm.has("fp8_factor")) model.fp8_factor = read_number(gemm, "fp8_factor", kFp8Factor);
  model.fp8_prologue =
      read_optional_number(gemm, "fp8_prologue", {.above = 0, .up_to = kMostDepth, .closed_below = true});
  model.fp8_scale = read_optional_number(gemm, "fp8_scale", kScale);
  model.blockwise_factor = read_optional_number(gemm, "blockwise_factor", kFp8Factor);
  model.mxfp8_factor = read_optional_number(gemm, "mxfp8_factor", kFp8Factor);
  model.nvfp4_factor = read_optional_number(gemm, "nvfp4_factor", kNvfp4Factor);
  if (gemm.has("fp8_table")) model.fp8_table = read_fp8_table(gemm);
}

GemmModel read_gemm(YamlMap& root, const DeviceFacts& device) {
  Section section = required_section(root, "gemm", "the matrix multiplications of the device");
  if (!section.ok) return {};
  YamlMap& in = section.map;
  GemmModel model;
  model.scale = read_number(in, "scale", kScale);
  model.efficiency_tn = read_number(in, "efficiency_tn", kEfficiency);
  model.efficiency_nn = read_number(in, "efficiency_nn", kEfficiency);
  model.efficiency_nt = read_number(in, "efficiency_nt", kEfficiency);
  model.batched_efficiency = read_number(in, "batched_efficiency", kEfficiency);
  model.misaligned_factor = read_number(in, "misaligned_factor", kFactor);
  read_fp8(in, device.peak_fp8.count() > 0, model);
  read_tiles(in, model);
  read_split_k(in, model);
  read_correction(in, model);
  read_gemm_table(in, model);
  in.finish();
  return model;
}

FlashCurve read_flash_curve(YamlMap& pass, std::string_view key) {
  Section section = required_section(pass, key, "{rate, half_length, provenance, source}");
  if (!section.ok) return {};
  FlashCurve curve{.rate = read_rate(section.map, "rate")};
  curve.half_length =
      read_in_range(section.map, "half_length", {.above = 0, .up_to = 100'000, .closed_below = true});
  Story story = read_story(section.map);
  section.map.finish();
  curve.provenance = story.provenance;
  curve.source = std::move(story.source);
  return curve;
}

FlashPass read_flash_pass(YamlMap& kernel, std::string_view key) {
  Section section = required_section(kernel, key, "{causal, dense, half_blocks}");
  if (!section.ok) return {};
  FlashPass pass{.causal = read_flash_curve(section.map, "causal"),
                 .dense = read_flash_curve(section.map, "dense"),
                 .half_blocks = read_number(section.map, "half_blocks",
                                            {.above = 0, .up_to = 100, .closed_below = true})};
  pass.window_edge =
      read_optional_number(section.map, "window_edge", {.above = 0, .up_to = 10'000, .closed_below = true});
  section.map.finish();
  return pass;
}

FlashKernel read_flash_kernel(YamlMap& map, std::string_view name) {
  FlashKernel kernel{.name = std::string(name),
                     .forward = read_flash_pass(map, "forward"),
                     .backward = read_flash_pass(map, "backward")};
  kernel.half_head_size = read_optional_number(map, "half_head_size", kHeadSize);
  map.finish();
  return kernel;
}

std::vector<FlashKernel> read_flash_kernels(YamlMap& attention) {
  const YamlNode* node = attention.get("kernels");
  if (node == nullptr || node->kind != YamlNode::Kind::kMap || node->entries.empty()) {
    attention.error("kernels", "empty-table", "a mapping of at least one kernel is required",
                    "NAME: {forward: {causal, dense, half_blocks}, backward: {...}}");
    return {};
  }
  YamlMap named = attention.map("kernels");
  std::vector<FlashKernel> kernels;
  for (const YamlEntry& entry : node->entries) {
    Section section = required_section(named, entry.key, "{forward, backward}");
    if (!section.ok) continue;
    kernels.push_back(read_flash_kernel(section.map, entry.key));
  }
  named.finish();
  return kernels;
}

std::vector<NarrowFlashKernel> read_narrow_kernels(YamlMap& attention) {
  std::vector<NarrowFlashKernel> kernels;
  if (!attention.has("fp8_kernels")) return kernels;
  YamlMap named = attention.map("fp8_kernels");
  for (const FlashOperands operands : {FlashOperands::kFp8, FlashOperands::kMxfp8})
    for (const bool two_sizes : {false, true}) {
      const std::string name = std::string(kFlashOperandNames[static_cast<std::size_t>(operands)]) +
                               (two_sizes ? "_two_sizes" : "");
      if (!named.has(name)) continue;
      Section section = required_section(named, name, "{forward, backward}");
      if (!section.ok) continue;
      kernels.push_back({operands, two_sizes, read_flash_kernel(section.map, name)});
    }
  named.finish();
  return kernels;
}

AttentionModel read_attention(YamlMap& root) {
  Section section = required_section(root, "attention", "the flash kernels of the device");
  if (!section.ok) return {};
  YamlMap& in = section.map;
  AttentionModel attention{.kernels = read_flash_kernels(in),
                           .narrow = read_narrow_kernels(in),
                           .fixed = read_duration(in, "fixed"),
                           .half_head_size = read_number(in, "half_head_size", kHeadSize)};
  std::vector<std::string> names;
  for (const FlashKernel& kernel : attention.kernels) names.push_back(kernel.name);
  attention.in_use = in.choice("kernel", names);
  if (in.has("sdpa") && !names.empty()) attention.sdpa = names[in.choice("sdpa", names)];
  in.finish();
  return attention;
}

ExpertKernels read_experts(YamlMap& root) {
  Section section = required_section(root, "experts", "the kernels of a mixture of experts");
  if (!section.ok) return {};
  ExpertKernels experts{
      .grouped_factor = read_number(section.map, "grouped_factor", kEfficiency),
      .group_gap = read_duration(section.map, "group_gap"),
      .permutation_efficiency = read_number(section.map, "permutation_efficiency", kEfficiency)};
  section.map.finish();
  return experts;
}

HostModel read_host(YamlMap& root) {
  Section section = required_section(root, "host", "what launching costs");
  if (!section.ok) return {};
  HostModel host{.kernel_gap = read_duration(section.map, "kernel_gap"),
                 .launch = read_duration(section.map, "launch"),
                 .per_iteration = read_duration(section.map, "per_iteration", kLongestIteration)};
  host.slowdown =
      read_optional_number(section.map, "slowdown", {.above = 0.1, .up_to = 10, .closed_below = true});
  section.map.finish();
  return host;
}

DefaultSoftware read_software(YamlMap& root) {
  Section section = required_section(root, "software", "what jobs run on such devices");
  if (!section.ok) return {};
  DefaultSoftware software{.replicated = section.map.text("replicated"),
                           .sharded = section.map.text("sharded"),
                           .sharded_gated = section.map.text("sharded_gated", ""),
                           .sharded_fp16 = section.map.text("sharded_fp16", "")};
  if (section.map.has("cuda_graphs"))
    software.cuda_graphs = section.map.choose<CudaGraphs>("cuda_graphs", kCudaGraphsNames);
  section.map.finish();
  return software;
}

MemoryOverheads read_memory(YamlMap& root) {
  Section section = required_section(root, "memory", "what a process holds beside its tensors");
  if (!section.ok) return {};
  MemoryOverheads memory{.context = read_bytes(section.map, "context", kMostMemory),
                         .communicators = read_bytes(section.map, "communicators", kMostMemory),
                         .workspace = read_bytes(section.map, "workspace", kMostMemory),
                         .fragmentation = read_number(section.map, "fragmentation", kShare)};
  memory.fp8_copies =
      read_optional_number(section.map, "fp8_copies", {.above = 0, .up_to = 2, .closed_below = true});
  section.map.finish();
  return memory;
}

CollectiveFit read_fit(TableRow& row, const Story& story) {
  CollectiveFit fit{.kind = static_cast<CollectiveKind>(row.choice(0, kCollectiveNames)),
                    .ranks = static_cast<int>(row.integer(1, 2)),
                    .nodes = static_cast<int>(row.integer(2)),
                    .algorithm = std::string(kCollectiveAlgorithms[row.choice(3, kCollectiveAlgorithms)]),
                    .latency = row.duration(4, kLongestPart),
                    .bus_bandwidth = row.bandwidth(5),
                    .sqrt_seconds = row.number(6, {.above = 0, .up_to = 1, .closed_below = true}),
                    .provenance = story.provenance,
                    .source = story.source};
  if (fit.ranks % fit.nodes != 0) {
    row.error("not-divisible", fmt::format("{} nodes do not divide {} ranks", fit.nodes, fit.ranks));
  }
  return fit;
}

void refuse_second_fit(TableRow& row, const CollectiveFit& fit, const std::vector<CollectiveFit>& fits) {
  const auto other = std::ranges::find_if(
      fits, [&](const CollectiveFit& earlier) { return speak_for_same_calls(fit, earlier); });
  if (other == fits.end()) return;
  constexpr const char* kKeepOne =
      "keep one: a curve that was imported stands in place of the rows and points of its kind, ranks and "
      "nodes";
  if (fit.algorithm == other->algorithm)
    row.error("duplicate-row", "the group and algorithm of an earlier row again", kKeepOne);
  else
    row.error("contradiction",
              fmt::format("algorithm {} beside {} of an earlier row of the group: `any` is all of them",
                          fit.algorithm, other->algorithm),
              kKeepOne);
}

// The rows of a list of tables, one table per source, with `read_row(row, story)`.
template <class ReadRow>
void read_tables(YamlMap& root, std::string_view key, const YamlNode& list,
                 std::span<const std::string> columns, const ReadRow& read_row) {
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const YamlNode& node = list.items[i];
    YamlMap table(&node, fmt::format("{}[{}]", key, i), node.where, root.diagnostics());
    if (node.kind != YamlNode::Kind::kMap) continue;  // YamlMap has reported it
    const Story story = read_story(table);
    for (TableRow& row : read_rows(table, columns)) read_row(row, story);
    table.finish();
  }
}

std::vector<CollectiveFit> read_collectives(YamlMap& root) {
  const YamlNode* list = root.get("collectives");
  if (list == nullptr || list->kind != YamlNode::Kind::kSequence || list->items.empty()) {
    root.error("collectives", "empty-table", "a list of at least one table is required",
               std::string(kTableIs));
    return {};
  }
  const std::vector<std::string> columns = {"kind",    "ranks",         "nodes",       "algorithm",
                                            "latency", "bus_bandwidth", "sqrt_seconds"};
  std::vector<CollectiveFit> fits;
  read_tables(root, "collectives", *list, columns, [&](TableRow& row, const Story& story) {
    const ErrorWatch watch(root.diagnostics());
    CollectiveFit fit = read_fit(row, story);
    if (watch.clean()) refuse_second_fit(row, fit, fits);
    fits.push_back(std::move(fit));
  });
  return fits;
}

void read_point(TableRow& row, const Story& story, std::vector<CollectiveFit>& fits) {
  const auto kind = static_cast<CollectiveKind>(row.choice(0, kCollectiveNames));
  const auto ranks = static_cast<int>(row.integer(1, 2));
  const std::string_view algorithm = kCollectiveAlgorithms[row.choice(2, kCollectiveAlgorithms)];
  const CollectivePoint point{.size = row.bytes(3), .time = row.duration(4, kLongestIteration)};
  const auto fit = std::ranges::find_if(fits, [&](const CollectiveFit& one) {
    return one.kind == kind && one.ranks == ranks && one.nodes == 1 && one.algorithm == algorithm;
  });
  if (fit == fits.end()) {
    row.error("unknown-name",
              fmt::format("no row of collectives is of {} {} ranks in a node, algorithm {}",
                          kCollectiveNames[static_cast<std::size_t>(kind)], ranks, algorithm),
              "points stretch the formula of a row");
    return;
  }
  const CollectivePoint before = fit->points.empty() ? CollectivePoint{} : fit->points.back();
  if (point.size <= before.size || point.time <= before.time) {
    row.error("out-of-range", "the points of a group rise in size and in time",
              "noise that falls is pooled with its neighbours before it is written here");
    return;
  }
  fit->points.push_back(point);
  fit->points_source = story.source;
}

// `collective_points`, optional: curves kept together with their fits.
void read_collective_points(YamlMap& root, std::vector<CollectiveFit>& fits) {
  const YamlNode* list = root.get("collective_points");
  if (list == nullptr || list->kind != YamlNode::Kind::kSequence) {
    root.error("collective_points", "empty-table", "a list of tables is required", std::string(kTableIs));
    return;
  }
  const std::vector<std::string> columns = {"kind", "ranks", "algorithm", "size", "time"};
  read_tables(root, "collective_points", *list, columns,
              [&](TableRow& row, const Story& story) { read_point(row, story, fits); });
}

void read_spread(YamlMap& root, HardwareProfile& profile) {
  Section section =
      required_section(root, "relative_spread", "one standard deviation of a cost, by provenance");
  if (!section.ok) return;
  for (std::size_t i = 0; i < kProvenanceNames.size(); ++i) {
    profile.relative_spread[i] = read_in_range(section.map, kProvenanceNames[i], kShare);
  }
  profile.spread_source = read_story(section.map).source;
  section.map.finish();
}

std::optional<ResidualModel> read_residuals(YamlMap& root) {
  if (!root.has("residuals")) return std::nullopt;
  Section section =
      required_section(root, "residuals", "what predictions with this profile leave unexplained");
  if (!section.ok) return std::nullopt;
  constexpr Range kSpread{.above = 0, .up_to = 2, .closed_below = true};
  ResidualModel model;
  for (std::size_t i = 0; i < kOpFamilyCount; ++i)
    model.families[i] = read_number(section.map, kOpFamilyNames[i], kSpread);
  model.run = read_number(section.map, "run", kSpread);
  model.correlation = read_number(section.map, "correlation", kShare);
  for (std::size_t i = 0; i < kUnnamedNames.size(); ++i)
    if (section.map.has(kUnnamedNames[i]))
      model.unnamed[i] = read_number(section.map, kUnnamedNames[i], kSpread);
  section.map.finish();
  return model;
}

HardwareProfile read_profile(YamlMap& root) {
  HardwareProfile profile;
  profile.name = root.text("name");
  profile.date = root.text("date");
  profile.made_by = root.text("made_by");
  profile.device = read_device(root);
  profile.gemm = read_gemm(root, profile.device);
  profile.memory_efficiency = read_number(root, "memory_efficiency", kEfficiency);
  profile.loss_traffic = read_number(root, "loss_traffic", {.above = 0, .up_to = 4});
  profile.attention = read_attention(root);
  profile.experts = read_experts(root);
  profile.host = read_host(root);
  profile.tensor_overlap = read_number(root, "tensor_overlap", kShare);
  profile.gradient_overlap_slowdown = read_number(root, "gradient_overlap_slowdown", kSlowdown);
  profile.sharded_overlap_slowdown = read_number(root, "sharded_overlap_slowdown", kSlowdown);
  profile.gpu_variability =
      read_optional_number(root, "gpu_variability", {.above = 0, .up_to = 0.1, .closed_below = true});
  profile.software = read_software(root);
  const ErrorWatch watch(root.diagnostics());
  profile.collectives = read_collectives(root);
  // Points of rows that were refused have done nothing wrong.
  if (root.has("collective_points") && watch.clean()) read_collective_points(root, profile.collectives);
  profile.memory = read_memory(root);
  read_spread(root, profile);
  profile.residuals = read_residuals(root);
  return profile;
}

// The profile of a document that was read; nullopt where it was not.
std::optional<HardwareProfile> profile_of(const std::optional<YamlNode>& document, const ErrorWatch& watch,
                                          Diagnostics& diagnostics) {
  if (!document) return std::nullopt;
  YamlMap root(&*document, "", document->where, diagnostics);
  if (document->kind != YamlNode::Kind::kMap) return std::nullopt;
  const std::int64_t schema = root.integer("stagecraft_profile");
  if (watch.clean() && schema != kSchema) {
    root.error("stagecraft_profile", "unknown-schema",
               fmt::format("{} is not a schema that this version reads", schema),
               fmt::format("it reads {}", kSchema));
  }
  if (!watch.clean()) return std::nullopt;  // the rest may mean anything
  HardwareProfile profile = read_profile(root);
  root.finish();
  if (!watch.clean()) return std::nullopt;
  compare_with_formula(profile.gemm, profile.device.sms);
  return profile;
}

}  // namespace

std::optional<HardwareProfile> load_profile(const std::filesystem::path& file, Diagnostics& diagnostics) {
  const std::optional<std::string> text = load_text_file(file, diagnostics);
  return text ? parse_profile(*text, place_name(file), diagnostics) : std::nullopt;
}

std::optional<HardwareProfile> parse_profile(const std::string& text, const std::string& name,
                                             Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  std::optional<HardwareProfile> profile =
      profile_of(parse_yaml(text, name, diagnostics), watch, diagnostics);
  if (profile) profile->hash = StableHash().add(std::string_view(text)).hex();
  return profile;
}

}  // namespace stagecraft
