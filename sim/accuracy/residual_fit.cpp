#include "sim/accuracy/residual_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <vector>

#include "calibrate/samples/statistics.hpp"

namespace stagecraft {
namespace {

constexpr double kOutside = 0.1;

// Fitted fields, in the order of the parameters.
std::array<double*, 5> moved(ResidualModel& model) {
  const auto family = [&](OpFamily which) { return &model.families[static_cast<std::size_t>(which)].value; };
  return {family(OpFamily::kCompute), family(OpFamily::kTensor), family(OpFamily::kPipeline),
          family(OpFamily::kData), &model.run.value};
}

// Bowl with a flat rim: sum of scores over that of the prior, and the distance from the prior.
double objective(std::span<const ResidualRow> rows, ResidualModel model, ResidualModel prior) {
  const auto now = moved(model), before = moved(prior);
  double distance = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const double log_ratio = std::log(*now[i] / *before[i]);
    distance += log_ratio * log_ratio / static_cast<double>(now.size());
  }
  const double scale = interval_score(rows, prior);
  if (scale == 0) return distance;
  return static_cast<double>(rows.size()) * interval_score(rows, model) / scale + kPriorRows * distance;
}

}  // namespace

ResidualModel assumed_residuals() {
  const auto assumed = [](double value, const char* source) {
    return Sourced<double>{.value = value, .provenance = Provenance::kAssumed, .source = source};
  };
  ResidualModel model;
  model.families = {
      assumed(0.04, "table of kernels against tile model 4 %, attention curves 1 to 3 %"),
      assumed(0.15, "curves of collectives up to 8 % a size, loss of overlap 20 %"),
      assumed(0.25, "no row has much of it: between tensor collectives and exchanges"),
      assumed(0.25, "no row has any: collectives of an assumed imbalance"),
      assumed(0.20, "messages between processes and uneven stages, neither measured alone"),
      assumed(0.20, "share of the NICs that a reduction in training gets, 0.3 to 0.9"),
      assumed(0.30, "host time and optimizer are assumed: 1 to 20 ms, 0.8 to 0.92 of the memory")};
  model.run = assumed(0.02, "two equal runs differ by 0.05 % to 9 %, two releases by 4 to 7 %");
  model.correlation = assumed(
      0, "within a family errors go the same way, between families none is seen: 0 and 1 score alike");
  return model;
}

double interval_score(std::span<const ResidualRow> rows, const ResidualModel& model) {
  double sum = 0;
  for (const ResidualRow& row : rows) {
    const double half = kNormal90 * model.sigma(row.shares);
    sum += 2 * half + 2 / kOutside * std::max(std::abs(row.log_error) - half, 0.0);
  }
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

// Pattern search over logarithms, one constant at a time: five constants and a convex-like score need nothing
// finer, and it gives the same bits everywhere.
ResidualModel fit_residuals(std::span<const ResidualRow> all, const ResidualModel& prior) {
  ResidualModel best = prior;
  std::vector<ResidualRow> rows;
  std::ranges::copy_if(all, std::back_inserter(rows), [](const ResidualRow& row) {
    return row.shares[static_cast<std::size_t>(OpFamily::kTail)] <= kMostTail;
  });
  if (rows.empty()) return best;
  double least = objective(rows, best, prior);
  constexpr double kFirstStep = 1.5, kLastStep = 1.001;
  constexpr double kNarrowest = 1e-3;
  for (double step = kFirstStep; step > kLastStep;) {
    bool gained = false;
    for (std::size_t i = 0; i < moved(best).size(); ++i) {
      for (const double factor : {step, 1 / step}) {
        ResidualModel tried = best;
        *moved(tried)[i] = std::max(*moved(tried)[i] * factor, kNarrowest);
        const double value = objective(rows, tried, prior);
        if (value >= least) continue;
        least = value;
        best = tried;
        gained = true;
      }
    }
    if (!gained) step = std::sqrt(step);
  }
  return best;
}

Coverage coverage(std::span<const ResidualRow> rows, const ResidualModel& model) {
  if (rows.empty()) return {};
  std::vector<double> widths;
  double inside = 0;
  for (const ResidualRow& row : rows) {
    const double half = kNormal90 * model.sigma(row.shares);
    inside += std::abs(row.log_error) <= half ? 1 : 0;
    widths.push_back(std::exp(half) - std::exp(-half));
  }
  return {.share = inside / static_cast<double>(rows.size()), .median_width = median(widths)};
}

Coverage coverage_left_out(std::span<const ResidualRow> rows, const ResidualModel& prior) {
  if (rows.empty()) return {};
  std::set<int> sources;
  for (const ResidualRow& row : rows) sources.insert(row.source);
  std::vector<double> widths;
  double inside = 0;
  for (const int source : sources) {
    std::vector<ResidualRow> others, own;
    for (const ResidualRow& row : rows) (row.source == source ? own : others).push_back(row);
    const ResidualModel model = fit_residuals(others, prior);
    for (const ResidualRow& row : own) {
      const double half = kNormal90 * model.sigma(row.shares);
      inside += std::abs(row.log_error) <= half ? 1 : 0;
      widths.push_back(std::exp(half) - std::exp(-half));
    }
  }
  return {.share = inside / static_cast<double>(rows.size()), .median_width = median(widths)};
}

}  // namespace stagecraft
