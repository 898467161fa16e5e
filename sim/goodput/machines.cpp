#include "sim/goodput/machines.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/ids.hpp"

namespace stagecraft {

Machines::Machines(int nodes, bool all_up_at_start) : nodes_(as_index(nodes)) {
  if (!all_up_at_start) return;
  in_order_.reserve(nodes_.size());
  for (int node = 0; node < nodes; ++node) {
    nodes_[as_index(node)].up = true;
    in_order_.push_back(node);
  }
}

double Machines::factor(int node) const {
  return std::max(compute(node), traffic(node));
}

std::vector<Duration> Machines::dues(Duration now) const {
  std::vector<Duration> dues;
  for (const int node : in_order_) dues.push_back(std::max(due(node), now));
  std::ranges::sort(dues);
  return dues;
}

std::optional<Duration> Machines::until_next_due(Duration now) const {
  std::optional<Duration> next;
  for (const int node : in_order_)
    if (due(node) > now) next = std::min(next.value_or(Duration::max()), due(node) - now);
  return next;
}

void Machines::apply(const Incident& incident) {
  SC_CHECK(incident.node >= 0 && incident.node < count(), "an incident hits a node that the history has");
  Node& node = nodes_[as_index(incident.node)];
  switch (incident.kind) {
    case IncidentKind::kAdd:
      SC_CHECK(!node.up, "a node is added while it is absent");
      node = {.up = true, .life = node.life + 1, .due = incident.due};
      in_order_.push_back(incident.node);
      break;
    case IncidentKind::kRemove:
      SC_CHECK(node.up, "a node is removed while it is there");
      node = {.life = node.life};
      in_order_.erase(std::find(in_order_.begin(), in_order_.end(), incident.node));
      std::erase(slow_, incident.node);
      break;
    case IncidentKind::kSlow:
      set_factor(incident, incident.factor);
      break;
    case IncidentKind::kNormal:
      set_factor(incident, 1);
      break;
    case IncidentKind::kFault:
    case IncidentKind::kCorruption:
    case IncidentKind::kAnnounced:
      break;
  }
}

void Machines::set_factor(const Incident& incident, double factor) {
  Node& node = nodes_[as_index(incident.node)];
  if (!node.up) return;  // its slowness went with it
  (incident.part == SlowPart::kCompute ? node.compute : node.traffic) = factor;
  std::erase(slow_, incident.node);
  if (this->factor(incident.node) > 1) slow_.push_back(incident.node);
}

}  // namespace stagecraft
