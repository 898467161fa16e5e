// Usage of each link, and the flows that met on it, accumulated during the run.
//
// All sums are integers, so they do not depend on the order of events at one instant. The caller passes the
// time, which never decreases.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

class NetworkUsage {
 public:
  // The part of a task that matters to the tasks that its transfer meets.
  struct Crossing {
    LabelId label;                            // the first of its name
    std::optional<std::uint64_t> together{};  // identifies the same flow on copies of its resource

    friend bool operator==(const Crossing&, const Crossing&) = default;
  };

  explicit NetworkUsage(const Program& program);
  [[nodiscard]] Crossing crossing_of(const Program& program, TaskId task, ResourceId resource) const;

  // A transfer begins, or ends, to cross the link.
  void enter(LinkId link, const Crossing& by, Duration now);
  void leave(LinkId link, const Crossing& by, Duration now);
  void carry(LinkId link, double bytes);
  // Adds the time that the unit flows of a task on this link lost because it was their bottleneck.
  void lose(LinkId link, double nanoseconds);
  void set_full(LinkId link, bool full, Duration now);

  // Call when all transfers have left.
  [[nodiscard]] IdVector<LinkId, LinkUsage> links() const;
  [[nodiscard]] std::vector<Meeting> meetings() &&;

 private:
  // Transfers that are made together: to others they are one.
  struct Copies {
    Crossing by;
    std::uint32_t count = 0;
  };
  // A label with transfers on the link. Times are readings of the link's full clock, which runs only while
  // the link is full, so changes of its load do not touch the entries.
  struct Present {
    LabelId label;
    std::uint32_t count = 0;
    Duration since{};         // the first of them
    Duration second_since{};  // time at which there were two
  };
  // A sum of amounts, each rounded to 2^-10, so that the order does not matter. It saturates at 2^63.
  struct Tally {
    std::int64_t whole = 0, parts = 0;

    void add(double amount);
    [[nodiscard]] double value() const;
    [[nodiscard]] std::int64_t rounded() const;  // halves up
  };
  struct LinkTally {
    Tally bytes;
    Tally lost;  // ns
    Duration busy{};
    Duration busy_since{};
    Duration full{};
    Duration full_since{};
    bool is_full = false;
    std::vector<Present> present;
    std::vector<Copies> copies;
  };

  [[nodiscard]] static Duration full_clock(const LinkTally& link, Duration now) {
    return link.is_full ? link.full + (now - link.full_since) : link.full;
  }
  void meet(LinkId link, LabelId a, LabelId b, Duration time);
  void merge_meetings();

  IdVector<LinkId, LinkTally> links_;
  IdVector<LabelId, LabelId> first_of_name_;
  std::vector<Meeting> meetings_;  // some of them several times, in parts
  std::size_t merge_at_ = 4096;    // entries: the list is merged when it has grown so long
};

}  // namespace stagecraft
