// Plans of a space that differ in nothing, for which a search lists the first alone.
//
//   They are the same where their frames are the same scenario (a value listed twice, or written in two ways),
//   and where they differ in keys alone that have no effect in either (no_effect.hpp says it for a scenario).
//   Of a fabric's keys it speaks of rates, not of latencies, so that plans that differ in those are different
//   ones, and so are plans that a key without effect makes illegal. Orders of ranks are the same where the axes
//   of more than one rank stand in the same order, and schedules on one stage where their passes are: 1f1b and
//   varuna, and gpipe of one micro-batch, but not zb-h1, which has two passes for a backward.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/search/enumerate.hpp"
#include "sim/search/search_point.hpp"
#include "sim/search/search_space.hpp"

namespace stagecraft {

class SamePlans {
 public:
  // Both outlive this.
  SamePlans(const SearchSpace& space, const std::vector<SearchFrame>& frames);

  // Are the frames from `frame` on, one of each kind, those of an earlier choice?
  [[nodiscard]] bool is_repeated(std::uint32_t frame) const { return repeated_.contains(frame); }
  // Remembers a plan that is.
  [[nodiscard]] bool is_new(const SearchPoint& point);

 private:
  // What frame it has and is, but for what has no effect in it.
  struct Identity {
    std::vector<std::int64_t> choices;  // of the axes of frames; kIdle where the key has no effect
    SearchPoint point;

    friend auto operator<=>(const Identity&, const Identity&) = default;
  };

  using IdleKeys = std::set<std::string, std::less<>>;  // found by any kind of text
  [[nodiscard]] IdleKeys idle_keys(const SearchPoint& point);
  [[nodiscard]] std::optional<std::int64_t> order_of_one_stage(const SearchPoint& point);

  const SearchSpace& space_;
  const std::vector<SearchFrame>& frames_;
  std::vector<const SearchAxis*> asked_;         // axes whose keys may have no effect
  std::set<std::uint32_t> repeated_;             // first frames of choices that came before
  std::map<std::uint32_t, Scenario> scenarios_;  // by frame: to fill points into
  std::set<Identity> known_;                     // plans that have such a key
  // Numbers of orders on one stage: of what they are, and by frame and micro-batches.
  std::map<std::string, std::int64_t> orders_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::optional<std::int64_t>> orders_of_one_stage_;
};

}  // namespace stagecraft
