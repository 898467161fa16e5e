#include "calibrate/bench/kernels_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calibrate/bench/kernels_rng.hpp"

namespace stagecraft::reference {
namespace {

constexpr double kRootTwoOverPi = 0.7978845608028654;
constexpr double kCubic = 0.044715;
constexpr double kEpsilon = 1e-5;

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

std::int64_t size_of(View view) {
  return static_cast<std::int64_t>(view.size());
}

}  // namespace

double worst(View got, std::span<const Bounded> wanted, const Precision& precision) {
  double largest = got.size() == wanted.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
    const double bound = (precision.roundings + 1) * precision.unit * wanted[i].magnitude + precision.tiny;
    const double error = std::abs(got[i] - wanted[i].value) / bound;
    largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
  }
  return largest;
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(kRootTwoOverPi * x * (1 + kCubic * x * x)));
}

double gelu_slope(double x) {
  const double t = std::tanh(kRootTwoOverPi * x * (1 + kCubic * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kRootTwoOverPi * (1 + 3 * kCubic * x * x);
}

double silu(double x) {
  return x * sigmoid(x);
}

double silu_slope(double x) {
  return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
}

// The magnitude of f(x + bias) has the part that a rounded argument moves: its slope (at most 1.13) times the
// terms of the argument.
BoundedRow bias_gelu_forward(View x, View bias) {
  BoundedRow y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = gelu(x[i] + bias[i]);
    y[i] = {v, std::abs(v) + 1.13 * (std::abs(x[i]) + std::abs(bias[i]))};
  }
  return y;
}

BoundedRow bias_gelu_backward(View dy, View x, View bias) {
  BoundedRow dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double slope = gelu_slope(x[i] + bias[i]);
    // The slope itself changes by at most 0.8 (its own slope at 0) per unit of the argument.
    dx[i] = {dy[i] * slope, std::abs(dy[i]) * (1 + std::abs(slope) + std::abs(x[i]) + std::abs(bias[i]))};
  }
  return dx;
}

BoundedRow swiglu_forward(View gate_and_up) {
  const std::size_t width = gate_and_up.size() / 2;
  BoundedRow y(width);
  for (std::size_t i = 0; i < width; ++i) {
    const double v = silu(gate_and_up[i]) * gate_and_up[width + i];
    y[i] = {v, std::abs(v)};
  }
  return y;
}

BoundedRow swiglu_backward(View dy, View gate_and_up) {
  const std::size_t width = gate_and_up.size() / 2;
  BoundedRow dx(2 * width);
  for (std::size_t i = 0; i < width; ++i) {
    const double gate = gate_and_up[i], up = gate_and_up[width + i];
    const double dgate = dy[i] * up * silu_slope(gate), dup = dy[i] * silu(gate);
    // silu' is a sum of two terms that nearly cancel around gate = -1.28.
    dx[i] = {dgate, std::abs(dy[i] * up) * sigmoid(gate) * (1 + std::abs(gate))};
    dx[width + i] = {dup, std::abs(dup)};
  }
  return dx;
}

Row dropout_mask(std::int64_t width, const DropoutRow& dropout) {
  Row mask(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < width; ++i) {
    const std::int64_t element = dropout.first_element + i;
    const Random128 draws = dropout_draws(static_cast<std::uint64_t>(element / 8), dropout.seed);
    const bool keep = dropout_keeps(draws, static_cast<int>(element % 8), dropout.threshold);
    mask[static_cast<std::size_t>(i)] = keep ? 1 : 0;
  }
  return mask;
}

BoundedRow bias_dropout_add(View x, View bias, View residual, View mask, double scale) {
  BoundedRow y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = {residual[i] + mask[i] * scale * (x[i] + bias[i]),
            std::abs(residual[i]) + mask[i] * scale * (std::abs(x[i]) + std::abs(bias[i]))};
  return y;
}

BoundedRow dropout_backward(View dy, View mask, double scale) {
  BoundedRow dx(dy.size());
  for (std::size_t i = 0; i < dy.size(); ++i)
    dx[i] = {mask[i] * scale * dy[i], mask[i] * scale * std::abs(dy[i])};
  return dx;
}

BoundedRow causal_softmax(View x, std::int64_t query, double scale) {
  BoundedRow y(x.size());
  const auto seen = static_cast<std::size_t>(std::min(query + 1, size_of(x)));
  const double largest = scale * *std::max_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(seen));
  double sum = 0;
  for (std::size_t i = 0; i < seen; ++i) sum += std::exp(scale * x[i] - largest);
  for (std::size_t i = 0; i < seen; ++i) {
    const double v = std::exp(scale * x[i] - largest) / sum;
    // exp turns an absolute error of its argument into a relative one of its value.
    y[i] = {v, v * (1 + std::abs(scale * x[i]) + std::abs(largest))};
  }
  return y;
}

BoundedRow causal_softmax_backward(View dy, View y, double scale) {
  double dot = 0, size = 0;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    dot += dy[i] * y[i];
    size += std::abs(dy[i] * y[i]);
  }
  BoundedRow dx(dy.size());
  for (std::size_t i = 0; i < dy.size(); ++i)
    dx[i] = {scale * y[i] * (dy[i] - dot), std::abs(scale * y[i]) * (std::abs(dy[i]) + size)};
  return dx;
}

Moments moments(View x, bool centred) {
  const auto width = static_cast<double>(x.size());
  double mean = 0, squares = 0;
  if (centred)
    for (const double v : x) mean += v / width;
  for (const double v : x) squares += (v - mean) * (v - mean) / width;
  return {mean, 1 / std::sqrt(squares + kEpsilon)};
}

BoundedRow norm(View x, View weight, View bias) {
  const Moments m = moments(x, !bias.empty());
  BoundedRow y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double shift = bias.empty() ? 0 : bias[i];
    y[i] = {(x[i] - m.mean) * m.rstd * weight[i] + shift,
            (std::abs(x[i]) + std::abs(m.mean)) * m.rstd * std::abs(weight[i]) + std::abs(shift)};
  }
  return y;
}

BoundedRow norm_backward(const NormRow& row) {
  const Moments m = moments(row.x, row.centred);
  const auto width = static_cast<double>(row.x.size());
  double mean = 0, dot = 0, mean_size = 0, dot_size = 0;
  for (std::size_t i = 0; i < row.x.size(); ++i) {
    const double slope = row.dy[i] * row.weight[i], normed = (row.x[i] - m.mean) * m.rstd;
    mean += row.centred ? slope / width : 0;
    mean_size += row.centred ? std::abs(slope) / width : 0;
    dot += slope * normed / width;
    dot_size += std::abs(slope * normed) / width;
  }
  BoundedRow dx(row.x.size());
  for (std::size_t i = 0; i < row.x.size(); ++i) {
    const double slope = row.dy[i] * row.weight[i], normed = (row.x[i] - m.mean) * m.rstd;
    const double branch = row.residual_gradient.empty() ? 0 : row.residual_gradient[i];
    dx[i] = {m.rstd * (slope - mean - normed * dot) + branch,
             m.rstd * (std::abs(slope) + mean_size + std::abs(normed) * dot_size) + std::abs(branch)};
  }
  return dx;
}

BoundedRow rope(View x, View cosine, View sine, bool backward) {
  const std::size_t half = x.size() / 2;
  const double sign = backward ? -1 : 1;
  BoundedRow y(x.size());
  for (std::size_t i = 0; i < half; ++i) {
    const double c = cosine[i], s = sign * sine[i], a = x[i], b = x[half + i];
    y[i] = {a * c - b * s, std::abs(a * c) + std::abs(b * s)};
    y[half + i] = {b * c + a * s, std::abs(b * c) + std::abs(a * s)};
  }
  return y;
}

LogitSums cross_entropy(View logits, std::int64_t target) {
  LogitSums sums{.maximum = *std::max_element(logits.begin(), logits.end())};
  for (const double x : logits) sums.sum += std::exp(x - sums.maximum);
  if (target >= 0 && target < size_of(logits)) sums.target = logits[static_cast<std::size_t>(target)];
  return sums;
}

BoundedRow cross_entropy_backward(View logits, std::int64_t target, double gradient) {
  const LogitSums sums = cross_entropy(logits, target);
  BoundedRow dx(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double share = std::exp(logits[i] - sums.maximum) / sums.sum;
    const double hit = static_cast<std::int64_t>(i) == target ? 1 : 0;
    dx[i] = {gradient * (share - hit), std::abs(gradient) * (share + hit)};
  }
  return dx;
}

AdamState adam(double gradient, const AdamState& before, const AdamNumbers& step) {
  AdamState after;
  const double m = before.first.value, v = before.second.value, w = before.weight.value;
  after.first = {step.beta1 * m + (1 - step.beta1) * gradient,
                 std::abs(step.beta1 * m) + std::abs((1 - step.beta1) * gradient)};
  const double second = step.beta2 * v + (1 - step.beta2) * gradient * gradient;
  after.second = {second, second};
  const double root = std::sqrt(second / step.correction2) + step.epsilon;
  const double move = step.rate * after.first.value / step.correction1 / root;
  after.weight = {(1 - step.rate * step.decay) * w - move,
                  std::abs(w) + step.rate * after.first.magnitude / step.correction1 / root};
  return after;
}

BoundedRow weighted_sum(std::span<const Row> rows, View share) {
  BoundedRow sum(rows.empty() ? 0 : rows[0].size());
  for (std::size_t j = 0; j < rows.size(); ++j)
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i].value += share[j] * rows[j][i];
      sum[i].magnitude += std::abs(share[j] * rows[j][i]);
    }
  return sum;
}

BoundedRow attention(const AttentionRow& row) {
  Row scores(row.keys.size());
  for (std::size_t k = 0; k < scores.size(); ++k)
    for (std::size_t i = 0; i < row.query.size(); ++i) scores[k] += row.query[i] * row.keys[k][i];
  const BoundedRow share = causal_softmax(scores, size_of(scores), row.scale);
  Row plain(share.size());
  std::transform(share.begin(), share.end(), plain.begin(), [](const Bounded& b) { return b.value; });
  return weighted_sum(row.values, plain);
}

}  // namespace stagecraft::reference
