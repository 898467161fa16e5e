// The measures of a timeline that a report has: pure functions of the program and its timeline.
//
//   Breakdown: passes as the busiest rank spends them; exposed communication and the tail as the critical
//   path has them; the bubble is what remains of the iteration. The parts add up to the iteration time, to
//   the nanosecond. A task that shared links or its device lasts longer than its label says: all its parts
//   are longer by the same factor.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "sim/engine/engine.hpp"
#include "sim/lower/category.hpp"
#include "sim/program/program.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {

// Tasks on the compute streams with a stage are passes; everything else is not. `weights`, by copy of the
// pipeline: number of replicas that it stands for; empty: all equal.
[[nodiscard]] Bubble measure_bubble(const Program& program, const Timeline& timeline,
                                    std::span<const int> weights = {});

[[nodiscard]] Breakdown measure_breakdown(const Program& program, const Timeline& timeline);

// Sources of the breakdown. All of them together are the iteration.
struct BreakdownSources {
  std::size_t rank = 0;      // the busiest
  Breakdown passes{};        // as that rank spends them
  Breakdown waited{};        // before the last pass ends: exposed on the chain to it, and the bubble
  Breakdown after{};         // after it, on the critical path
  Duration last_pass_end{};  // of any rank: passes and waited together
};

[[nodiscard]] BreakdownSources breakdown_sources(const Program& program, const Timeline& timeline);

// For each task the first predecessor (lowest id; the one before it on its stream counts) that ended when it
// started.
[[nodiscard]] IdVector<TaskId, std::optional<TaskId>> tight_predecessors(const Program& program,
                                                                         const Timeline& timeline);

// Tasks from time 0 to the last end, each starting when the one before ends; deterministic among equals
// (lowest id).
[[nodiscard]] std::vector<TaskId> critical_path(const Program& program, const Timeline& timeline);

// The tasks of the critical path summed by name; the times add up to the iteration.
[[nodiscard]] std::vector<PathShare> measure_critical_path(const Program& program, const Timeline& timeline);

// The reported iteration. Of several consecutive ones it is the last but one, from the end of the iteration
// before it to its own end, because the last iteration has no successor. A single one is reported whole.
struct Window {
  Duration begin{}, end{};
  [[nodiscard]] Duration length() const { return end - begin; }
  friend bool operator==(const Window&, const Window&) = default;
};
[[nodiscard]] Window iteration_window(const Program& program, const Timeline& timeline);

// Bubble of an iteration in steady state. Its makespan and span are the length of the window less what the
// busiest rank spends on its step there: gradients, the optimizer, the host.
[[nodiscard]] Bubble measure_steady_bubble(const Program& program, const Timeline& timeline, Window window);
// Breakdown from the passes of the busiest rank in the window. Other work on the critical path counts as
// exposed, up to the idle time of that rank.
[[nodiscard]] Breakdown measure_steady_breakdown(const Program& program, const Timeline& timeline,
                                                 Window window);

// Time on the critical path in the window, by name; adds up to the length of the window.
[[nodiscard]] std::vector<PathShare> measure_steady_path(const Program& program, const Timeline& timeline,
                                                         Window window);

// `alike`: number of cluster links that each link of the program stands for. `idle_time`: makespan on an idle
// network.
[[nodiscard]] NetworkReport measure_network(const Program& program, const Timeline& timeline,
                                            std::span<const int> alike, Duration idle_time);

// The ranks that stand still in a stalled timeline. `ranks` maps compute streams to the names of their ranks.
[[nodiscard]] std::vector<StalledRank> measure_stall(const Program& program, const Timeline& timeline,
                                                     std::span<const std::string> ranks);

}  // namespace stagecraft
