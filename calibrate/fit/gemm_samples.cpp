#include "calibrate/fit/gemm_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "calibrate/fit/gemm_fit.hpp"
#include "calibrate/samples/statistics.hpp"

namespace stagecraft {
namespace {

std::optional<GemmLayout> layout_of(const Sample& sample) {
  const std::string word = tag_of(sample, "layout", "TN");
  const auto found = std::ranges::find(kGemmLayoutNames, word);
  if (found == std::end(kGemmLayoutNames)) return std::nullopt;
  return static_cast<GemmLayout>(found - std::begin(kGemmLayoutNames));
}

// Shapes of batched GEMMs whose median stands for all: as of the other factor on the table, that of fp8.
constexpr std::size_t kMinBatchedShapes = kMinFp8Points;
constexpr std::size_t kLimitedShown = 2;  // number of GEMMs with a limited clock that are named

// The clock was below that of a burst while it ran: no point of the burst fit.
bool clock_limited(const Sample& sample) {
  return tag_of(sample, "seen_clock", "") == "limited";
}

bool plain_gemm(const Sample& sample, std::string_view dtype, std::string_view load) {
  if (load == "burst" && clock_limited(sample)) return false;
  return sample.family == "gemm" && sample.op == "gemm" && layout_of(sample) &&
         tag_of(sample, "dtype", "bf16") == dtype && tag_of(sample, "load", "burst") == load &&
         tag_of(sample, "cache", "cold") == "cold" && !sample.tags.contains("chunks") &&
         !sample.tags.contains("grouped");
}

// Comment beside a row of the table.
std::string remark(const Sample& sample) {
  return fmt::format("{} repeats, spread {}{}", sample.repeats, percent(sample.spread, 2),
                     sample.date.empty() ? "" : ", " + sample.date);
}

// The pass that a product is of, as a layout. Operands in fp8 all have the TN layout: gradients are in e5m2,
// and those of weights accumulate.
GemmLayout pass_of(const Sample& sample) {
  if (tag_of(sample, "dtype", "bf16") != "e5m2") return *layout_of(sample);
  return tag_of(sample, "output", "") == "fp32_accumulate" ? GemmLayout::kNT : GemmLayout::kNN;
}

GemmPoint point_of(const Sample& sample) {
  return {.size = {.m = extent_of(sample, "m", 1),
                   .n = extent_of(sample, "n", 1),
                   .k = extent_of(sample, "k", 1),
                   .batch = extent_of(sample, "batch", 1)},
          .layout = pass_of(sample),
          .seconds = sample.median_s,
          .note = remark(sample)};
}

// Each shape once: a weight gradient with its accumulation where both forms were measured.
ProfileDraft::Samples one_a_shape(const ProfileDraft::Samples& samples) {
  std::map<std::tuple<GemmLayout, std::int64_t, std::int64_t, std::int64_t>, const Sample*> by_shape;
  for (const Sample* sample : samples) {
    const GemmPoint point = point_of(*sample);
    const Sample*& kept = by_shape[{point.layout, point.size.m, point.size.n, point.size.k}];
    const bool accumulates = tag_of(*sample, "output", "") == "fp32_accumulate";
    if (kept == nullptr || accumulates == (point.layout == GemmLayout::kNT)) kept = sample;
  }
  ProfileDraft::Samples kept;
  for (const auto& [shape, sample] : by_shape) kept.push_back(sample);
  return kept;
}

std::size_t count_shapes(const ProfileDraft::Samples& samples) {
  std::set<std::vector<std::int64_t>> shapes;
  for (const Sample* sample : samples) {
    const GemmSize size = point_of(*sample).size;
    shapes.insert({size.m, size.n, size.k, size.batch});
  }
  return shapes.size();
}

std::vector<GemmPoint> points_of(const ProfileDraft::Samples& samples) {
  std::vector<GemmPoint> points;
  for (const Sample* sample : samples) points.push_back(point_of(*sample));
  return points;
}

bool has_row(const GemmTable& table, const GemmPoint& point) {
  return std::ranges::any_of(table.rows, [&](const GemmRow& row) {
    return row.m == point.size.m && row.n == point.size.n && row.k == point.size.k &&
           row.layout == point.layout;
  });
}

// The comments beside the rows of a table.
std::vector<std::string> notes_of(const std::vector<GemmPoint>& points) {
  std::vector<std::string> notes;
  for (const GemmPoint& point : points) notes.push_back(point.note);
  return notes;
}

// Measured rows, rounded to the digits of a file. Small products, which are mostly launch, have finer ones,
// down to the least that the format holds.
void round_rows(std::vector<GemmRow>& rows) {
  constexpr double kLeast = 1e-6;
  for (GemmRow& row : rows) {
    const double step = row.efficiency < 1e-3 ? kLeast : 1e-4;
    row.efficiency = std::clamp(rounded_to(row.efficiency, step), kLeast, 1.2);
    row.provenance = Provenance::kMeasured;
  }
}

// Products of a training run speak where no benchmark does.
std::string_view table_load(const ProfileDraft& draft) {
  const auto bursts =
      draft.pick([](const Sample& s) { return s.family == "gemm" && tag_of(s, "load", "burst") == "burst"; });
  return bursts.empty() ? "training" : "burst";
}

Precision table_precision(const ProfileDraft& draft, std::string_view load) {
  const auto count = [&](std::string_view dtype) {
    return draft.pick([&](const Sample& s) { return plain_gemm(s, dtype, load); }).size();
  };
  return count("fp16") > count("bf16") ? Precision::kFp16 : Precision::kBf16;
}

class GemmSamplesFit {
 public:
  GemmSamplesFit(ProfileDraft& draft, bool launch_was_timed)
      : draft_(draft),
        launch_was_timed_(launch_was_timed),
        load_(table_load(draft)),
        precision_(table_precision(draft, load_)) {}

  std::optional<double> run() {
    if (!draft_.profile().supports(precision_)) {
      const auto ours = draft_.pick([&](const Sample& s) { return plain_gemm(s, dtype_, load_); });
      if (!ours.empty())
        draft_.tell("gemm", fmt::format("the base has no peak in {}: its table stays", dtype_));
      return std::nullopt;
    }
    fit_table();
    fit_batched();
    fit_sustained();
    fit_fp8_products();
    return t0_seconds_;
  }

 private:
  void fit_table();
  void fit_batched();
  void fit_sustained();
  void fit_fp8_products();
  void set_fp8(Fp8Fit& fit, const ProfileDraft::Samples& products);
  void set_fp8_scale(const SampleRatios& sustained);
  [[nodiscard]] GemmModel sourced(const GemmFit& fit, std::size_t points) const;
  [[nodiscard]] SampleRatios sustained_ratios(std::string_view dtype, std::string_view mix) const;
  [[nodiscard]] GemmDevice gemm_device() const;

  ProfileDraft& draft_;
  bool launch_was_timed_;
  std::string_view load_;  // load of the table's samples
  Precision precision_;    // and their precision
  std::string_view dtype_ = kPrecisionNames[static_cast<std::size_t>(precision_)];
  std::optional<double> t0_seconds_{};  // launch and drain in a burst, once there is a table
};

GemmDevice GemmSamplesFit::gemm_device() const {
  const HardwareProfile& profile = draft_.profile();
  return {.sms = profile.device.sms,
          .peak = profile.peak(precision_),
          .memory_bandwidth = profile.device.memory_bandwidth * profile.memory_efficiency.value};
}

void GemmSamplesFit::fit_table() {
  const ProfileDraft::Samples samples = one_a_shape(draft_.pick(
      [&](const Sample& s) { return plain_gemm(s, dtype_, load_) && extent_of(s, "batch", 1) == 1; }));
  const std::vector<GemmPoint> points = points_of(samples);
  if (points.empty()) return;
  if (points.size() < kMinGemmPoints) {
    return draft_.tell("gemm", fmt::format("{} shapes, {} are needed: the base's table stays", points.size(),
                                           kMinGemmPoints));
  }
  GemmDevice device = gemm_device();
  if (!launch_was_timed_) device.launch_seconds = to_seconds(draft_.profile().host.kernel_gap.value);
  const GemmFit fit = fit_gemm(points, device, draft_.profile().gemm);
  t0_seconds_ = fit.t0_seconds;
  const GemmModel& model = draft_.profile().gemm = sourced(fit, points.size());
  draft_.remarks().table = Provenance::kMeasured;
  draft_.remarks().gemm_rows = notes_of(fit.points);
  draft_.use(samples);
  draft_.tell("gemm",
              fmt::format("TN {:.3f}, NN {:.3f}, NT {:.3f}, {} rows", model.efficiency_tn.value,
                          model.efficiency_nn.value, model.efficiency_nt.value, model.table.rows.size()),
              fit.left_out);
  const double doubtful = std::log(2.0);  // a time off by a factor of two
  // One bad time misleads its neighbours, but not the formula, which far rows hardly bend. A time that is
  // mostly launch is no row.
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const RowError& left_out = fit.left_out.rows()[i];
    if (std::min(left_out.factor(), fit.formula.rows()[i].factor()) > doubtful &&
        has_row(model.table, points[i]))
      draft_.doubt(*samples[i], left_out);
  }
}

// The fitted model, rounded to the digits of a file, with the source of each constant. A scale of the base
// below 1 is what long runs hold of bursts, which the samples of bursts do not change; one above 1 is of a
// table of a slower device.
GemmModel GemmSamplesFit::sourced(const GemmFit& fit, std::size_t points) const {
  GemmModel model = fit.model;
  const std::string errors = "each row left out in turn: " + fit.left_out.summary();
  for (Sourced<double>* e : {&model.efficiency_tn, &model.efficiency_nn, &model.efficiency_nt}) {
    e->value = rounded_to(e->value, 1e-4);
    e->provenance = Provenance::kAnalytic;
    e->source = "fitted with the tile model; " + draft_.origin(points);
  }
  for (GemmTile& tile : model.tiles) tile.rate = rounded_to(tile.rate, 1e-4);
  round_rows(model.table.rows);
  model.tile_source = "fitted on the rows of the table; " + errors;
  model.correction_source = "chosen on the rows of the table; " + errors;
  model.table.source = draft_.origin(points) + fmt::format("; {} of {} taken out of each time",
                                                           launch_was_timed_ ? "launch and drain" : "the gap",
                                                           human(from_seconds(fit.t0_seconds)));
  model.table_precisions = {precision_};
  if (load_ == "training")
    model.scale = {.value = 1,
                   .provenance = Provenance::kMeasured,
                   .source = "the table is of a training run, at its clocks and with what ran beside it"};
  else if (model.scale.value >= 1)
    model.scale = {.value = 1,
                   .provenance = Provenance::kAssumed,
                   .source =
                       "no sustained samples: training at the clocks of short bursts, which is too "
                       "fast where power limits"};
  compare_with_formula(model, draft_.profile().device.sms);
  return model;
}

void GemmSamplesFit::fit_batched() {
  const ProfileDraft::Samples samples = draft_.pick([&](const Sample& s) {
    if (!plain_gemm(s, dtype_, load_) || extent_of(s, "batch", 1) == 1) return false;
    const GemmSize size = point_of(s).size;
    return size.m % 8 == 0 && size.n % 8 == 0 && size.k % 8 == 0;
  });
  if (samples.empty()) return;
  if (const std::size_t shapes = count_shapes(samples); shapes < kMinBatchedShapes)
    return draft_.tell("gemm, batched", fmt::format("{} of {} shapes that are needed: the base's share stays",
                                                    shapes, kMinBatchedShapes));
  GemmModel& model = draft_.profile().gemm;
  const double share =
      std::min(rounded_to(fit_batched_efficiency(model, gemm_device(), points_of(samples)), 1e-4), 1.2);
  draft_.measured(model.batched_efficiency, share, samples, "median over the tile model");
  draft_.tell("gemm, batched", fmt::format("{:.3f} of peak", share));
}

// Burst over sustained time of every shape that has both, in this mix of operators; empty: in any.
SampleRatios GemmSamplesFit::sustained_ratios(std::string_view dtype, std::string_view mix) const {
  SampleRatios ratios;
  for (const Sample* loaded :
       draft_.pick([&](const Sample& s) { return plain_gemm(s, dtype, "sustained"); })) {
    if (!mix.empty() && tag_of(*loaded, "mix", "") != mix) continue;
    for (const Sample* burst : draft_.pick([&](const Sample& s) { return plain_gemm(s, dtype, "burst"); })) {
      if (burst->shape == loaded->shape && layout_of(*burst) == layout_of(*loaded) &&
          tag_of(*burst, "output", "") == tag_of(*loaded, "output", ""))
        ratios.add(*loaded, burst->median_s / loaded->median_s);
    }
  }
  return ratios;
}

// Between attention and memory-bound kernels, as in a layer, GEMMs get more of the power budget than alone.
// The sample of that mix is used where it was measured.
void GemmSamplesFit::fit_sustained() {
  SampleRatios ratios = sustained_ratios(dtype_, "layer");
  const bool of_layer = !ratios.values.empty();
  if (!of_layer) ratios = sustained_ratios(dtype_, "");
  if (ratios.values.empty()) {
    const Sourced<double>& kept = draft_.profile().gemm.scale;
    if (t0_seconds_ && load_ == "burst")
      draft_.tell("gemm, sustained", fmt::format("no samples: {:.3f} of the burst rate, {}", kept.value,
                                                 kept.value < 1 ? "as the base has it" : "assumed"));
    return;
  }
  const double scale = std::min(rounded_to(median(ratios.values), 1e-4), 2.0);
  draft_.measured(draft_.profile().gemm.scale, scale, ratios.samples,
                  of_layer
                      ? "sustained over burst rate of the same shape, among attention and copies as in a "
                        "layer, median"
                      : "sustained over burst rate of the same shape, median");
  draft_.tell("gemm, sustained", fmt::format("{:.3f} of the burst rate", scale));
}

// What fp8 holds of its burst in a long run over what 16 bit holds in the same mix, GEMMs alone: a layer, whose
// other work leaves GEMMs more of the power, is taken to give both the same factor.
void GemmSamplesFit::set_fp8_scale(const SampleRatios& sustained) {
  GemmModel& model = draft_.profile().gemm;
  const SampleRatios alone = sustained_ratios(dtype_, "gemm");
  const double sixteen_bit = alone.values.empty() ? model.scale.value : median(alone.values);
  const double held = median(sustained.values);
  draft_.measured(
      model.fp8_scale.emplace(), std::min(rounded_to(model.scale.value * held / sixteen_bit, 1e-4), 2.0),
      sustained.samples,
      fmt::format("scale, times {:.3f} of a burst in a long run over {:.3f} of one in 16 bit, GEMMs alone",
                  held, sixteen_bit));
  draft_.use(alone.samples);
}

// Forward GEMMs in e4m3, backward GEMMs with gradients in e5m2.
void GemmSamplesFit::fit_fp8_products() {
  HardwareProfile& profile = draft_.profile();
  if (!t0_seconds_ || profile.device.peak_fp8.count() == 0) return;
  ProfileDraft::Samples products;
  SampleRatios sustained;
  for (const std::string_view dtype : {"e4m3", "e5m2"}) {
    const auto unbatched = [&](const Sample& s) {
      return plain_gemm(s, dtype, load_) && extent_of(s, "batch", 1) == 1;
    };
    std::ranges::copy(draft_.pick(unbatched), std::back_inserter(products));
    const SampleRatios of_type = sustained_ratios(dtype, "");
    std::ranges::copy(of_type.values, std::back_inserter(sustained.values));
    std::ranges::copy(of_type.samples, std::back_inserter(sustained.samples));
  }
  products = one_a_shape(products);
  const std::vector<GemmPoint> points = points_of(products);
  if (points.size() < kMinFp8Points) return;
  GemmDevice device = gemm_device();
  device.peak = profile.device.peak_fp8;
  device.element_bytes = 1;
  Fp8Fit fit = fit_fp8(profile.gemm, device, *t0_seconds_, points);
  set_fp8(fit, products);
  if (!sustained.values.empty()) set_fp8_scale(sustained);
  draft_.tell("gemm, fp8",
              fmt::format("{:.3f} of 16 bit, prologue {:.0f}, {} rows", fit.factor, fit.prologue,
                          profile.gemm.fp8_table->rows.size()),
              fit.left_out);
}

// Factor, prologue and table, rounded to the digits of a file.
void GemmSamplesFit::set_fp8(Fp8Fit& fit, const ProfileDraft::Samples& products) {
  GemmModel& model = draft_.profile().gemm;
  const std::string errors = "each row left out of the table in turn: " + fit.left_out.summary();
  draft_.measured(model.fp8_factor, std::min(rounded_to(fit.factor, 1e-4), kMostFp8Factor), products,
                  "in bursts, with the tile model and the layout efficiencies of 16 bit; " + errors);
  model.fp8_prologue = Sourced<double>{
      .value = fit.prologue, .provenance = Provenance::kMeasured, .source = model.fp8_factor.source};
  fit.table.source = draft_.origin(products.size()) + "; " + errors;
  round_rows(fit.table.rows);
  model.fp8_table = std::move(fit.table);
  draft_.remarks().fp8_rows = notes_of(fit.points);
  compare_with_formula(model, draft_.profile().device.sms);
}

std::string shape_name(const Sample& sample) {
  std::string words = tag_of(sample, "layout", "");
  for (const auto& [name, value] : sample.shape) words += fmt::format(" {} {}", name, value);
  return words;
}

}  // namespace

std::optional<double> fit_gemm_samples(ProfileDraft& draft, bool launch_was_timed) {
  return GemmSamplesFit(draft, launch_was_timed).run();
}

void tell_limited_gemms(ProfileDraft& draft) {
  std::vector<std::string> names;
  for (const Sample* sample : draft.pick([](const Sample& s) {
         return s.family == "gemm" && tag_of(s, "load", "burst") == "burst" && clock_limited(s);
       }))
    names.push_back(shape_name(*sample));
  if (names.empty()) return;
  const std::size_t count = names.size();
  if (count > kLimitedShown) {
    names.resize(kLimitedShown);
    names.push_back("and others with the tag seen_clock:limited");
  }
  draft.tell("gemm, clock limited",
             fmt::format("{} left out of the burst fit: {}", count, join(names, "; ")));
}

}  // namespace stagecraft
