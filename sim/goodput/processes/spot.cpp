#include "sim/goodput/processes/spot.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>

#include "base/check.hpp"
#include "base/ids.hpp"

namespace stagecraft {

namespace {

constexpr std::uint32_t kDrawsPerRemoval = 2;   // does it happen, and at which second
constexpr std::uint32_t kDrawsPerAddition = 4;  // the same, and the same for its own removal

// A change within an hour. Node −1: a candidate, which gets its number when it is added.
struct Change {
  int second = 0;
  TraceEvent event = TraceEvent::kAdd;
  std::int32_t node = -1;
  std::optional<int> leaves;  // for a candidate: its own removal

  friend bool operator>(const Change& a, const Change& b) {
    return std::tuple(a.second, a.event, a.node) > std::tuple(b.second, b.event, b.node);
  }
};

class Market {
 public:
  Market(const HourlySpot& law, const SpotRun& run) : law_(law), run_(run) {
    if (law.random_additions) {
      Stream draws = stream(0, Purpose::kSpotTable);
      for (double& chance : law_.add) chance = draws.uniform();
    }
    for (const auto& table : {law_.add, law_.remove})
      for (const double chance : table) SC_CHECK(chance >= 0 && chance <= 1, "a chance is in [0, 1]");
  }

  std::vector<TraceRow> rows() {
    Stream slots = stream(0, Purpose::kSpotSlots);
    for (int i = 0; i < run_.capacity; ++i)
      if (slots.uniform() < chance(law_.add, 0)) add(Duration(0));
    for (std::uint32_t hour = 0; start_of(hour) < run_.horizon; ++hour) live(hour);
    return std::move(rows_);
  }

 private:
  using Agenda = std::priority_queue<Change, std::vector<Change>, std::greater<>>;

  [[nodiscard]] Stream stream(std::uint32_t entity, Purpose purpose, std::uint32_t first = 0) const {
    StreamKey key = run_.key;
    key.entity = entity;
    key.purpose = purpose;
    return Stream(key, first);
  }
  [[nodiscard]] double chance(const std::array<double, 24>& table, std::uint32_t hour) const {
    return table[(as_index(law_.start_hour) + hour) % table.size()];
  }
  static Duration start_of(std::uint32_t hour) { return std::chrono::hours(hour); }

  std::int32_t add(Duration time) {
    rows_.push_back({.time = time, .event = TraceEvent::kAdd, .node = next_});
    present_.push_back(next_);
    return next_++;
  }

  // The second at which something of this chance happens, if it does: always two draws.
  static std::optional<int> second_of(Stream& draws, double chance) {
    const bool happens = draws.uniform() < chance;
    const int second = draws.below(3600);
    return happens ? std::optional(second) : std::nullopt;
  }

  // The removals and candidate additions that are known when the hour begins.
  Agenda plan(std::uint32_t hour) const {
    Agenda agenda;
    const double leave = chance(law_.remove, hour);
    std::uint32_t free =
        static_cast<std::uint32_t>(run_.capacity) - static_cast<std::uint32_t>(present_.size());
    for (std::uint32_t i = 0; i < present_.size(); ++i) {
      Stream draws = stream(hour, Purpose::kSpotRemoval, kDrawsPerRemoval * i);
      const auto second = second_of(draws, leave);
      if (!second) continue;
      agenda.push({.second = *second, .event = TraceEvent::kRemove, .node = present_[i], .leaves = {}});
      ++free;
    }
    for (std::uint32_t i = 0; i < free; ++i) {
      Stream draws = stream(hour, Purpose::kSpotAddition, kDrawsPerAddition * i);
      const auto second = second_of(draws, chance(law_.add, hour));
      if (second) agenda.push({.second = *second, .leaves = second_of(draws, leave)});
    }
    return agenda;
  }

  void live(std::uint32_t hour) {
    for (Agenda agenda = plan(hour); !agenda.empty();) {
      const Change change = agenda.top();
      agenda.pop();
      const Duration time = start_of(hour) + std::chrono::seconds(change.second);
      if (time >= run_.horizon) return;
      if (change.event == TraceEvent::kRemove) {
        rows_.push_back({.time = time, .event = TraceEvent::kRemove, .node = change.node});
        std::erase(present_, change.node);
      } else if (present_.size() < as_index(run_.capacity)) {
        const std::int32_t node = add(time);
        if (change.leaves && *change.leaves >= change.second)
          agenda.push({.second = *change.leaves, .event = TraceEvent::kRemove, .node = node, .leaves = {}});
      }
    }
  }

  HourlySpot law_;
  const SpotRun& run_;
  std::vector<std::int32_t> present_;  // nodes in order of arrival
  std::int32_t next_ = 0;
  std::vector<TraceRow> rows_;
};

}  // namespace

std::vector<TraceRow> spot_rows(const HourlySpot& law, const SpotRun& run) {
  return Market(law, run).rows();
}

}  // namespace stagecraft
