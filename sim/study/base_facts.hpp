// Keys of the base for `where` of a sweep: their values with defaults, and the keys that follow from varied
// ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/study/constraint.hpp"
#include "sim/study/sweep_spec.hpp"

namespace stagecraft {

using Facts = std::map<std::string, Fact>;  // by dotted path
// Beside the keys: the GPUs of a cluster, where the scenario loads.
inline constexpr std::string_view kGpusFact = "gpus";

// A mapping with a name (a schedule, say) is its name, and a list of one value is that value: so is a cost that
// all abstract stages share, once it is resolved.
[[nodiscard]] Fact fact_of(const YamlNode& node);

inline constexpr std::size_t kMostTried = 100;  // values of an axis
inline constexpr std::uint64_t kMostPointsTried = 1'000;
// Values of an axis: those that are listed, or the two ends of a range that a sample draws from.
[[nodiscard]] std::size_t value_count(const SweepAxis& axis);
[[nodiscard]] std::vector<Assignment> value_of(const SweepAxis& axis, std::size_t index);

class BaseFacts {
 public:
  BaseFacts(const SweepSpec& spec, Library& library);

  // Facts of the base as it would run, or as written where it cannot run without the varied keys.
  [[nodiscard]] const Facts& all() const { return facts_; }
  // The varied path that changes the default of key `path`, or those that do only together; none where its value
  // is the same at every point. Each varied value is tried alone, or beside some of the others where it does not
  // load alone; one that never loads makes no valid point. Of an axis of many values 100 are tried, including its
  // ends. Then the points of the whole grid are tried; of more than 1,000 so many are drawn.
  [[nodiscard]] std::vector<std::string> follows(const std::string& path);

 private:
  // The value of each axis by its index; nullopt: as the base has it.
  using Point = std::vector<std::optional<std::size_t>>;

  void try_all();
  [[nodiscard]] std::optional<std::vector<std::string>> changed_by(
      const std::vector<Assignment>& assignments) const;
  [[nodiscard]] bool notice(const std::vector<Assignment>& assignments, const std::string& varied);
  void try_beside_others(std::size_t axis, const std::vector<Assignment>& own, const std::string& varied);
  void try_points();
  [[nodiscard]] Point point_of_grid(std::uint64_t number) const;
  [[nodiscard]] Point drawn_point(std::uint64_t number) const;
  [[nodiscard]] std::vector<Assignment> values_of(const Point& point) const;
  [[nodiscard]] std::vector<std::string> together(const std::string& path, Point point) const;

  const SweepSpec& spec_;
  Library& library_;
  Facts facts_, written_;
  // Path -> varied path, and path -> a point that changes it; computed on demand.
  std::optional<std::map<std::string, std::string>> following_ = {};
  std::optional<std::map<std::string, Point>> changing_ = {};
};

}  // namespace stagecraft
