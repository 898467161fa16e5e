// The points of a sweep, in grid order: those that `where` wants, numbered from 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/scenario/library.hpp"
#include "sim/study/sweep_spec.hpp"

namespace stagecraft {

inline constexpr std::uint64_t kMostPoints = 1'000'000;  // of a sweep

// A bare name in `where` means the varied path that ends in it, else the key of the base that does; where
// several do, the one in `parallelism`. Names of the base that follow from something varied (model.layers
// where `model` varies, a default that differs with what varies) are refused.
class SweepPoints {
 public:
  // nullopt with errors when `where` uses unknown names or is no condition, when no point is left, or when
  // there are too many. A sample that `where` makes smaller than requested is a warning.
  [[nodiscard]] static std::optional<SweepPoints> of(const SweepSpec& spec, Library& library,
                                                     Diagnostics& diagnostics);

  [[nodiscard]] std::size_t size() const;
  // A value for each varied path, in the order of the file.
  [[nodiscard]] std::vector<Assignment> assignments(std::size_t point) const;

 private:
  friend class PointFinder;
  std::vector<SweepAxis> axes_;
  std::vector<std::uint64_t> numbers_;  // numbers of the points in the whole grid; unused for samples
  std::vector<double> shares_;          // for a sample: position of each point on each axis, in [0, 1)
};

}  // namespace stagecraft
