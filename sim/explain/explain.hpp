// Derivation of the figures of a result.
//
//   The value of every node is that of the run, to the last bit, and that of its formula. What has no
//   formula says which key, profile row, ledger or simulation it was read from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/explain/explanation.hpp"
#include "sim/explain/figures.hpp"
#include "sim/explain/stage_pieces.hpp"
#include "sim/report/measure.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {

// Explains the figures of one simulation, which must live longer.
class Explainer {
 public:
  Explainer(const Scenario& scenario, const Simulation& simulation);

  // `figure` of the simulation's report.
  [[nodiscard]] Explanation of(const Figure& figure);

 private:
  [[nodiscard]] std::optional<Explanation> tree(const std::string& path);
  [[nodiscard]] std::optional<Explanation> passes(Category category);
  [[nodiscard]] Explanation gpus() const;
  [[nodiscard]] Explanation samples() const;
  [[nodiscard]] Explanation tokens() const;
  [[nodiscard]] Explanation iteration_time();
  [[nodiscard]] Explanation part(Category category);
  [[nodiscard]] Explanation bubble_left() const;
  [[nodiscard]] Explanation waited(Category category) const;
  [[nodiscard]] std::string exposed_text(Category category) const;
  [[nodiscard]] Explanation ideal();
  [[nodiscard]] Explanation over_ideal();
  [[nodiscard]] Explanation flop_rate(bool hardware);
  [[nodiscard]] Explanation utilization(bool hardware);
  [[nodiscard]] std::optional<Explanation> rate(const std::string& path);

  const Scenario& scenario_;
  const Simulation& simulation_;
  bool alone_;  // one iteration is simulated: it is the timeline
  BreakdownSources sources_{};
  Duration busiest_work_{};
  std::vector<TaskId> path_{};  // the critical one
  StagePieces pieces_;
};

}  // namespace stagecraft
