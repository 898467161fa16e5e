// Expected error of a prediction, by the categories of its time.
//
// Each family of operations is wrong by a share of its own time; these errors go the same way to a degree,
// because a slow clock, an old library or a loaded network touches more than one of them. What is left is a
// share of the whole iteration that no time explains: repeats, releases, sites. A job that does not name its
// software runs what the profile takes for usual, and may have run another. Dense models over pipeline stages
// mostly run Megatron-LM or its kin; all others have many trainers, each with kernels of its own.
//
//   variance  of ln(measured / predicted), x_f the family's share of the time:
//             (1 - c) * sum (s_f x_f)^2 + c * (sum s_f x_f)^2 + run^2, and u^2 where no software is named
//   interval  90 %: the prediction times exp(+-1.645 sigma), a log-normal error without a bias.
//   source    the constants are fitted by `stagecraft calibrate residuals` on the rows of
//             calibrate/validation (sim/accuracy/residual_fit.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/units.hpp"
#include "calibrate/profile/provenance.hpp"

namespace stagecraft {

enum class OpFamily : std::uint8_t {
  kCompute,   // passes: GEMMs, attention, memory-bound kernels, recompute
  kTensor,    // exposed collectives of tensor parallelism
  kContext,   // exposed messages of context parallelism
  kExperts,   // exposed exchanges of experts
  kPipeline,  // exposed messages between stages, and the bubble
  kData,      // exposed reductions and gathers
  kTail,      // optimizer, host, everything else
};
inline constexpr std::array<std::string_view, 7> kOpFamilyNames = {"compute",  "tensor", "context", "experts",
                                                                   "pipeline", "data",   "tail"};
inline constexpr std::size_t kOpFamilyCount = kOpFamilyNames.size();

// The share of each family in an iteration's time; they add up to 1.
using FamilyShares = std::array<double, kOpFamilyCount>;

// What is known of the software that ran.
enum class WhatRan : std::uint8_t {
  kNamed,
  kUnnamedPipeline,  // a dense model over pipeline stages, under ZeRO 0 and 1
  kUnnamed,          // any other job
};
inline constexpr std::array<std::string_view, 2> kUnnamedNames = {"unnamed_pipeline", "unnamed"};

struct ResidualModel {
  std::array<Sourced<double>, kOpFamilyCount> families;  // s_f: one standard deviation of a family's time
  Sourced<double> run;                                   // one standard deviation of a whole iteration
  Sourced<double> correlation;                           // c, between any two families; 0 to 1
  std::array<Sourced<double>, kUnnamedNames.size()> unnamed;  // u, by kUnnamedNames

  [[nodiscard]] double sigma(const FamilyShares& shares, WhatRan ran = WhatRan::kNamed) const;
};

// Two-sided 90 % of a normal distribution, in standard deviations.
inline constexpr double kNormal90 = 1.6448536269514722;

[[nodiscard]] std::array<Duration, 2> interval_90(Duration predicted, double sigma);

}  // namespace stagecraft
