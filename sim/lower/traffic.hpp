// Traffic of a piece of an iteration on links that other traffic shares: those of the cluster under
// `network: flow`, or in closed form the own links of each rank (own_links.hpp).
//
// All groups of one kind of a pipeline rank communicate at the same time, so their loads are summed. A
// pattern lists the links that they use, per byte that one member sends. Larger jobs use the same pattern, so
// each pattern is computed once and traffic is a sum of patterns times bytes. Where nothing is shared there are
// no patterns, and all traffic is empty.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/by_pass.hpp"
#include "sim/lower/category.hpp"
#include "topology/collective_flows.hpp"

namespace stagecraft {

using PatternId = Id<struct PatternTag>;

// Bytes of raw link capacity per byte that one member sends; ascending by link.
struct Pattern {
  std::vector<LinkLoad> loads;
};

// Two jobs with the same key have the same pattern.
struct PatternKey {
  std::int32_t from = 0, to = 0;  // pipeline ranks; equal for traffic inside one rank
  std::int32_t group = -1;        // RankGroup, or -1 for messages
  CollectiveKind kind = CollectiveKind::kSendReceive;
  std::string algorithm{};
  double node_efficiency = 1, network_efficiency = 1;  // payload over capacity

  friend auto operator<=>(const PatternKey&, const PatternKey&) = default;
};

// The patterns of an iteration, each computed at its first use.
class PatternTable {
 public:
  // `make()` returns the Pattern of the key.
  template <class Make>
  PatternId of(const PatternKey& key, const Make& make) {
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    const PatternId id = patterns_.push_back(make());
    known_.emplace(key, id);
    return id;
  }

  [[nodiscard]] const Pattern& operator[](PatternId id) const { return patterns_[id]; }
  [[nodiscard]] std::size_t size() const { return patterns_.size(); }

 private:
  std::map<PatternKey, PatternId> known_;
  IdVector<PatternId, Pattern> patterns_;
};

// A sum of patterns.
class Traffic {
 public:
  struct Part {
    PatternId pattern;
    double bytes = 0;  // bytes that one member sends
    friend bool operator==(const Part&, const Part&) = default;
  };

  void add(PatternId pattern, double bytes);
  void add(const Traffic& other, double times = 1);

  [[nodiscard]] bool empty() const { return parts_.empty(); }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }  // ascending by pattern
  [[nodiscard]] double bytes() const;                                      // sum over all parts

 private:
  std::vector<Part> parts_;
};

// One collective, or one message per GPU.
struct NetworkUse {
  Category category = Category::kOther;
  Duration time{};      // total time on an idle network
  Duration transfer{};  // the part of `time` that grows when links are shared
  Traffic traffic{};
};

// The collectives of a pass in groups of one kind, one after another on an idle network. Hidden collectives
// count as well, because they use links.
struct Exchanges {
  Traffic traffic{};
  Duration time{};
  Duration transfer{};      // the part of `time` that grows when links are shared
  std::int64_t launches{};  // each rounded to a nanosecond

  void add(const Exchanges& other, std::int64_t times = 1);
};

// The exchanges of a pass, by kInPass.
using PassExchanges = std::array<Exchanges, kInPass.size()>;
void add(PassExchanges& sum, const PassExchanges& other, std::int64_t times = 1);

// The exchanges of one micro-batch in the passes of a stage.
using PassTraffic = ByPass<PassExchanges>;

}  // namespace stagecraft
