// Jobs and histories that a person can follow with a pencil: steps of whole seconds, incidents at whole
// seconds.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/goodput/job.hpp"
#include "sim/goodput/policies/checkpoint_restart.hpp"

namespace stagecraft::made {

inline Duration seconds(std::int64_t count) {
  return std::chrono::seconds(count);
}

inline Incident fault(std::int64_t at, int node = 0, std::int64_t detect = 0) {
  return {
      .time = seconds(at), .kind = IncidentKind::kFault, .id = node, .node = node, .detect = seconds(detect)};
}
inline Incident removal(std::int64_t at, int node, std::int64_t detect = 0) {
  return {.time = seconds(at),
          .kind = IncidentKind::kRemove,
          .id = node,
          .node = node,
          .detect = seconds(detect)};
}
inline Incident addition(std::int64_t at, int node) {
  return {.time = seconds(at), .kind = IncidentKind::kAdd, .id = node, .node = node, .due = seconds(at)};
}

inline History history(int nodes, std::vector<Incident> incidents) {
  return {.nodes = nodes, .incidents = std::move(incidents), .causes = {"cause"}};
}

// Every number of nodes trains one sample a step of this length.
inline ShapeOf always(std::int64_t step, int nodes) {
  return [=](int) { return ShapedStep{.duration = seconds(step), .samples = 1, .nodes = nodes}; };
}

struct Restarted {
  int nodes = 1;
  std::int64_t step = 10;
  std::int64_t restart = 0;
};
inline CheckpointRestart restarted(const Restarted& made) {
  return CheckpointRestart(
      {.nodes = made.nodes, .restart = {{1, seconds(made.restart)}}, .shape = always(made.step, made.nodes)});
}

inline JobSpec job(std::int64_t horizon, std::int64_t step = 10,
                   std::optional<Checkpointing> checkpointing = std::nullopt) {
  return {.horizon = seconds(horizon),
          .ideal = {.duration = seconds(step), .samples = 1, .nodes = 1},
          .checkpointing = checkpointing,
          .timeline = true};
}

}  // namespace stagecraft::made
