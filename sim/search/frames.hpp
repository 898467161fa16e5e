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

// Is a point set to its values in place? Else they are of frames.
[[nodiscard]] bool set_in_place(const SearchAxis& axis);

// What software is the usual one, and what it does by default, depends on what of the model is sharded.
enum class FrameKind : std::uint8_t {
  kReplicated,     // ZeRO 0 and 1
  kSharded,        // ZeRO 2 and 3, of whole layers on each rank
  kShardedTensor,  // of tensor ranks' shares
  kShardedStages,  // of the stages of a pipeline
};
inline constexpr std::uint32_t kFrameKinds = 4;

// Which of its values an axis of frames, one of the space's own, has in a frame: frames are made in the order
// of the axes, the last fastest.
[[nodiscard]] std::size_t frame_choice(const SearchSpace& space, const SearchAxis& axis, std::uint32_t frame);

// One of each kind, in their order, for each number of GPUs, schedule and choice of other values. Reports.
[[nodiscard]] std::optional<std::vector<SearchFrame>> load_frames(const ScenarioTree& base,
                                                                  const SearchSpace& space, Library& library,
                                                                  Diagnostics& diagnostics);

}  // namespace stagecraft
