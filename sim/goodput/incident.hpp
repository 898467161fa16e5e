// Incidents of the machines in one repeat, independent of the policy.
//
// Policies are compared on the same history. A history is made once per repeat and holds incidents only:
// 2,048 nodes in 54 days have some 500 incidents, so nothing ever scans all nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {

// The order at equal times (docs/resilience.md, section 1): add, remove, then the rest.
enum class IncidentKind : std::uint8_t {
  kAdd = 1,     // the node is there, usable from `due`
  kRemove,      // the node leaves; its slowness ends
  kFault,       // the job's processes on the node die; the node stays usable
  kSlow,        // from now on `part` of the node takes `factor` times as long
  kNormal,      // the node's `part` is as fast as ever again
  kCorruption,  // found out now: results were wrong since `onset`; the node stays usable
  kAnnounced,   // the node will be removed (maintenance) at `due`, by an incident of its own
};

// The slow part of a slow node. A slow link counts as a node with slow traffic.
enum class SlowPart : std::uint8_t { kCompute, kTraffic };
inline constexpr std::string_view kSlowPartNames[] = {"compute", "traffic"};

struct Incident {
  Duration time{};
  IncidentKind kind = IncidentKind::kFault;
  SlowPart part = SlowPart::kCompute;  // part of kSlow and kNormal
  std::int32_t id = 0;  // canonical: the row of a trace, else the node; orders equal (time, kind)
  std::int32_t node = 0;
  std::int32_t cause = 0;  // index in History::causes; of kAdd: meaningless
  double factor = 1;       // factor of kSlow, > 1: the larger one where two overlap
  Duration detect{};       // from `time` until the job knows; 0 where it needs no detection
  Duration due{};          // kAdd, kAnnounced
  Duration onset{};        // kCorruption

  friend bool operator==(const Incident&, const Incident&) = default;
};

// Does it take a node, its processes or its results from the job?
[[nodiscard]] constexpr bool is_loss(const Incident& incident) {
  return incident.kind == IncidentKind::kRemove || incident.kind == IncidentKind::kFault ||
         incident.kind == IncidentKind::kCorruption;
}

struct History {
  int nodes = 0;                // 0..nodes-1, spares among them
  bool all_up_at_start = true;  // otherwise all are down: a trace or a spot process adds them
  // By (time, kind, id), before the horizon; a node is removed only while it is there.
  std::vector<Incident> incidents;
  std::vector<std::string> causes;  // names, each once

  friend bool operator==(const History&, const History&) = default;
};

}  // namespace stagecraft
