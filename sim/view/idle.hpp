// Where a compute stream stands still, and for whom.
//
// The end of a gap is when what it waited for came to an end. As far back as that was communication, one
// transfer after another without a break (by an edge, or on one stream), the wait is exposed communication;
// what is before it is bubble.
#pragma once

#include <optional>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"
#include "sim/view/lanes.hpp"

namespace stagecraft {

struct Gap {
  Duration begin{}, end{};
  Duration exposed_from{};  // in [begin, end]; end: all of it is bubble
  std::optional<TaskId>
      waits_for{};  // the communication that is exposed, or else the last task before the end
  friend bool operator==(const Gap&, const Gap&) = default;
};

class Waits {
 public:
  Waits(const Program& program, const Timeline& timeline);

  // Gaps of a stream from 0 to the end of the timeline, by time. Tasks without a length make none.
  [[nodiscard]] std::vector<Gap> gaps_of(const Lane& lane) const;

 private:
  [[nodiscard]] std::optional<TaskId> cause_of(TaskId task) const;
  [[nodiscard]] bool computes(TaskId task) const;
  [[nodiscard]] Gap gap_before(Duration begin, TaskId task) const;

  const Program& program_;
  const Timeline& timeline_;
  std::vector<std::uint32_t> cause_;    // by task: of those that end when it starts the lowest; or none
  std::vector<bool> compute_resource_;  // by resource
};

// Whether each resource is the stream on which a rank computes. Its name says so.
[[nodiscard]] std::vector<bool> compute_resources(const Program& program);

}  // namespace stagecraft
