// Idle gaps of a compute stream, and their causes.
//
// A gap ends when its last input arrives. Going back from there, the wait is exposed communication as far as
// it was an unbroken chain of transfers (by an edge, or on one stream). The rest before it is bubble.
#pragma once

#include <optional>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"
#include "sim/view/lanes.hpp"

namespace stagecraft {

struct Gap {
  Duration begin{}, end{};
  Duration exposed_from{};            // in [begin, end]; end: the whole gap is bubble
  std::optional<TaskId> waits_for{};  // the exposed communication, otherwise the last task before the end
  friend bool operator==(const Gap&, const Gap&) = default;
};

class Waits {
 public:
  Waits(const Program& program, const Timeline& timeline);

  // Gaps of a stream from 0 to the end of the timeline, by time. Tasks of zero duration make none.
  [[nodiscard]] std::vector<Gap> gaps_of(const Lane& lane) const;

 private:
  [[nodiscard]] bool computes(TaskId task) const;
  [[nodiscard]] Gap gap_before(Duration begin, TaskId task) const;

  const Program& program_;
  const Timeline& timeline_;
  IdVector<TaskId, std::optional<TaskId>> cause_;
  std::vector<bool> compute_resource_;  // by resource
};

// Is each resource the compute stream of a rank? Its name decides.
[[nodiscard]] std::vector<bool> compute_resources(const Program& program);

}  // namespace stagecraft
