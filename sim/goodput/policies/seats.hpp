// Seating plan of a job: one node per place.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "base/ids.hpp"
#include "sim/goodput/machines.hpp"

namespace stagecraft {

class Seats {
 public:
  [[nodiscard]] bool has(int node) const { return place_of(node) >= 0; }
  // -1: none.
  [[nodiscard]] int place_of(int node) const {
    return as_index(node) < places_.size() ? places_[as_index(node)] : -1;
  }
  [[nodiscard]] const std::vector<int>& nodes() const { return nodes_; }

  // Fills `count` places. Nodes that are up keep their places. The others go to nodes that are up, in order
  // of arrival, and to nodes slower than `slow` only when no other is left. Where fewer nodes are up, empty
  // places are dropped and the others move up.
  //   returns  how many changed hands
  int fill(int count, const Machines& machines, double slow = std::numeric_limits<double>::infinity());
  // Empties the place of the node until the next fill.
  void leave(int node);
  void clear();

  // Time at which the last of the nodes is usable.
  [[nodiscard]] Duration due(const Machines& machines) const;

 private:
  std::vector<int> nodes_;   // by place
  std::vector<int> places_;  // by node
};

}  // namespace stagecraft
