// A timeline in few bytes, for a page that draws it: about two bytes a slice.
//
//   slices    of each lane in order, each a head and up to three numbers, all varints:
//               head         label * 8 + (4 if there is a gap before it) + (2 if it does not last as long as
//                            its label says) + (1 if its micro-batch is not the next of its label on this
//                            lane)
//               gap          nanoseconds from the end of the slice before it, or from 0
//               time         nanoseconds
//               micro-batch  zigzag of the difference to the last of its label on this lane, which begins at
//                            -1
//             Labels that never have a micro-batch have none here.
//   labels    those of the program that tell the same (name, stage, parts) are one
//   idle      on compute lanes what is left are slices as well, of labels of their own: bubble, and exposed
//             communication by what is waited for
//   path      critical path: for each task that takes time, the lane and the slice, as zigzag varints of the
//             difference to the task before it
//
// Tasks of zero time are left out. Ranks are packed while there is room; the others are not shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

enum class SliceKind : std::uint8_t { kTask, kBubble, kExposed };

struct PackedLabel {
  SliceKind kind = SliceKind::kTask;
  LabelId label;    // label of the program; for kExposed that of the awaited communication
  Duration time{};  // of its first task that takes any; of idle ones 0
  bool micro_batches = false;
};

struct PackedLane {
  std::int32_t rank = 0;
  std::string name;
  bool compute = false;
  std::size_t slices = 0;
  std::size_t offset = 0;  // offset of its first byte
};

struct PackedTimeline {
  std::vector<PackedLabel> labels;
  std::vector<PackedLane> lanes;
  std::string slices, path;  // bytes
  std::size_t path_tasks = 0;
  std::int32_t shown_ranks = 0, ranks = 0;
};

// `room`: bytes of slices; the first rank is shown in any case.
[[nodiscard]] PackedTimeline pack_timeline(const Program& program, const Timeline& timeline,
                                           std::size_t room);

}  // namespace stagecraft
