#include "calibrate/fit/fit_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "calibrate/fit/curve_fits.hpp"
#include "calibrate/fit/gemm_fit.hpp"
#include "calibrate/samples/statistics.hpp"

namespace stagecraft {

namespace {

std::string tag(const Sample& sample, const std::string& key, const std::string& fallback) {
  const auto found = sample.tags.find(key);
  return found == sample.tags.end() ? fallback : found->second;
}

std::int64_t extent(const Sample& sample, const std::string& key, std::int64_t fallback) {
  const auto found = sample.shape.find(key);
  return found == sample.shape.end() ? fallback : found->second;
}

// Multiprocessors that collectives hold: between these lie the 20 that DeepSeek-V3 gives its exchanges
// (arXiv 2412.19437, section 3.2.2) and the 16 or 24 channels of an NCCL ring inside a node of eight.
constexpr std::int64_t kLeastCollectiveSms = 16, kMostCollectiveSms = 24;

double rounded(double value, double step) {
  return std::round(value / step) * step;
}

std::string remark(const Sample& sample) {
  return fmt::format("{} repeats, spread {}{}", sample.repeats, percent(sample.spread, 2),
                     sample.date.empty() ? "" : ", " + sample.date);
}

// A trace of a training run does not say its driver.
std::string driver_text(const SampleSetup& setup) {
  return setup.driver.empty() ? "" : ", driver " + setup.driver;
}

// Fits family after family into a copy of the base.
class ProfileFitter {
 public:
  ProfileFitter(const SampleSet& set, const HardwareProfile& base) : set_(set) {
    out_.profile = base;
    out_.remarks.table = base.gemm.rows.empty() ? Provenance::kPublished : base.gemm.rows.front().provenance;
  }

  FittedProfile run() && {
    tell_limited();
    fit_kernel_gap();
    fit_overlap_slowdown();
    fit_gemms();
    fit_batched();
    fit_sustained();
    fit_fp8_gemms();
    fit_memory_kernels();
    fit_attention_kernels();
    fit_collectives();
    out_.unused = set_.samples.size() - used_;
    return std::move(out_);
  }

 private:
  using Samples = std::vector<const Sample*>;

  template <class Wanted>
  [[nodiscard]] Samples pick(const Wanted& wanted) const {
    Samples found;
    for (const Sample& sample : set_.samples)
      if (wanted(sample)) found.push_back(&sample);
    return found;
  }

  void tell_limited();
  void fit_kernel_gap();
  void fit_overlap_slowdown();
  void fit_gemms();
  void fit_batched();
  void fit_sustained();
  void fit_fp8_gemms();
  void fit_memory_kernels();
  void fit_attention_kernels();
  void fit_attention_curve(const std::string& kernel, const std::string& op, bool masked, FlashPass& pass);
  void fit_collectives();
  void fit_group(const CollectiveGroup& group, const Samples& samples);

  [[nodiscard]] std::string origin(std::size_t samples) const {
    return fmt::format("{} samples on {}{}{}", samples, set_.setup.device, driver_text(set_.setup),
                       set_.date.empty() ? "" : ", newest of " + set_.date);
  }
  template <class T>
  void measured(Sourced<T>& constant, T value, std::size_t samples, const std::string& how) {
    constant = {.value = value, .provenance = Provenance::kMeasured, .source = how + "; " + origin(samples)};
    used_ += samples;
  }
  void tell(std::string family, std::string outcome, FitErrors errors = {}) {
    out_.families.push_back(
        {.family = std::move(family), .outcome = std::move(outcome), .left_out = std::move(errors)});
  }
  [[nodiscard]] GemmDevice gemm_device() const;
  [[nodiscard]] Precision table_precision() const;
  [[nodiscard]] std::string_view table_load() const;
  [[nodiscard]] bool speaks(const Sample& sample) const;
  [[nodiscard]] std::vector<double> sustained_ratios(std::string_view dtype) const;

  const SampleSet& set_;
  FittedProfile out_;
  std::size_t used_ = 0;
  std::optional<double> gemm_t0_{};  // seconds of launch and drain in a burst, once products are fitted
};

std::optional<GemmLayout> layout_of(const Sample& sample) {
  const std::string word = tag(sample, "layout", "TN");
  const auto found = std::ranges::find(kGemmLayoutNames, word);
  if (found == std::end(kGemmLayoutNames)) return std::nullopt;
  return static_cast<GemmLayout>(found - std::begin(kGemmLayoutNames));
}

// The clock was below that of a burst while it ran: no point of the burst fit.
bool clock_limited(const Sample& sample) {
  return tag(sample, "seen_clock", "") == "limited";
}

bool plain_gemm(const Sample& sample, std::string_view dtype, std::string_view load) {
  if (load == "burst" && clock_limited(sample)) return false;
  return sample.family == "gemm" && layout_of(sample) && tag(sample, "dtype", "bf16") == dtype &&
         tag(sample, "load", "burst") == load && tag(sample, "cache", "cold") == "cold" &&
         !sample.tags.contains("chunks") && !sample.tags.contains("grouped");
}

GemmPoint point_of(const Sample& sample) {
  return {.size = {.m = extent(sample, "m", 1),
                   .n = extent(sample, "n", 1),
                   .k = extent(sample, "k", 1),
                   .batch = extent(sample, "batch", 1)},
          .layout = *layout_of(sample),
          .seconds = sample.median_s,
          .note = remark(sample)};
}

// A weight gradient is taken with its accumulation where both forms were measured.
std::vector<GemmPoint> points_of(const std::vector<const Sample*>& samples) {
  std::map<std::tuple<GemmLayout, std::int64_t, std::int64_t, std::int64_t>, const Sample*> by_shape;
  for (const Sample* sample : samples) {
    const GemmPoint point = point_of(*sample);
    const Sample*& kept = by_shape[{point.layout, point.size.m, point.size.n, point.size.k}];
    const bool accumulates = tag(*sample, "output", "") == "fp32_accumulate";
    if (kept == nullptr || accumulates == (point.layout == GemmLayout::kNT)) kept = sample;
  }
  std::vector<GemmPoint> points;
  for (const auto& [shape, sample] : by_shape) points.push_back(point_of(*sample));
  return points;
}

// Samples of a training run speak where their family has none of a benchmark.
bool ProfileFitter::speaks(const Sample& sample) const {
  return tag(sample, "load", "burst") != "training" ||
         std::ranges::none_of(set_.samples, [&](const Sample& other) {
           return other.family == sample.family && tag(other, "load", "burst") != "training";
         });
}

// Products of a training run speak where no benchmark does.
std::string_view ProfileFitter::table_load() const {
  const bool benchmark = std::ranges::any_of(set_.samples, [](const Sample& sample) {
    return sample.family == "gemm" && tag(sample, "load", "burst") == "burst";
  });
  return benchmark ? "burst" : "training";
}

Precision ProfileFitter::table_precision() const {
  const auto count = [&](std::string_view dtype) {
    return pick([&](const Sample& s) { return plain_gemm(s, dtype, table_load()); }).size();
  };
  return count("fp16") > count("bf16") ? Precision::kFp16 : Precision::kBf16;
}

GemmDevice ProfileFitter::gemm_device() const {
  const HardwareProfile& profile = out_.profile;
  return {.sms = profile.device.sms,
          .peak = profile.peak(table_precision()),
          .memory_bandwidth = profile.device.memory_bandwidth * profile.memory_efficiency.value};
}

std::string shape_name(const Sample& sample) {
  std::string words = tag(sample, "layout", "");
  for (const auto& [name, value] : sample.shape) words += fmt::format(" {} {}", name, value);
  return words;
}

// Which products were left out of the burst fit because power or heat held the clock.
void ProfileFitter::tell_limited() {
  std::vector<std::string> names;
  for (const Sample* sample : pick([](const Sample& s) {
         return s.family == "gemm" && tag(s, "load", "burst") == "burst" && clock_limited(s);
       }))
    names.push_back(shape_name(*sample));
  if (names.empty()) return;
  tell("gemm, clock limited",
       fmt::format("{} left out of the burst fit: {}", names.size(), join(names, "; ")));
}

void ProfileFitter::fit_kernel_gap() {
  std::vector<double> seconds;
  for (const Sample* sample : pick([](const Sample& s) {
         return s.family == "system" && s.op == "empty_kernel" && tag(s, "stream", "") == "busy";
       }))
    seconds.push_back(sample->median_s);
  if (seconds.empty()) return;
  const Duration gap = from_seconds(median(seconds));
  measured(out_.profile.host.kernel_gap, gap, seconds.size(), "an empty kernel in a busy stream, median");
  tell("system, kernel gap", human(gap));
}

// A collective is a kernel that copies and adds with this many multiprocessors; a product beside it is slower
// by what they and their memory traffic take.
void ProfileFitter::fit_overlap_slowdown() {
  const auto held = [](const Sample& s) { return s.shape.contains("sms") ? s.shape.at("sms") : -1; };
  const Samples beside = pick([&](const Sample& s) {
    return s.family == "interference" && s.op == "gemm_beside_reduce" && held(s) >= kLeastCollectiveSms &&
           held(s) <= kMostCollectiveSms;
  });
  std::vector<double> slowdowns;
  for (const Sample* sample : beside) {
    std::map<std::string, std::int64_t> alone = sample->shape;
    alone["sms"] = 0;
    for (const Sample* other : pick([&](const Sample& s) {
           return s.family == "interference" && s.shape == alone &&
                  tag(s, "layout", "") == tag(*sample, "layout", "");
         }))
      slowdowns.push_back(sample->median_s / other->median_s);
  }
  if (slowdowns.empty()) return;
  const double slowdown = std::clamp(median(slowdowns), 1.0, 2.0);
  measured(out_.profile.gradient_overlap_slowdown, slowdown, slowdowns.size(),
           fmt::format("products beside a kernel that copies and adds with {} to {} multiprocessors, median",
                       kLeastCollectiveSms, kMostCollectiveSms));
  tell("interference, overlap slowdown", fmt::format("{:.3f}", slowdown));
}

void ProfileFitter::fit_gemms() {
  const Precision precision = table_precision();
  const std::string_view dtype = kPrecisionNames[static_cast<std::size_t>(precision)];
  const Samples samples =
      pick([&](const Sample& s) { return plain_gemm(s, dtype, table_load()) && extent(s, "batch", 1) == 1; });
  if (samples.empty()) return;
  const std::vector<GemmPoint> points = points_of(samples);
  if (points.size() < kMinGemmPoints) {
    return tell("gemm", fmt::format("{} shapes, {} are needed: the base's table stays", points.size(),
                                    kMinGemmPoints));
  }
  GemmFit fit = fit_gemm(points, gemm_device(), out_.profile.gemm);
  gemm_t0_ = fit.t0_seconds;
  GemmModel& model = out_.profile.gemm = std::move(fit.model);
  const std::string errors = "each row left out in turn: " + fit.left_out.summary();
  for (Sourced<double>* e : {&model.efficiency_tn, &model.efficiency_nn, &model.efficiency_nt}) {
    e->value = rounded(e->value, 1e-4);
    e->provenance = Provenance::kAnalytic;
    e->source = "fitted with the tile model; " + origin(points.size());
  }
  for (GemmTile& tile : model.tiles) tile.rate = rounded(tile.rate, 1e-4);
  for (GemmRow& row : model.rows) {
    row.efficiency = std::min(rounded(row.efficiency, 1e-4), 1.2);
    row.provenance = Provenance::kMeasured;
  }
  model.tile_source = "fitted on the rows of the table; " + errors;
  model.correction_source = "chosen on the rows of the table; " + errors;
  model.table_source = origin(points.size()) + fmt::format("; launch and drain of {} taken out of each time",
                                                           human(from_seconds(fit.t0_seconds)));
  model.table_precisions = {precision};
  // Without sustained samples nothing says how a table of bursts falls under load.
  const bool training = table_load() == "training";
  model.scale = {.value = 1,
                 .provenance = training ? Provenance::kMeasured : Provenance::kAssumed,
                 .source = training
                               ? "the table is of a training run, at its clocks and with what ran beside it"
                               : "no sustained samples: training at the clocks of short bursts, which is too "
                                 "fast where power limits"};
  compare_with_formula(model, out_.profile.device.sms);
  out_.remarks.table = Provenance::kMeasured;
  out_.remarks.gemm_rows.clear();
  for (const GemmPoint& point : fit.points) out_.remarks.gemm_rows.push_back(point.note);
  used_ += points.size();
  tell("gemm",
       fmt::format("TN {:.3f}, NN {:.3f}, NT {:.3f}, {} rows", model.efficiency_tn.value,
                   model.efficiency_nn.value, model.efficiency_nt.value, model.rows.size()),
       fit.left_out);
}

void ProfileFitter::fit_batched() {
  const std::string_view dtype = kPrecisionNames[static_cast<std::size_t>(table_precision())];
  std::vector<GemmPoint> points;
  for (const Sample* sample : pick([&](const Sample& s) {
         return plain_gemm(s, dtype, table_load()) && extent(s, "batch", 1) > 1;
       })) {
    const GemmPoint point = point_of(*sample);
    if (point.size.m % 8 == 0 && point.size.n % 8 == 0 && point.size.k % 8 == 0) points.push_back(point);
  }
  if (points.empty()) return;
  GemmModel& model = out_.profile.gemm;
  const double share = std::min(rounded(fit_batched_efficiency(model, gemm_device(), points), 1e-4), 1.2);
  measured(model.batched_efficiency, share, points.size(), "median over the tile model");
  tell("gemm, batched", fmt::format("{:.3f} of peak", share));
}

// Burst over sustained time of every shape that has both.
std::vector<double> ProfileFitter::sustained_ratios(std::string_view dtype) const {
  std::vector<double> ratios;
  for (const Sample* loaded : pick([&](const Sample& s) { return plain_gemm(s, dtype, "sustained"); })) {
    for (const Sample* burst : pick([&](const Sample& s) { return plain_gemm(s, dtype, "burst"); })) {
      if (burst->shape == loaded->shape && layout_of(*burst) == layout_of(*loaded))
        ratios.push_back(burst->median_s / loaded->median_s);
    }
  }
  return ratios;
}

void ProfileFitter::fit_sustained() {
  const std::vector<double> ratios =
      sustained_ratios(kPrecisionNames[static_cast<std::size_t>(table_precision())]);
  if (ratios.empty()) return;
  const double scale = std::min(rounded(median(ratios), 1e-4), 2.0);
  measured(out_.profile.gemm.scale, scale, ratios.size(),
           "sustained over burst rate of the same shape, median");
  tell("gemm, sustained", fmt::format("{:.3f} of the burst rate", scale));
}

// Forward products in e4m3, backward ones with gradients in e5m2. The profile charges `scale`, the clock of a
// long run in 16 bit: what fp8 holds of its own burst goes into the factor.
void ProfileFitter::fit_fp8_gemms() {
  HardwareProfile& profile = out_.profile;
  if (!gemm_t0_ || profile.device.peak_fp8.count() == 0) return;
  std::vector<GemmPoint> points;
  std::vector<double> sustained;
  for (const std::string_view dtype : {"e4m3", "e5m2"}) {
    for (const Sample* sample : pick([&](const Sample& s) {
           return plain_gemm(s, dtype, table_load()) && extent(s, "batch", 1) == 1;
         }))
      points.push_back(point_of(*sample));
    std::ranges::copy(sustained_ratios(dtype), std::back_inserter(sustained));
  }
  if (points.size() < kMinFp8Points) return;
  GemmDevice device = gemm_device();
  device.peak = profile.device.peak_fp8;
  const Fp8Fit fit = fit_fp8(profile.gemm, device, *gemm_t0_, points);
  const double clock = sustained.empty() ? 1 : median(sustained) / profile.gemm.scale.value;
  const std::string how =
      "with the tile model and the layout efficiency of 16 bit; in sample: " + fit.errors.summary() +
      (sustained.empty() ? "; no sustained samples in fp8: the clock of 16 bit"
                         : fmt::format("; {:.3f} of its burst in a long run", median(sustained)));
  measured(profile.gemm.fp8_factor, std::min(rounded(fit.factor * clock, 1e-4), 1.2), points.size(), how);
  profile.gemm.fp8_prologue = Sourced<double>{
      .value = fit.prologue, .provenance = Provenance::kMeasured, .source = profile.gemm.fp8_factor.source};
  tell("gemm, fp8",
       fmt::format("{:.3f} of 16 bit, prologue {:.0f}, {} rows", fit.factor * clock, fit.prologue,
                   points.size()),
       fit.errors);
}

void ProfileFitter::fit_memory_kernels() {
  std::map<std::string, Samples> by_op;
  for (const Sample* sample : pick([&](const Sample& s) {
         return s.family == "kernel" && speaks(s) && s.bytes > 0 && tag(s, "variant", "fused") == "fused" &&
                tag(s, "cache", "cold") == "cold";
       }))
    by_op[sample->op].push_back(sample);
  std::vector<double> shares;
  std::size_t count = 0;
  FitErrors errors;
  for (const auto& [op, samples] : by_op) {
    std::vector<CurvePoint> points;
    for (const Sample* sample : samples)
      points.push_back({.size = sample->bytes, .seconds = sample->median_s});
    if (points.size() < 3) continue;
    const std::optional<MemoryFit> fit = fit_memory(op, points);
    if (!fit) continue;
    shares.push_back(fit->bandwidth / out_.profile.device.memory_bandwidth);
    for (const RowError& row : fit->left_out.rows()) errors.add(row.row, 1 + row.error, 1);
    count += points.size();
  }
  if (shares.empty()) return;
  const double share = std::min(rounded(median(shares), 1e-4), 1.2);
  measured(out_.profile.memory_efficiency, share, count,
           fmt::format("median of {} fused kernels of t0 + bytes/B; each sample left out: {}", shares.size(),
                       errors.summary()));
  tell("kernel", fmt::format("{} of the memory bandwidth", percent(share)), errors);
}

bool causal(const Sample& sample) {
  const std::string word = tag(sample, "causal", "false");
  return word == "true" || word == "yes" || word == "1";
}

// FLOPs that the kernel does: scores and values forward, two and a half times that backward; half of the
// square under a mask.
double attention_flops(const Sample& sample) {
  const auto length = static_cast<double>(extent(sample, "sequence", 0));
  const double forward = 4 * length * length * static_cast<double>(extent(sample, "batch", 1)) *
                         static_cast<double>(extent(sample, "heads", 1)) *
                         static_cast<double>(extent(sample, "head_size", 0));
  return (sample.op == "flash_backward" ? 2.5 : 1) * (causal(sample) ? 0.5 : 1) * forward;
}

// What a profile adds or takes off beside the curve: gap and fixed part, occupancy, head size. A curve is
// fitted to what is left, so that the price of a sample is the sample.
double curve_seconds(const HardwareProfile& profile, const FlashPass& pass, const Sample& sample) {
  const double length = static_cast<double>(extent(sample, "sequence", 0));
  const double heads =
      static_cast<double>(extent(sample, "batch", 1)) * static_cast<double>(extent(sample, "heads", 1));
  const double constant =
      to_seconds(profile.attention.fixed.value) + to_seconds(profile.host.kernel_gap.value);
  const double share = flash_occupancy(pass.half_blocks.value * profile.device.sms,
                                       heads * std::ceil(length / kFlashBlockQueries)) *
                       flash_head_share(profile.attention.half_head_size.value,
                                        static_cast<double>(extent(sample, "head_size", 0)));
  return std::max(sample.median_s - constant, 0.5 * sample.median_s) * share;
}

void ProfileFitter::fit_attention_curve(const std::string& kernel, const std::string& op, bool masked,
                                        FlashPass& pass) {
  FlashCurve& curve = masked ? pass.causal : pass.dense;
  const Samples samples = pick([&](const Sample& s) {
    return s.family == "attention" && speaks(s) && s.op == op && attention_flops(s) > 0 &&
           causal(s) == masked && tag(s, "implementation", kernel) == kernel;
  });
  std::map<double, std::vector<double>> rates;  // by length; of several head counts and sizes the median
  for (const Sample* sample : samples)
    rates[static_cast<double>(extent(*sample, "sequence", 1))].push_back(
        attention_flops(*sample) / curve_seconds(out_.profile, pass, *sample));
  std::vector<AttentionPoint> points;
  for (const auto& [length, of_length] : rates)
    points.push_back({.length = length, .rate = FlopRate(median(of_length))});
  const std::string family = fmt::format("{}, {}, {}", kernel, op, masked ? "causal" : "dense");
  if (points.size() < 3) {
    if (!points.empty())
      tell(family, fmt::format("{} lengths, 3 are needed: the base's curve stays", points.size()));
    return;
  }
  const std::optional<AttentionFit> fit = fit_attention(family, points);
  if (!fit) return tell(family, "the rate shows no limit: the base's curve stays");
  curve = {.rate = FlopRate(rounded(fit->rate.count(), 1e9)),
           .half_length = rounded(fit->half_length, 1),
           .provenance = Provenance::kMeasured,
           .source = fmt::format("R L/(L + L_half) over {} lengths, each left out: {}; {}", points.size(),
                                 fit->left_out.summary(), origin(samples.size()))};
  used_ += samples.size();
  tell(family, fmt::format("{}, half of it at {:.0f}", human(curve.rate), curve.half_length), fit->left_out);
}

// The kernel called so; a new one starts as the one in use, of which it keeps what was not measured.
FlashKernel& kernel_called(AttentionModel& model, const std::string& name) {
  const auto found = std::ranges::find(model.kernels, name, &FlashKernel::name);
  if (found != model.kernels.end()) return *found;
  FlashKernel fresh = model.kernel();
  fresh.name = name;
  return model.kernels.emplace_back(std::move(fresh));
}

// A sample without `implementation` is of the kernel in use. Where the samples are of one kernel, a run takes
// that one.
void ProfileFitter::fit_attention_kernels() {
  AttentionModel& model = out_.profile.attention;
  std::set<std::string> names;
  for (const Sample* sample : pick([&](const Sample& s) { return s.family == "attention" && speaks(s); }))
    names.insert(tag(*sample, "implementation", model.kernel().name));
  for (const std::string& name : names) {
    FlashKernel& kernel = kernel_called(model, name);
    for (const bool masked : {true, false}) {
      fit_attention_curve(name, "flash_forward", masked, kernel.forward);
      fit_attention_curve(name, "flash_backward", masked, kernel.backward);
    }
    if (names.size() == 1) model.in_use = static_cast<std::size_t>(&kernel - model.kernels.data());
  }
}

std::optional<CollectiveKind> collective_kind(const std::string& op) {
  std::string word = op;
  std::ranges::replace(word, '_', '-');
  if (word == "sendrecv" || word == "send-recv") word = "send-receive";
  if (word == "alltoall") word = "all-to-all";
  const auto found = std::ranges::find(kCollectiveNames, word);
  if (found == std::end(kCollectiveNames)) return std::nullopt;
  return static_cast<CollectiveKind>(found - std::begin(kCollectiveNames));
}

void ProfileFitter::fit_group(const CollectiveGroup& group, const Samples& samples) {
  std::map<double, std::vector<double>> times;  // in place and not: the median
  for (const Sample* sample : samples)
    times[static_cast<double>(extent(*sample, "bytes", 1))].push_back(sample->median_s);
  std::vector<CurvePoint> points;
  for (const auto& [bytes, of_size] : times) points.push_back({.size = bytes, .seconds = median(of_size)});
  if (points.size() < kMinCollectivePoints) {
    return tell(group_name(group),
                fmt::format("{} sizes, {} are needed", points.size(), kMinCollectivePoints));
  }
  FittedCollective fitted = fit_collective(group, points);
  fitted.fit.bus_bandwidth = Bandwidth(rounded(fitted.fit.bus_bandwidth.count(), 1e7));
  fitted.fit.provenance = Provenance::kMeasured;
  fitted.fit.source =
      fmt::format("{}; each size left out: {}", origin(samples.size()), fitted.left_out.summary());
  std::erase_if(out_.profile.collectives, [&](const CollectiveFit& other) {
    return other.kind == group.kind && other.ranks == group.ranks && other.nodes == group.nodes &&
           other.algorithm == group.algorithm;
  });
  out_.profile.collectives.push_back(fitted.fit);
  used_ += samples.size();
  tell(group_name(group),
       fmt::format("{} + S*f / {}", human(fitted.fit.latency), human(fitted.fit.bus_bandwidth)),
       fitted.left_out);
}

void ProfileFitter::fit_collectives() {
  std::map<std::tuple<CollectiveKind, int, int, std::string>, Samples> groups;
  for (const Sample& sample : set_.samples) {
    const std::optional<CollectiveKind> kind = collective_kind(sample.op);
    const auto ranks = static_cast<int>(extent(sample, "ranks", 0));
    const auto nodes = static_cast<int>(extent(sample, "nodes", 1));
    if (sample.family != "nccl" || !kind || ranks < 2 || nodes < 1 || ranks % nodes != 0) continue;
    if (extent(sample, "bytes", 0) <= 0) continue;
    const std::string word = tag(sample, "algorithm", "any");
    const bool known = std::ranges::find(kCollectiveAlgorithms, word) != std::end(kCollectiveAlgorithms);
    groups[{*kind, ranks, nodes, known ? word : "any"}].push_back(&sample);
  }
  for (const auto& [key, samples] : groups) {
    const auto& [kind, ranks, nodes, algorithm] = key;
    fit_group({.kind = kind, .ranks = ranks, .nodes = nodes, .algorithm = algorithm}, samples);
  }
}

}  // namespace

std::optional<FittedProfile> fit_profile(const SampleSet& samples, const HardwareProfile& base,
                                         const std::string& name, Diagnostics& diagnostics) {
  if (samples.setup.device != base.device.name) {
    diagnostics.error(
        {.code = "other-device",
         .message = fmt::format("the samples are of '{}', the base profile is of '{}'", samples.setup.device,
                                base.device.name),
         .hint = "copy the base and write the device section from the data sheet: its number of SMs, "
                 "memory and peaks are what efficiencies are shares of"});
    return std::nullopt;
  }
  FittedProfile fitted = ProfileFitter(samples, base).run();
  if (fitted.unused == samples.samples.size()) {
    diagnostics.error(
        {.code = "nothing-fitted",
         .message = fmt::format("none of {} samples serves a constant of a profile", samples.samples.size()),
         .hint = "a profile needs GEMMs of 16 shapes, fused kernels, attention of 3 lengths or collectives "
                 "of 4 sizes"});
    return std::nullopt;
  }
  fitted.profile.name = name;
  fitted.profile.date = samples.date.substr(0, 10);
  fitted.profile.made_by = "stagecraft calibrate fit, base " + base.name;
  fitted.remarks.heading =
      fmt::format("Fitted by stagecraft from {} samples on {}{}.", samples.samples.size() - fitted.unused,
                  samples.setup.device, driver_text(samples.setup));
  return fitted;
}

std::string to_yaml(const FittedProfile& fitted) {
  return write_profile(fitted.profile, fitted.remarks);
}

}  // namespace stagecraft
