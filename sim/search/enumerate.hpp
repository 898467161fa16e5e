// All plans of a space, in a fixed order.
//
//   A plan takes all GPUs of its count: tensor x pipeline x context x data, `data` being what the others
//   leave; degrees that do not divide the GPUs make no plan. Every other rule (heads, layers, samples,
//   experts, what a schedule takes) is for the placement to judge, so that each refusal has its reason.
//   Orders of the default space that the software does not run make no plan (software_orders.hpp).
//   What changes nothing is listed once: sequence parallelism of a single tensor rank, ZeRO of a single
//   replica (but for what software does under ZeRO alone), chunks of a schedule that runs one, and other keys
//   where they have no effect (same_plans.hpp). Selective recompute of the core of flash attention, which frees
//   next to nothing, is left out beside none.
//   Layers of the stages are the scenario's in plans that have as many stages as its split has entries, and
//   in all where the split is fixed; else even, or spread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/search/search_point.hpp"
#include "sim/search/search_space.hpp"
#include "sim/search/software_orders.hpp"

namespace stagecraft {

// Larger spaces are refused: probably a key was meant to be fixed.
inline constexpr std::size_t kMostCandidates = 1'000'000;
// Each is a few scenarios in memory (frames.hpp).
inline constexpr std::size_t kMostFrameChoices = 10'000;

// A loaded scenario for one schedule, number of GPUs and value of every other key.
struct SearchFrame {
  Scenario scenario;
  std::size_t choice = 0;  // its number among the choices of those values, those that are refused included
  int gpus = 0;
  bool chunked = false;   // its schedule takes chunks
  bool one_chunk = true;  // it takes one chunk
  int own_zero = 0;       // ZeRO stage that the scenario has, whatever the frame was loaded with
  std::optional<YamlNode> schedule = {}, recompute = {};  // as they are written, where they are
  RunOrders runs = {};
  // Plans of several stages that are none, as its software does not run its order.
  std::size_t left_aside = 0;
};

// Choices of values that make no scenario: one reason, with the first choice that it met.
struct RefusedChoices {
  Diagnostic reason;
  std::size_t choice = 0;
  std::size_t count = 0;
};

// A listed degree that no plan has.
struct UnusedDegree {
  std::string path;
  std::int64_t value = 0;
};

struct SearchPlans {
  std::vector<SearchFrame> frames;
  std::vector<SearchPoint> points;
  std::size_t without_own_layers = 0;  // of the points: other stages than the scenario's split has
  std::vector<UnusedDegree> unused = {};
  std::vector<RefusedChoices> refused = {};  // most frequent first
};

// nullopt after mistakes, reported here or before: values that are none, a cluster without such GPU counts, a
// space without a scenario, without a plan or with too many.
[[nodiscard]] std::optional<SearchPlans> enumerate_plans(const ScenarioTree& base, const SearchSpace& space,
                                                         Library& library, Diagnostics& diagnostics);

}  // namespace stagecraft
