// What one kind of GPU does with a kernel: tables and fitted constants, each with where it comes from.
//
// A profile is about the device and the software on it; networks between nodes belong to the fabric
// (topology/). It is a versioned YAML file (calibrate/profiles/NAME.yaml) that a kept script makes from
// measured or published figures, and the same file serves every scenario: there is no knob per model, per
// paper or per row.
//
//   Efficiencies are shares of the device's peak. Layout tags are those of the three passes of a linear
//   layer: TN forward, NN input gradient, NT weight gradient (fp32 accumulation into the main gradients).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/units.hpp"
#include "calibrate/profile/provenance.hpp"
#include "calibrate/profile/residuals.hpp"

namespace stagecraft {

enum class Precision : std::uint8_t { kFp32, kFp16, kBf16, kFp8 };
inline constexpr std::string_view kPrecisionNames[] = {"fp32", "fp16", "bf16", "fp8"};

enum class GemmLayout : std::uint8_t { kTN, kNN, kNT };
inline constexpr std::string_view kGemmLayoutNames[] = {"TN", "NN", "NT"};

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kSendReceive
};
inline constexpr std::string_view kCollectiveNames[] = {"all-reduce", "all-gather", "reduce-scatter",
                                                        "all-to-all", "broadcast",  "send-receive"};

// Bus factor, nccl-tests' convention: bytes each rank sends per byte of S: 2(n-1)/n all-reduce, (n-1)/n
// gather, scatter and all-to-all, 1 else.
[[nodiscard]] double bus_factor(CollectiveKind kind, int ranks);

struct DeviceFacts {
  std::string name{};  // "NVIDIA A100-SXM4-80GB"
  int sms = 0;
  Bytes memory{};                // usable by a program, before the CUDA context
  Bandwidth memory_bandwidth{};  // data sheet
  Bandwidth nvlink{};            // of the node that the collectives were measured on; 0 = not said
  // Dense tensor-core peaks; 0 = the device has no such mode. peak_fp32 is what fp32 GEMMs of a training run
  // get (TF32 where the profile's source says so).
  FlopRate peak_fp32{}, peak_fp16{}, peak_bf16{}, peak_fp8{};
  Provenance provenance = Provenance::kPublished;
  std::string source{};
};

// What a table says of one shape. The shape is C[m, n] = A[m, k] B[k, n].
struct GemmRow {
  std::int64_t m = 0, n = 0, k = 0;
  GemmLayout layout = GemmLayout::kTN;
  double efficiency = 0;  // achieved / peak on the device of the table
  Provenance provenance = Provenance::kPublished;
  double log_ratio = 0;  // ln(efficiency / formula); derived, see compare_with_formula()
};

struct GemmTile {
  std::int64_t m = 0, n = 0;
  double rate = 1;  // relative to the largest tile
};

inline constexpr double kMostFp8Factor = 1.5;

// Time of a GEMM: 2mnk / (peak * scale * efficiency(layout) * quantisation), never below its bytes at the
// memory rate. Near a table row the ratio of row to formula is carried over; see models/compute_cost.hpp for
// the rule.
struct GemmModel {
  Sourced<double> scale;  // this device in training over the device of the table
  Sourced<double> efficiency_tn, efficiency_nn, efficiency_nt;
  Sourced<double> batched_efficiency;  // attention's batched GEMMs, all layouts, of peak before quantisation
  Sourced<double> misaligned_factor;   // a batched GEMM with a dimension that is no multiple of 8
  // Efficiency in fp8 over that in 16 bit, each of its own peak: scaling work inside the kernel, other tiles,
  // and in long runs what the power limit leaves of either. At most kMostFp8Factor.
  Sourced<double> fp8_factor{.value = 1};
  std::optional<Sourced<double>> fp8_prologue{};  // prologue_k in fp8; absent: that of 16 bit
  std::vector<GemmTile> tiles;
  std::int64_t split_k_max = 4, split_k_min_depth = 1024, prologue_k = 50;
  std::string tile_source;
  double correction_radius = 0;  // in natural-log units of (m, n, k); 0 = table unused off its own shapes
  double correction_prior = 1;   // weight of "the formula is right" against rows of weight at most 1
  std::string correction_source;
  std::vector<Precision> table_precisions;  // the table speaks for these; others take the formula
  std::string table_source;
  std::vector<GemmRow> rows;  // a shape and layout at most once

  [[nodiscard]] const Sourced<double>& efficiency(GemmLayout layout) const;
  // What every tile pays, as extra k, at least 0.
  [[nodiscard]] double prologue(Precision precision) const;
};

inline constexpr std::string_view kCollectiveAlgorithms[] = {"any", "ring", "tree", "nvls", "nvls-tree"};

struct CollectivePoint {
  Bytes size{};
  Duration time{};
  friend bool operator==(const CollectivePoint&, const CollectivePoint&) = default;
};

// t = latency + bytes_on_bus / bandwidth + sqrt_term * sqrt(bytes); bus convention of nccl-tests.
struct CollectiveFit {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int ranks = 0;
  int nodes = 1;
  std::string algorithm = "any";  // of kCollectiveAlgorithms; "any" = whatever NCCL chose for the curve
  Duration latency{};
  Bandwidth bus_bandwidth{};
  double sqrt_seconds = 0;  // seconds per square root of a byte
  Provenance provenance = Provenance::kPublished;
  std::string source{};
  std::vector<CollectivePoint> points{};  // of the curve, where it is kept; sizes and times rise
  std::string points_source{};            // "" = as source

  friend bool operator==(const CollectiveFit&, const CollectiveFit&) = default;
};

// Both speak for the same calls: one kind, ranks and nodes, and one algorithm, or `any` beside a named one.
[[nodiscard]] bool speak_for_same_calls(const CollectiveFit& one, const CollectiveFit& other);

// The formula of a fit, and what its points say over the formula: 1 without points. Between two points
// time follows the formula, stretched so that it meets both: ln t is a line in ln(formula). So it rises with
// the size wherever formula and points do. Beyond the points the last ratio holds.
[[nodiscard]] double formula_seconds(const CollectiveFit& fit, double bytes);
[[nodiscard]] double points_over_formula(const CollectiveFit& fit, double bytes);

// What is special about the kernels of a mixture of experts.
struct ExpertKernels {
  Sourced<double> grouped_factor{.value = 1};  // efficiency of a grouped GEMM over that of the tile model
  Sourced<Duration> group_gap;                 // of each group: switching weights, or a launch of its own
  Sourced<double> permutation_efficiency{.value = 1};  // of memory bandwidth, rows gathered and scattered
};

// Rate of a flash kernel on rows of L keys: rate * L / (L + half_length). FLOPs are those that are done: half
// of the square under a causal mask.
struct FlashCurve {
  FlopRate rate{};
  double half_length = 0;
  Provenance provenance = Provenance::kAssumed;
  std::string source{};
};

struct FlashPass {
  FlashCurve causal, dense;
  // Blocks of 128 queries, in units of the SMs, at which half of the rate of very many blocks is reached. The
  // rates of the curves hold at kFlashBenchmarkBlocks.
  Sourced<double> half_blocks;
};

// A kernel generation: rates belong to it as much as to the GPU.
struct FlashKernel {
  std::string name;  // "fa2", "cudnn"
  FlashPass forward, backward;
  std::optional<Sourced<double>> half_head_size = {};  // in place of the model's
};

inline constexpr double kFlashBlockQueries = 128;
// 16 Ki tokens of 16 heads, as the benchmarks of flash-attention have it.
inline constexpr double kFlashBenchmarkBlocks = 2048;
inline constexpr double kFlashBenchmarkHeadSize = 128;

// Shares of a curve's rate that so many blocks, or heads of such a size, reach; 1 for those of the benchmark.
[[nodiscard]] double flash_occupancy(double half_blocks, double blocks);
[[nodiscard]] double flash_head_share(double half_head_size, double head_size);

struct AttentionModel {
  std::vector<FlashKernel> kernels;  // names unique
  std::size_t in_use = 0;            // what a run takes unless it says otherwise
  Sourced<Duration> fixed;           // beside host.kernel_gap: fill and drain of a kernel
  // Head size at which half of the rate of very large heads is reached: softmax is work per score.
  Sourced<double> half_head_size;

  [[nodiscard]] const FlashKernel& kernel() const;  // throws InternalError when there is none
};

struct HostModel {
  Sourced<Duration> kernel_gap;  // GPU-side gap per kernel
  Sourced<Duration> launch;      // host time per kernel: a floor under each pass
  // How many times as long as the host of a DGX H100 (Xeon 8480C) the usual host of this device takes for the
  // framework's own work. Absent: 1.
  std::optional<Sourced<double>> slowdown = {};
  Sourced<Duration> per_iteration;  // data loading, loss reduction, learning-rate step
  [[nodiscard]] double pace() const { return slowdown ? slowdown->value : 1; }
};

struct MemoryOverheads {
  Sourced<Bytes> context;         // CUDA context and modules
  Sourced<Bytes> communicators;   // NCCL buffers of one communicator in use
  Sourced<Bytes> workspace;       // cuBLAS
  Sourced<double> fragmentation;  // share of allocated
  // Bytes that Transformer Engine's fp8 copies of a weight take. Absent: 2, the weight and its transpose, as
  // Hopper's products want (NVIDIA/TransformerEngine #1880).
  std::optional<Sourced<double>> fp8_copies = {};
  [[nodiscard]] double fp8_weight_copies() const { return fp8_copies ? fp8_copies->value : 2; }
};

// What the host launches as a whole: all of a layer that has a fixed shape (Transformer Engine's graphs), or
// the iteration.
enum class CudaGraphs : std::uint8_t { kNone, kLayers, kIteration };
inline constexpr std::string_view kCudaGraphsNames[] = {"none", "layers", "iteration"};

// The software that a job is taken to run where its scenario names none: what the end-to-end constants of
// this profile were seen under. Names of scenarios/software/.
struct DefaultSoftware {
  std::string replicated;  // whole weights on every rank, or sharded optimizer states (ZeRO 0 and 1)
  std::string sharded;     // ZeRO 2 and 3
  CudaGraphs cuda_graphs = CudaGraphs::kNone;  // of such software that has an `operator_overhead`
};

struct HardwareProfile {
  std::string name;
  std::string date;     // ISO, of the newest ingredient
  std::string made_by;  // the command that remakes the file
  DeviceFacts device;
  GemmModel gemm;
  Sourced<double> memory_efficiency;  // of memory bandwidth, large memory-bound kernels
  Sourced<double> loss_traffic;  // bytes of the loss kernels relative to the unfused count (38 forward + 14
                                 // backward a logit)
  AttentionModel attention;
  ExpertKernels experts;
  HostModel host;
  Sourced<double>
      tensor_overlap;  // share of a backward tensor collective that its weight-gradient GEMM hides
  // A pass runs this much longer while gradients are reduced, weights gathered, or the traffic of the other
  // pass of a fused pair moves beside it (1 = not).
  Sourced<double> gradient_overlap_slowdown;
  // How many times as long a pass of sharded weights (ZeRO 2 and 3) takes while the next are gathered and the
  // last reduced.
  Sourced<double> sharded_overlap_slowdown;
  // How the compute of GPUs of one kind differs: one standard deviation over the mean. Absent: not at all.
  std::optional<Sourced<double>> gpu_variability = {};
  DefaultSoftware software;
  std::vector<CollectiveFit> collectives;  // inside a node, and over nodes where curves exist
  MemoryOverheads memory;
  ByProvenance relative_spread{};  // one standard deviation of a cost, by provenance
  std::string spread_source;
  // What is left unexplained where this profile was scored; without it an interval follows relative_spread.
  std::optional<ResidualModel> residuals;

  [[nodiscard]] FlopRate peak(
      Precision precision) const;  // throws InternalError when the device has no such mode
  [[nodiscard]] bool supports(Precision precision) const;
  [[nodiscard]] double spread(Provenance provenance) const;
  // The share of the mean GPU's compute by which the slowest of so many is expected to take longer, and so is
  // each step of a job that waits for all: variability * E[largest of n normals], 0 for one GPU.
  //   source  E by Blom's approximation (Statistical Estimates and Transformed Beta-Variables, 1958), the
  //           normal quantile of (n - 3/8) / (n + 1/4): within 5 % for two, 1 % from 8 on.
  //           GPUs of one kind at one power limit differ by their silicon and their place in the air:
  //           arXiv 2208.11035 (8 % between the ends of five clusters), arXiv 2511.09861 (inside a node).
  [[nodiscard]] double slowest_of(int gpus) const;
};

// "h100-sxm5-80gb of 2026-11-21"; the name alone where a profile has no date, as one fitted on undated samples.
[[nodiscard]] std::string dated_name(const HardwareProfile& profile);

// Reads and checks a profile (format: calibrate/profile/README.md): every constant and every table has
// provenance and source, efficiencies lie in (0, 1.2], tables are not empty and say nothing twice, unknown
// keys are errors. Reports all mistakes to `diagnostics`; nullopt if there was one. The rows' log_ratio is
// filled in.
[[nodiscard]] std::optional<HardwareProfile> load_profile(const std::filesystem::path& file,
                                                          Diagnostics& diagnostics);
// Parses a text that is no file yet; `name` is for messages.
[[nodiscard]] std::optional<HardwareProfile> parse_profile(const std::string& text, const std::string& name,
                                                           Diagnostics& diagnostics);

}  // namespace stagecraft
