// A pipeline schedule: for each rank the order in which it runs its passes.
//
// This folder knows only integers: ranks, global stages, chunks, micro-batches. Costs of passes, messages and
// memory belong to other folders. That is why one order can be shown in the terminal, checked against the
// published ones and lowered into a simulation of a real model.
//
//   p ranks, v chunks a rank, p*v global stages in model order, m micro-batches.
//   Where global stage s lives depends on the schedule: see Placement.
//   source  Narayanan et al., SC'21 (arXiv 2104.04473), section 2.2; the notation `<stage><pass><mb>` is that
//           of PyTorch's pipelining.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/costs.hpp"
#include "sim/schedule/placement.hpp"

namespace stagecraft {

enum class Pass : std::uint8_t {
  kForward,         // F
  kBackward,        // B, input and weight gradient in one
  kInputGradient,   // I
  kWeightGradient,  // W
  kRecompute,       // R, a forward again
};
inline constexpr std::size_t kPassCount = 5;

// Does the pass produce the gradient that the stage before waits for? The gradients of its own weights?
[[nodiscard]] constexpr bool gives_gradient(Pass pass) {
  return pass == Pass::kBackward || pass == Pass::kInputGradient;
}
[[nodiscard]] constexpr bool makes_weight_gradients(Pass pass) {
  return pass == Pass::kBackward || pass == Pass::kWeightGradient;
}

[[nodiscard]] char letter(Pass pass);

struct Action {
  Pass pass = Pass::kForward;
  std::int32_t stage = 0;  // global
  std::int32_t micro_batch = 0;
  bool fused = false;  // runs as one with the next action of its rank: a fused pair (x;y) is two actions

  friend auto operator<=>(const Action&, const Action&) = default;
};

[[nodiscard]] std::string to_string(const Action& action);  // "3F7", fused or not

// Input of a generator.
struct PipelineShape {
  int ranks = 1;          // p
  int micro_batches = 1;  // m
  int chunks = 1;         // v, model chunks per rank
  int group = 0;          // micro-batch group of interleaving; 0 = the schedule's own default

  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

[[nodiscard]] constexpr StagePlaces places_of(Placement placement, const PipelineShape& shape) {
  return {.placement = placement, .ranks = shape.ranks, .chunks = shape.chunks};
}
// The rank of a stage, for one micro-batch. requires both inside the shape.
[[nodiscard]] constexpr int rank_of(Placement placement, const PipelineShape& shape, int stage,
                                    int micro_batch) {
  const StagePlaces places = places_of(placement, shape);
  return places.rank_of(stage, places.copy_of(micro_batch, shape.micro_batches));
}

struct Schedule {
  std::string name;
  PipelineShape shape;
  Placement placement = Placement::kLoop;
  // False: one iteration of a steady state; a forward behind its backward is the next one's.
  bool flush = true;
  std::vector<std::vector<Action>> ranks;  // [rank] -> its actions in order

  [[nodiscard]] int stages() const { return shape.ranks * shape.chunks; }
  [[nodiscard]] StagePlaces places() const { return places_of(placement, shape); }
  [[nodiscard]] int copy_of(int micro_batch) const {
    return places().copy_of(micro_batch, shape.micro_batches);
  }
  [[nodiscard]] int rank_of(int stage, int micro_batch) const {
    return stagecraft::rank_of(placement, shape, stage, micro_batch);
  }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Why a shape or an order is not legal: the mistake with its numbers, and a hint.
struct ScheduleProblem {
  std::string message;
  std::string hint;
  friend bool operator==(const ScheduleProblem&, const ScheduleProblem&) = default;
};

// One row per schedule: feeds the scenario loader, `schedule show`, --help, the docs and the test loop.
struct ScheduleKind {
  std::string_view name;
  std::string_view summary;  // one line for --help
  std::string_view citation;
  bool chunked = false;  // takes chunks > 1
  bool grouped = false;  // takes a micro-batch group
  bool split_backward = false;
  bool fused_pairs = false;
  bool recomputes = false;  // has R passes of its own
  Placement placement = Placement::kLoop;
  int weight_versions = 1;  // versions of its weights that a rank keeps
  // Name of an fp32 copy of its weights that a rank keeps besides them and the optimizer's; empty: none.
  std::string_view kept_beside = {};
  bool flush = true;        // false: an iteration runs into the next one
  bool to_measure = false;  // looks at the costs; the others have a fixed order
  std::optional<ScheduleProblem> (*constraint)(const PipelineShape&) = nullptr;  // nullopt = legal
  // In words, and as functions that say nothing outside the range in which they hold: closed_forms.hpp.
  std::string_view bubble_form = {};  // makespan - ideal, "(p-1)(F+B)"
  std::string_view peak_form = {};    // chunk activations of rank r, "min(p-r, m)"
  std::optional<std::int64_t> (*bubble)(const PipelineShape&, const StageCosts&) = nullptr;
  std::optional<int> (*peak)(const PipelineShape&, int rank) = nullptr;
  // requires a legal shape. A fixed order does not look at the costs. The name is the row's to give.
  Schedule (*generate)(const PipelineShape&, const ScheduleCosts&) = nullptr;
};

[[nodiscard]] std::span<const ScheduleKind> schedule_kinds();
[[nodiscard]] const ScheduleKind* find_schedule(std::string_view name);
// Of a rank, where nobody says.
[[nodiscard]] constexpr int default_chunks(const ScheduleKind& kind) {
  return kind.chunked ? 2 : 1;
}

// All ranks. throws InternalError when the shape is not legal for the kind: ask kind.constraint first.
[[nodiscard]] Schedule generate(const ScheduleKind& kind, const PipelineShape& shape,
                                const ScheduleCosts& costs = {});

// Empty when valid: each (stage, micro-batch) forward once and backward once (B, or I and W) on the rank
// where its stage lives, fused pairs whole, and no deadlock. Nothing is assumed about the order. A deadlock
// is looked for once all else is well, and names the ring of who waits for whom. At most 20 problems, then
// one that says there are more.
[[nodiscard]] std::vector<ScheduleProblem> check(const Schedule& schedule);

// Position of a problem. check_placed() gives each problem its position where it has one; for a deadlock, a
// waiting pass in the ring.
struct SchedulePlace {
  int rank = 0;
  std::size_t position = 0;  // from 0 in the rank's order
  friend bool operator==(const SchedulePlace&, const SchedulePlace&) = default;
};
struct PlacedProblem {
  ScheduleProblem problem;
  std::optional<SchedulePlace> place;
  friend bool operator==(const PlacedProblem&, const PlacedProblem&) = default;
};
[[nodiscard]] std::vector<PlacedProblem> check_placed(const Schedule& schedule);

// Chunk activations that a rank holds: +1 at a forward, -1 after B or W. A recomputed chunk holds its
// activations from its R on. Both passes of a fused pair hold theirs until the pair ends.
enum class Held : std::uint8_t {
  kActivations,  // freed at B or W
  kUntilInput,   // tensors that only the input gradient needs: freed at B or I
  kInputs,       // inputs of recomputed stages: from F, recomputed or not, to B or I
};
// While each action of a rank's order runs.
[[nodiscard]] std::vector<int> in_flight(const std::vector<Action>& order, Held held = Held::kActivations);
// The most that each rank holds at once; of an order without a flush, in the steady state.
[[nodiscard]] std::vector<int> peak_in_flight(const Schedule& schedule, Held held = Held::kActivations);

}  // namespace stagecraft
