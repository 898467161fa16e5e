// A candidate of a search: one value for every axis, and its conversion to a scenario.
//
// Scenarios of a search differ in numbers that are set in place. Values that need the loader (a schedule's
// name, the number of nodes, any other key) are loaded once into a frame, and candidates are filled into
// frames.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/plan/specs.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// Keys that are set in place and are on, off, or a share.
struct PointSwitch {
  std::string_view path;
  bool share = false;  // of 0 to 1; else true or false
  double (*get)(const Scenario&) = nullptr;
  void (*set)(Scenario&, double) = nullptr;
};
inline constexpr std::size_t kPointSwitches = 10;
[[nodiscard]] const std::array<PointSwitch, kPointSwitches>& point_switches();
// The index of the switch of this path; nullopt where the key is none.
[[nodiscard]] std::optional<std::size_t> switch_at(std::string_view path);

struct SearchPoint {
  std::uint32_t frame = 0;
  int tensor = 1, pipeline = 1, data = 1, context = 1, expert = 1, expert_tensor = 1, virtual_stages = 1;
  int zero_stage = 0;
  int zero_group = 0;  // 0: all replicas
  bool sequence_parallel = false;
  Recompute recompute = Recompute::kNone;
  bool own_recompute = true;  // as the scenario has it, details included
  std::int64_t micro_batch = 1, global_batch = 1;
  std::array<double, kPointSwitches> switches{};
  std::vector<std::int64_t> stage_layers = {};  // of each stage; empty: as many in all

  [[nodiscard]] int gpus() const { return tensor * pipeline * data * context; }
  [[nodiscard]] int replicas() const { return data * context; }
  friend bool operator==(const SearchPoint&, const SearchPoint&) = default;
  friend auto operator<=>(const SearchPoint&, const SearchPoint&) = default;
};

// Writes the point into a scenario of its frame.
void fill_in(const SearchPoint& point, Scenario& scenario);

}  // namespace stagecraft
