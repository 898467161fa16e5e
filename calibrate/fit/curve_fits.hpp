// Times along one size -> two or three constants, and how well they foretell a size that was left out.
//
//   collective   t = a + S * f / B + c * sqrt(S)     a, 1/B, c >= 0; f the bus factor of nccl-tests
//                (2(n-1)/n all-reduce, (n-1)/n gather, scatter, all-to-all, 1 otherwise). The root carries
//                what a line cannot: changes of protocol and of the number of channels at middle sizes.
//   attention    t = FLOPs / rate, rate = R * L / (L + L_half), L the sequence length: time per FLOP is a
//                line in 1/L.
//   memory       t = t0 + bytes / B                  kernels bound by memory; B the achieved rate
//
// All three are linear in their constants, so they are fitted by non-negative least squares on the relative
// error: a microsecond matters at 64 KiB and not at 1 GiB. Outliers have less weight (kOutlier). No fit falls
// as the size grows. A collective inside a node also keeps its points and follows them
// (hardware_profile.hpp): with each size left out in turn this is closer than the formula on every published
// table.
#pragma once

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "calibrate/fit/fit_errors.hpp"
#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

// One time at one size: bytes of a buffer, bytes of traffic, or a sequence length.
struct CurvePoint {
  double size = 0;
  double seconds = 0;
};

struct CollectiveGroup {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int ranks = 2;
  int nodes = 1;
  std::string algorithm = "any";
  friend auto operator<=>(const CollectiveGroup&, const CollectiveGroup&) = default;
};
// "all-reduce, 8 ranks, 1 node", and the algorithm where it was named
[[nodiscard]] std::string group_name(const CollectiveGroup& group);

struct FittedCollective {
  CollectiveFit fit;   // rounded to the digits of a file; provenance and source are the caller's
  FitErrors left_out;  // each size in turn
};
inline constexpr std::size_t kMinCollectivePoints = 4;
inline constexpr double kMostOverSeen = 1.25;  // no published curve of the profiles is over 1.22
inline constexpr double kShowsBus = 2;
// Buffers larger than the measured ones are hardly faster, but a root that carries the large sizes would make
// them ever faster. So the bus bandwidth is at most kMostOverSeen times the highest observed one, and the
// other constants are fitted with that limit. The observed bandwidth is bytes on the bus over time, both
// beyond the shortest point, at sizes that take at least kShowsBus times as long; below that, launches
// dominate. Where the points show no bandwidth (all times equal), the bus gets 0.1 % of the time of the
// largest size; ask shows_bus() first.
//   requires  at least kMinCollectivePoints points at distinct sizes above 0.
[[nodiscard]] FittedCollective fit_collective(const CollectiveGroup& group,
                                              const std::vector<CurvePoint>& points);

// Do the points show a bandwidth? Some larger size takes kShowsBus times as long as the shortest, or the time
// that grows with the size is as large a part of that of the largest. Otherwise launches are what was timed.
//   requires  points by size, at least one.
[[nodiscard]] bool shows_bus(const std::vector<CurvePoint>& points);

// Sizes of kPointsFrom and more: below, launches are the time. Times that fall with the size are pooled, at
// the least mean relative error that a curve which never falls can have (isotonic regression), and each is
// above the one before by kLeastRise at least.
inline constexpr double kPointsFrom = 65536;
inline constexpr double kLeastRise = 1e-3;
[[nodiscard]] std::vector<CollectivePoint> rising_points(std::vector<CurvePoint> points);

[[nodiscard]] double predict_seconds(const CollectiveFit& fit, double bytes);

struct AttentionFit {
  FlopRate rate{};         // R, of very long sequences
  double half_length = 0;  // L_half
  FitErrors left_out;      // each point in turn
  [[nodiscard]] FlopRate at(double length) const { return rate * (length / (length + half_length)); }
};
struct AttentionPoint {
  double length = 0;
  FlopRate rate{};
};
//   requires  at least three points, of three lengths.
//   returns   nullopt when the rate shows no limit, as when it doubles with the length.
// attention_curve() is the same without the errors, which take a fit a point.
[[nodiscard]] std::optional<AttentionFit> attention_curve(const std::vector<AttentionPoint>& points);
[[nodiscard]] std::optional<AttentionFit> fit_attention(const std::string& name,
                                                        const std::vector<AttentionPoint>& points);

struct MemoryFit {
  double t0_seconds = 0;
  Bandwidth bandwidth{};  // achieved
  FitErrors left_out;
};
//   requires  at least three points at distinct sizes.
//   returns   nullopt when time does not grow with size.
[[nodiscard]] std::optional<MemoryFit> fit_memory(const std::string& name,
                                                  const std::vector<CurvePoint>& points);

}  // namespace stagecraft
