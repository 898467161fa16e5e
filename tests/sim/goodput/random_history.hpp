// Random histories in small whole seconds, so that ties are common; and the dice that they are made with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "tests/sim/goodput/made_job.hpp"

namespace stagecraft::made {

class Dice {
 public:
  explicit Dice(int seed) : engine_(static_cast<std::uint32_t>(seed)) {}
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool chance(int percent) { return between(1, 100) <= percent; }

 private:
  std::mt19937 engine_;
};

inline Incident random_incident(Dice& dice, std::int64_t at, int node, bool up) {
  Incident incident{.time = seconds(at), .id = node, .node = node, .detect = seconds(dice.between(0, 9))};
  if (!up) {
    incident.kind = IncidentKind::kAdd;
    incident.due = incident.time + seconds(dice.chance(30) ? dice.between(0, 30) : 0);
    return incident;
  }
  constexpr IncidentKind kinds[] = {
      IncidentKind::kRemove,     IncidentKind::kRemove,    IncidentKind::kRemove, IncidentKind::kFault,
      IncidentKind::kCorruption, IncidentKind::kAnnounced, IncidentKind::kSlow,   IncidentKind::kNormal};
  incident.kind = kinds[dice.between(0, 7)];
  incident.factor = 1 + dice.between(0, 8) / 4.0;
  incident.onset = std::max(Duration{}, incident.time - seconds(dice.between(0, 90)));
  incident.due = incident.time + seconds(dice.between(0, 60));
  return incident;
}

// One incident after the other, up to `gap` seconds apart; a node comes only while it is away, and has
// incidents only while it is there.
inline History random_history(Dice& dice, int nodes, std::int64_t horizon, int gap) {
  std::vector<char> up(static_cast<std::size_t>(nodes), 1);
  std::vector<Incident> incidents;
  for (std::int64_t at = dice.between(0, gap); at < horizon; at += dice.between(0, gap)) {
    const int node = dice.between(0, nodes - 1);
    char& here = up[static_cast<std::size_t>(node)];
    incidents.push_back(random_incident(dice, at, node, here != 0));
    const IncidentKind kind = incidents.back().kind;
    if (kind == IncidentKind::kAdd || kind == IncidentKind::kRemove) here ^= 1;
  }
  return history(nodes, std::move(incidents));
}

}  // namespace stagecraft::made
