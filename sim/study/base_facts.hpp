// Keys of the base for `where` of a sweep: their values with defaults, and the keys that follow from varied
// ones.
#pragma once

#include <cstddef>
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
// Values of an axis: those that are listed, or the two ends of a range that a sample draws from.
[[nodiscard]] std::size_t value_count(const SweepAxis& axis);
[[nodiscard]] std::vector<Assignment> value_of(const SweepAxis& axis, std::size_t index);

class BaseFacts {
 public:
  BaseFacts(const SweepSpec& spec, Library& library);

  // Facts of the base as it would run, or as written where it cannot run without the varied keys.
  [[nodiscard]] const Facts& all() const { return facts_; }
  // The varied path that changes the default of key `path`; nullopt where its value is the same at every
  // point. Each varied value is tried alone, or beside some of the others where it does not load alone; one
  // that never loads makes no valid point. Of an axis of many values 100 are tried, including its ends.
  [[nodiscard]] std::optional<std::string> follows(const std::string& path);

 private:
  void try_all();
  [[nodiscard]] bool notice(const std::vector<Assignment>& assignments, const std::string& varied);
  void try_beside_others(std::size_t axis, const std::vector<Assignment>& own, const std::string& varied);

  const SweepSpec& spec_;
  Library& library_;
  Facts facts_, written_;
  // Path -> varied path, computed on demand.
  std::optional<std::map<std::string, std::string>> following_ = {};
};

}  // namespace stagecraft
