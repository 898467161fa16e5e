#include "sim/goodput/policies/seats.hpp"

#include <algorithm>
#include <utility>

#include "base/ids.hpp"

namespace stagecraft {

int Seats::fill(int count, const Machines& machines, double slow) {
  std::vector<int> nodes = std::exchange(nodes_, {});
  nodes.resize(as_index(count), -1);
  std::vector<char> taken(as_index(machines.count()));
  for (int& node : nodes) {
    if (node >= 0 && !machines.up(node)) node = -1;
    if (node >= 0) taken[as_index(node)] = 1;
  }
  int changed = 0;
  for (const bool slow_too : {false, true}) {
    auto next = machines.in_order().begin();
    const auto passed_over = [&](int node) {
      return taken[as_index(node)] != 0 || (!slow_too && machines.factor(node) >= slow);
    };
    for (int& node : nodes) {
      if (node >= 0) continue;
      while (next != machines.in_order().end() && passed_over(*next)) ++next;
      if (next == machines.in_order().end()) break;
      node = *next++;
      taken[as_index(node)] = 1;
      ++changed;
    }
  }
  std::erase(nodes, -1);
  nodes_ = std::move(nodes);
  places_.assign(taken.size(), -1);
  for (std::size_t place = 0; place < nodes_.size(); ++place)
    places_[as_index(nodes_[place])] = static_cast<int>(place);
  return changed;
}

void Seats::leave(int node) {
  const int place = place_of(node);
  if (place < 0) return;
  nodes_[as_index(place)] = -1;
  places_[as_index(node)] = -1;
}

void Seats::clear() {
  nodes_.clear();
  places_.clear();
}

Duration Seats::due(const Machines& machines) const {
  Duration due{};
  for (const int node : nodes_) due = std::max(due, machines.due(node));
  return due;
}

}  // namespace stagecraft
