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

std::vector<ExpectedError> all_errors(std::span<const ResidualRow> rows, const ResidualModel& model) {
  std::vector<ExpectedError> errors;
  errors.reserve(rows.size());
  for (const ResidualRow& row : rows)
    errors.push_back({.log_error = row.log_error, .sigma = model.sigma(row.shares, row.ran)});
  return errors;
}

std::vector<ResidualRow> without_tails(std::span<const ResidualRow> all) {
  std::vector<ResidualRow> rows;
  std::ranges::copy_if(all, std::back_inserter(rows), [](const ResidualRow& row) {
    return row.shares[static_cast<std::size_t>(OpFamily::kTail)] <= kMostTail;
  });
  return rows;
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
  model.unnamed.fill(
      assumed(0.06, "mean error of published jobs with the names of what ran 5.5 %, without 7.3"));
  return model;
}

double interval_score(std::span<const ExpectedError> errors) {
  double sum = 0;
  for (const ExpectedError& error : errors) {
    const double half = kNormal90 * error.sigma;
    sum += 2 * half + 2 / kOutside * std::max(std::abs(error.log_error) - half, 0.0);
  }
  return errors.empty() ? 0 : sum / static_cast<double>(errors.size());
}

double interval_score(std::span<const ResidualRow> rows, const ResidualModel& model) {
  return interval_score(all_errors(rows, model));
}

// Pattern search over logarithms, one constant at a time: five constants and a convex-like score need nothing
// finer, and it gives the same bits everywhere.
ResidualModel fit_residuals(std::span<const ResidualRow> all, const ResidualModel& prior) {
  ResidualModel best = prior;
  const std::vector<ResidualRow> rows = without_tails(all);
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

std::vector<ExpectedError> expected_errors(std::span<const ResidualRow> rows, WhatRan ran,
                                           const ResidualModel& model) {
  std::vector<ResidualRow> known = without_tails(rows);
  std::erase_if(known, [&](const ResidualRow& row) { return row.ran != ran; });
  for (ResidualRow& row : known) row.ran = WhatRan::kNamed;
  return all_errors(known, model);
}

double fit_unnamed(std::span<const ExpectedError> errors, double assumed) {
  if (errors.empty()) return assumed;
  const auto score_with = [&](double unnamed) {
    std::vector<ExpectedError> wider(errors.begin(), errors.end());
    for (ExpectedError& error : wider) error.sigma = std::hypot(error.sigma, unnamed);
    return interval_score(wider);
  };
  constexpr double kStep = 0.001, kMost = 0.5;
  double best = 0, least = score_with(0);
  for (int i = 1; i * kStep <= kMost; ++i) {
    const double score = score_with(i * kStep);
    if (score >= least) continue;
    least = score;
    best = i * kStep;
  }
  return best;
}

Coverage coverage(std::span<const ExpectedError> errors) {
  if (errors.empty()) return {};
  std::vector<double> widths;
  double inside = 0;
  for (const ExpectedError& error : errors) {
    const double half = kNormal90 * error.sigma;
    inside += std::abs(error.log_error) <= half ? 1 : 0;
    widths.push_back(std::exp(half) - std::exp(-half));
  }
  return {.share = inside / static_cast<double>(errors.size()), .median_width = median(widths)};
}

Coverage coverage(std::span<const ResidualRow> rows, const ResidualModel& model) {
  return coverage(all_errors(rows, model));
}

Coverage coverage_left_out(std::span<const ResidualRow> rows, const ResidualModel& prior) {
  std::set<int> sources;
  for (const ResidualRow& row : rows) sources.insert(row.source);
  std::vector<ExpectedError> errors;
  for (const int source : sources) {
    std::vector<ResidualRow> others, own;
    for (const ResidualRow& row : rows) (row.source == source ? own : others).push_back(row);
    const std::vector<ExpectedError> seen_first = all_errors(own, fit_residuals(others, prior));
    errors.insert(errors.end(), seen_first.begin(), seen_first.end());
  }
  return coverage(errors);
}

}  // namespace stagecraft
