#include "calibrate/fit/gemm_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "calibrate/fit/least_squares.hpp"

namespace stagecraft {

namespace {

using Eigen::Index;
using Eigen::VectorXd;

// Tiles that cuBLAS has kernels for on every device since the A100.
constexpr std::pair<std::int64_t, std::int64_t> kTiles[] = {{128, 256}, {256, 128}, {128, 128}, {64, 256},
                                                            {256, 64},  {128, 64},  {64, 128},  {64, 64}};
// Grids for the whole numbers and for the correction.
constexpr std::int64_t kPrologues[] = {0, 25, 50, 100, 150, 200, 300};
struct SplitRule {
  std::int64_t max = 1, min_depth = 1024;
};
constexpr SplitRule kSplitRules[] = {{1, 1024}, {4, 1024}, {4, 512}, {8, 512}, {8, 256}, {16, 256}};
constexpr double kRadii[] = {0.3, 0.45, 0.6, 0.8, 1.0, 1.3};
constexpr double kPriors[] = {0.1, 0.3, 1.0, 3.0};
// A larger shape may cost this share less: no median is known better, and within one wave the formula is
// flat.
constexpr double kFlat = 0.003;
constexpr double kMostlyLaunch = 2.0 / 3;
constexpr int kFp8Prologues[] = {0, 50, 100, 200, 300, 400, 500, 600, 700, 800, 1000, 1200, 1600};
constexpr double kLeastSeconds = 1e-9;

double flops(const GemmSize& size) {
  return 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k) *
         static_cast<double>(size.batch);
}

double bytes(const GemmPoint& point, double element) {
  const auto& s = point.size;
  const auto area = [&](std::int64_t a, std::int64_t b) { return static_cast<double>(a * b * s.batch); };
  // A weight gradient reads and writes fp32 main gradients; fp8 GEMMs write 16 bits.
  const double output = point.layout == GemmLayout::kNT ? 8 : std::max(element, 2.0);
  return element * (area(s.m, s.k) + area(s.k, s.n)) + output * area(s.m, s.n);
}

// Tiles of one size share their rate: 128 x 256 (which is 1), 128 x 128, 64 x 256, 64 x 128, 64 x 64.
constexpr std::size_t kTileClass[] = {0, 0, 1, 2, 2, 3, 3, 4};
using ClassRates = std::array<double, 5>;

void set_tiles(GemmModel& model, const ClassRates& rates) {
  model.tiles.clear();
  for (std::size_t i = 0; i < std::size(kTiles); ++i)
    model.tiles.push_back(
        {.m = kTiles[i].first, .n = kTiles[i].second, .rate = std::min(1.0, rates[kTileClass[i]])});
}

Sourced<double>& layout_efficiency(GemmModel& model, GemmLayout layout) {
  switch (layout) {
    case GemmLayout::kTN:
      return model.efficiency_tn;
    case GemmLayout::kNN:
      return model.efficiency_nn;
    case GemmLayout::kNT:
      break;
  }
  return model.efficiency_nt;
}

// The continuous constants as a vector of logarithms: [t0], edge, then e of each layout that has points.
class Constants {
 public:
  Constants(const std::vector<GemmPoint>& points, const GemmDevice& device)
      : launch_seconds_(device.launch_seconds) {
    for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT}) {
      if (std::ranges::any_of(points, [&](const GemmPoint& p) { return p.layout == layout; }))
        layouts_.push_back(layout);
    }
  }

  [[nodiscard]] VectorXd read(const GemmFit& fit) const {
    VectorXd x(first_layout() + static_cast<Index>(layouts_.size()));
    if (!launch_seconds_) x(0) = std::log(fit.t0_seconds);
    for (std::size_t i = 1; i < std::size(kTiles); ++i)
      if (kTileClass[i] > 0)
        x(first_rate() + static_cast<Index>(kTileClass[i]) - 1) = std::log(fit.model.tiles[i].rate);
    for (std::size_t i = 0; i < layouts_.size(); ++i)
      x(first_layout() + static_cast<Index>(i)) = std::log(fit.model.efficiency(layouts_[i]).value);
    return x;
  }

  void write(const VectorXd& x, GemmFit& fit) const {
    fit.t0_seconds = launch_seconds_ ? *launch_seconds_ : std::exp(x(0));
    ClassRates rates{1};
    for (std::size_t c = 1; c < rates.size(); ++c)
      rates[c] = std::exp(x(first_rate() + static_cast<Index>(c) - 1));
    set_tiles(fit.model, rates);
    for (std::size_t i = 0; i < layouts_.size(); ++i)
      layout_efficiency(fit.model, layouts_[i]).value = std::exp(x(first_layout() + static_cast<Index>(i)));
  }

  // Fills in layouts without samples.
  void fill_missing(GemmModel& model) const {
    for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT}) {
      if (std::ranges::find(layouts_, layout) == layouts_.end())
        layout_efficiency(model, layout) = model.efficiency(layouts_.front());
    }
  }

 private:
  [[nodiscard]] Index first_rate() const { return launch_seconds_ ? 0 : 1; }
  [[nodiscard]] Index first_layout() const { return first_rate() + 4; }
  std::optional<double> launch_seconds_;
  std::vector<GemmLayout> layouts_;
};

// Share of the peak rate that the formula gives a product.
double formula_share(const GemmFit& fit, const GemmDevice& device, const GemmPoint& point) {
  return fit.model.efficiency(point.layout).value * tile_quantisation(fit.model, device.sms, point.size);
}

double seconds_at(double share, const GemmFit& fit, const GemmDevice& device, const GemmPoint& point) {
  const double compute = flops(point.size) / (device.peak.count() * share);
  return fit.t0_seconds +
         std::max(compute, bytes(point, device.element_bytes) / device.memory_bandwidth.count());
}

double formula_seconds(const GemmFit& fit, const GemmDevice& device, const GemmPoint& point) {
  return seconds_at(formula_share(fit, device, point), fit, device, point);
}

VectorXd log_ratios(const GemmFit& fit, const GemmDevice& device, const std::vector<GemmPoint>& points) {
  VectorXd r(static_cast<Index>(points.size()));
  for (std::size_t i = 0; i < points.size(); ++i)
    r(static_cast<Index>(i)) = std::log(formula_seconds(fit, device, points[i]) / points[i].seconds);
  return r;
}

// The continuous constants at the whole numbers that `fit` has; returns the loss.
double fit_constants(GemmFit& fit, const GemmDevice& device, const std::vector<GemmPoint>& points,
                     int steps) {
  const Constants constants(points, device);
  GemmFit tried = fit;
  const auto residuals = [&](const VectorXd& x) {
    constants.write(x, tried);  // all of them
    return log_ratios(tried, device, points);
  };
  const DampedOptions options{.max_steps = steps, .relative_gain = 1e-6};
  constants.write(damped_least_squares(residuals, constants.read(fit), options), fit);
  constants.fill_missing(fit.model);
  return huber_loss(log_ratios(fit, device, points), options.outlier);
}

void set_rows(GemmFit& fit, const GemmDevice& device, const std::vector<GemmPoint>& points) {
  fit.model.table.rows.clear();
  fit.points.clear();
  for (const GemmPoint& point : points) {
    if (fit.t0_seconds > kMostlyLaunch * point.seconds) continue;
    fit.model.table.rows.push_back(
        {.m = point.size.m,
         .n = point.size.n,
         .k = point.size.k,
         .layout = point.layout,
         .efficiency = flops(point.size) / (device.peak.count() * (point.seconds - fit.t0_seconds))});
    fit.points.push_back(point);
  }
  compare_with_formula(fit.model, device.sms);
}

double corrected_seconds(const GemmFit& fit, const GemmDevice& device, const GemmPoint& point) {
  const GemmTable& table = fit.model.table;
  const double factor = table_pull(table, point.layout, point.size).factor(table.prior);
  return seconds_at(formula_share(fit, device, point) * factor, fit, device, point);
}

// Does twice a dimension never cost less (kFlat), on shapes from 192 to 24576? Inside one wave the formula is
// flat, so a correction that leans the wrong way shows at once.
bool grows_with_size(const GemmFit& fit, const GemmDevice& device, GemmLayout layout) {
  constexpr int kDoublings = 8;
  std::array<double, kDoublings * kDoublings * kDoublings> seconds{};
  const auto index = [](int m, int n, int k) {
    return static_cast<std::size_t>((m * kDoublings + n) * kDoublings + k);
  };
  for (int m = 0; m < kDoublings; ++m) {
    for (int n = 0; n < kDoublings; ++n) {
      for (int k = 0; k < kDoublings; ++k) {
        const GemmSize size{.m = 192LL << m, .n = 192LL << n, .k = 192LL << k};
        const double here = corrected_seconds(fit, device, {.size = size, .layout = layout});
        seconds[index(m, n, k)] = here;
        const double least = here * (1 + kFlat);
        if ((m > 0 && seconds[index(m - 1, n, k)] > least) ||
            (n > 0 && seconds[index(m, n - 1, k)] > least) || (k > 0 && seconds[index(m, n, k - 1)] > least))
          return false;
      }
    }
  }
  return true;
}

bool grows_with_size(const GemmFit& fit, const GemmDevice& device) {
  return std::ranges::all_of(std::array{GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT},
                             [&](GemmLayout layout) { return grows_with_size(fit, device, layout); });
}

// Radius and prior of the least mean error in logarithms, each row left out of the table in turn, among those
// under which a larger shape never costs less; no correction where there is no such pair.
double fit_correction(GemmFit& fit, const GemmDevice& device, const std::vector<GemmPoint>& points) {
  GemmTable& table = fit.model.table;
  std::vector<double> shares(points.size());
  std::ranges::transform(points, shares.begin(),
                         [&](const GemmPoint& point) { return formula_share(fit, device, point); });
  const auto pulls_of_rows = [&] {
    std::vector<TablePull> pulls;
    for (const GemmPoint& point : points) pulls.push_back(table_pull(table, point.layout, point.size));
    return pulls;
  };
  const auto loss = [&](const std::vector<TablePull>& pulls) {
    double sum = 0;
    for (std::size_t i = 0; i < points.size(); ++i)
      sum += std::abs(std::log(seconds_at(shares[i] * pulls[i].factor(table.prior), fit, device, points[i]) /
                               points[i].seconds));
    return sum;
  };
  std::pair<double, double> best = {0, 1};
  std::tie(table.radius, table.prior) = best;
  double least = loss(pulls_of_rows());
  for (const double radius : kRadii) {
    table.radius = radius;
    const std::vector<TablePull> pulls = pulls_of_rows();
    for (const double prior : kPriors) {
      table.prior = prior;
      const double tried = loss(pulls);
      if (tried >= least || !grows_with_size(fit, device)) continue;
      least = tried;
      best = {radius, prior};
    }
  }
  std::tie(table.radius, table.prior) = best;
  return least;
}

void leave_out_each(GemmFit& fit, const GemmDevice& device, const std::vector<GemmPoint>& points) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<GemmPoint> others = points;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    GemmFit without = fit;
    fit_constants(without, device, others, 8);
    set_rows(without, device, others);
    fit.left_out.add(row_name(points[i]), corrected_seconds(without, device, points[i]), points[i].seconds);
  }
}

GemmFit first_guess(const GemmModel& base, const std::vector<GemmPoint>& points) {
  GemmFit fit;
  fit.model = base;
  const auto shortest = std::ranges::min_element(points, {}, &GemmPoint::seconds);
  fit.t0_seconds = shortest->seconds / 2;
  set_tiles(fit.model, {1, 0.93, 0.85, 0.8, 0.65});
  for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT})
    layout_efficiency(fit.model, layout).value = 0.8;
  return fit;
}

}  // namespace

std::string row_name(const GemmPoint& point) {
  return fmt::format("{} x {}, k {}, {}", point.size.m, point.size.n, point.size.k,
                     kGemmLayoutNames[static_cast<std::size_t>(point.layout)]);
}

GemmFit fit_gemm(std::vector<GemmPoint> points, const GemmDevice& device, const GemmModel& base) {
  SC_CHECK(points.size() >= kMinGemmPoints, "too few GEMMs for a fit of up to eight constants");
  const GemmFit start = first_guess(base, points);
  GemmFit fit = start;
  double least = std::numeric_limits<double>::infinity();
  for (const SplitRule& split : kSplitRules) {
    for (const std::int64_t prologue : kPrologues) {
      GemmFit tried = start;
      tried.model.split_k_max = split.max;
      tried.model.split_k_min_depth = split.min_depth;
      tried.model.prologue_k = prologue;
      fit_constants(tried, device, points, 15);
      set_rows(tried, device, points);
      const double loss = fit_correction(tried, device, points);
      if (loss >= least) continue;
      least = loss;
      fit = std::move(tried);
    }
  }
  fit_constants(fit, device, points, 60);
  set_rows(fit, device, points);
  fit_correction(fit, device, points);
  for (const GemmPoint& point : points)
    fit.formula.add(row_name(point), formula_seconds(fit, device, point), point.seconds);
  leave_out_each(fit, device, points);
  return fit;
}

double predict_seconds(const GemmFit& fit, const GemmDevice& device, const GemmPoint& point) {
  for (const GemmRow& row : fit.model.table.rows) {
    if (row.m == point.size.m && row.n == point.size.n && row.k == point.size.k && row.layout == point.layout)
      return fit.t0_seconds + flops(point.size) / (device.peak.count() * row.efficiency);
  }
  return corrected_seconds(fit, device, point);
}

Fp8Fit fit_fp8(const GemmModel& model, const GemmDevice& device, double t0_seconds,
               const std::vector<GemmPoint>& points) {
  SC_CHECK(points.size() >= kMinFp8Points, "too few products for the two constants of fp8");
  GemmFit fit{.model = model, .t0_seconds = t0_seconds};
  const auto at_factor_one = [&](const GemmPoint& point) {
    return flops(point.size) / (device.peak.count() * model.efficiency(point.layout).value *
                                tile_quantisation(fit.model, device.sms, point.size));
  };
  double least = std::numeric_limits<double>::infinity();
  Fp8Fit best;
  for (const int prologue : kFp8Prologues) {
    fit.model.prologue_k = prologue;
    std::vector<double> logs;
    for (const GemmPoint& point : points)
      logs.push_back(std::log(at_factor_one(point) / std::max(point.seconds - t0_seconds, kLeastSeconds)));
    std::ranges::sort(logs);
    const double middle = logs[logs.size() / 2];
    double loss = 0;
    for (const double log : logs) loss += std::abs(log - middle);
    if (loss < least) {
      least = loss;
      best = {.factor = std::exp(middle), .prologue = static_cast<double>(prologue)};
    }
  }
  // The table over a model whose 16 bit is fp8.
  fit.model.prologue_k = static_cast<std::int64_t>(best.prologue);
  for (const GemmLayout layout : {GemmLayout::kTN, GemmLayout::kNN, GemmLayout::kNT})
    layout_efficiency(fit.model, layout).value *= best.factor;
  set_rows(fit, device, points);
  fit_correction(fit, device, points);
  for (const GemmPoint& point : points)
    best.left_out.add(row_name(point), corrected_seconds(fit, device, point), point.seconds);
  best.table = std::move(fit.model.table);
  best.table.source.clear();
  best.points = std::move(fit.points);
  return best;
}

double fit_batched_efficiency(const GemmModel& model, const GemmDevice& device,
                              std::span<const GemmPoint> points) {
  SC_CHECK(!points.empty(), "a median of nothing");
  std::vector<double> shares;
  for (const GemmPoint& point : points) {
    shares.push_back(flops(point.size) / (device.peak.count() * point.seconds *
                                          tile_quantisation(model, device.sms, point.size)));
  }
  std::ranges::sort(shares);
  return shares[shares.size() / 2];
}

}  // namespace stagecraft
