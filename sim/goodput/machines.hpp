// The nodes that are up, in order of arrival, and the slowness of each.
#pragma once

#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "sim/goodput/incident.hpp"

namespace stagecraft {

class Machines {
 public:
  explicit Machines(int nodes, bool all_up_at_start = true);

  // throws InternalError when an absent node is removed, a present one added, or there is no such node.
  void apply(const Incident& incident);

  [[nodiscard]] int count() const { return static_cast<int>(nodes_.size()); }  // up or not
  [[nodiscard]] bool up(int node) const { return nodes_[as_index(node)].up; }
  // Number of arrivals of the node: a node that left and came back holds no state.
  [[nodiscard]] int life(int node) const { return nodes_[as_index(node)].life; }
  // When the node is usable (docs/resilience.md, section 1: creating, ready).
  [[nodiscard]] Duration due(int node) const { return nodes_[as_index(node)].due; }
  // Factors on its compute and its traffic (>= 1), and the larger of the two.
  [[nodiscard]] double compute(int node) const { return nodes_[as_index(node)].compute; }
  [[nodiscard]] double traffic(int node) const { return nodes_[as_index(node)].traffic; }
  [[nodiscard]] double factor(int node) const;
  // The nodes that are up, in the order of their adds; at the start by number.
  [[nodiscard]] const std::vector<int>& in_order() const { return in_order_; }
  [[nodiscard]] int up_count() const { return static_cast<int>(in_order_.size()); }
  // When each node that is up is usable, ascending: at `now` at the earliest.
  [[nodiscard]] std::vector<Duration> dues(Duration now) const;
  // From `now` until the next node under creation is usable; nullopt: none is.
  [[nodiscard]] std::optional<Duration> until_next_due(Duration now) const;
  [[nodiscard]] const std::vector<int>& slow() const { return slow_; }  // nodes with a factor above 1

 private:
  struct Node {
    bool up = false;
    int life = 0;
    Duration due{};
    double compute = 1;
    double traffic = 1;
  };

  void set_factor(const Incident& incident, double factor);

  std::vector<Node> nodes_;
  std::vector<int> in_order_;
  std::vector<int> slow_;
};

}  // namespace stagecraft
