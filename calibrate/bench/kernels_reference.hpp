// The operators once more in float64 on the host, a row at a time: what the kernels are checked against.
//
// Every result comes with its magnitude, the sum of the absolute values of the terms that it is made of,
// because the error of a rounded sum goes with the terms and not with the result. The bound of a result is
//
//   (roundings + 1) * u * magnitude + tiny
//
// with u the unit roundoff of the output's type and `roundings` the number of times that the kernel or chain
// rounds to that type on the way; the 1 stands for fp32 arithmetic inside (2^-24 against 2^-8) and for the
// fast exponential.
//   source   Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1 (first order).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stagecraft::reference {

struct Bounded {
  double value = 0;
  double magnitude = 0;
};
using Row = std::vector<double>;
using BoundedRow = std::vector<Bounded>;
using View = std::span<const double>;

struct Precision {
  double unit = 0;    // unit_roundoff() of the output
  int roundings = 1;  // to that type on the way
  double tiny = 1e-30;
};
// Largest |got - wanted| / bound; infinite where got is not a number.
[[nodiscard]] double worst(View got, std::span<const Bounded> wanted, const Precision& precision);

[[nodiscard]] double gelu(double x);  // tanh form
[[nodiscard]] double gelu_slope(double x);
[[nodiscard]] double silu(double x);
[[nodiscard]] double silu_slope(double x);

[[nodiscard]] BoundedRow bias_gelu_forward(View x, View bias);
[[nodiscard]] BoundedRow bias_gelu_backward(View dy, View x, View bias);
[[nodiscard]] BoundedRow swiglu_forward(View gate_and_up);
[[nodiscard]] BoundedRow swiglu_backward(View dy, View gate_and_up);

// `mask` of the row, 0 or 1.
struct DropoutRow {
  std::int64_t first_element = 0;  // of the row within the tensor, a multiple of 8
  std::uint64_t seed = 0;
  std::uint32_t threshold = 0;
};
[[nodiscard]] Row dropout_mask(std::int64_t width, const DropoutRow& dropout);
[[nodiscard]] BoundedRow bias_dropout_add(View x, View bias, View residual, View mask, double scale);
[[nodiscard]] BoundedRow dropout_backward(View dy, View mask, double scale);

// Keys beyond `query` are hidden.
[[nodiscard]] BoundedRow causal_softmax(View x, std::int64_t query, double scale);
[[nodiscard]] BoundedRow causal_softmax_backward(View dy, View y, double scale);

// bias empty: RMS norm.
[[nodiscard]] BoundedRow norm(View x, View weight, View bias);
struct Moments {
  double mean = 0, rstd = 0;
};
[[nodiscard]] Moments moments(View x, bool centred);
// residual_gradient may be empty.
struct NormRow {
  View dy, x, weight, residual_gradient;
  bool centred = true;
};
[[nodiscard]] BoundedRow norm_backward(const NormRow& row);

[[nodiscard]] BoundedRow rope(View x, View cosine, View sine, bool backward);

struct LogitSums {
  double maximum = 0, sum = 0, target = 0;
};
[[nodiscard]] LogitSums cross_entropy(View logits, std::int64_t target);
[[nodiscard]] BoundedRow cross_entropy_backward(View logits, std::int64_t target, double gradient);

struct AdamNumbers {
  double rate, beta1, beta2, epsilon, decay, correction1, correction2;
};
struct AdamState {
  Bounded weight, first, second;
};
[[nodiscard]] AdamState adam(double gradient, const AdamState& before, const AdamNumbers& step);

// sum over j of share[j] * rows[j].
[[nodiscard]] BoundedRow weighted_sum(std::span<const Row> rows, View share);

// One query against keys and values [keys][size]; keys at or before `last_key` are seen.
struct AttentionRow {
  View query;
  std::span<const Row> keys, values;
  double scale = 1;
};
[[nodiscard]] BoundedRow attention(const AttentionRow& row);

}  // namespace stagecraft::reference
