// The scenarios that the points of a search are filled into: see search_point.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/scenario/library.hpp"
#include "sim/scenario/scenario_tree.hpp"
#include "sim/search/enumerate.hpp"
#include "sim/search/search_space.hpp"

namespace stagecraft {

// Is a point set to its values in place? Else they are of frames: of most keys, and all that are no plain
// words.
[[nodiscard]] bool set_in_place(const SearchAxis& axis);

// The default software and its defaults depend on the sharded parts of the model.
enum class FrameKind : std::uint8_t {
  kReplicated,     // ZeRO 0 and 1
  kSharded,        // ZeRO 2 and 3, of whole layers on each rank
  kShardedTensor,  // shards of tensor ranks
  kShardedStages,  // shards of pipeline stages
};
inline constexpr std::uint32_t kFrameKinds = 4;

// How many choices have frames: numbers of GPUs, schedules and other values that are not set in place. Counted
// up to the first product above `most`.
[[nodiscard]] std::size_t frame_choices(const SearchSpace& space, std::size_t most);

// Index of the value that an axis has in the choice of this number. Choices are made in the order of the axes,
// the last one fastest.
[[nodiscard]] std::size_t value_in_choice(const SearchSpace& space, const SearchAxis& axis,
                                          std::size_t choice);

struct LoadedFrames {
  std::vector<SearchFrame> frames;
  std::vector<RefusedChoices> refused = {};
};

// Loads one frame of each kind, in order, for each number of GPUs, schedule and choice of other values that
// makes a scenario. Reports the mistakes of the first choice where none does.
[[nodiscard]] std::optional<LoadedFrames> load_frames(const ScenarioTree& base, const SearchSpace& space,
                                                      Library& library, Diagnostics& diagnostics);

}  // namespace stagecraft
