// Max-min fair rates of transfers on shared links, updated as transfers start and end.
//
// Max-min fairness is progressive filling: all rates grow together; a full link stops the transfers that
// cross it, and a transfer stops at its own cap. So each transfer is at its cap or has a bottleneck: a full
// link on which no transfer is faster. There is exactly one such allocation.
//   source  Bertsekas and Gallager, Data Networks, 2nd ed. (1992), section 6.5.2 (max-min flow control).
//
// Refilling from zero after each change would touch every transfer of the network. But a change at a link
// affects only rates at or above its level (the rate at which it stops transfers). So the level is swept
// upwards, and only affected transfers grow anew: new ones, those whose bottleneck lost a transfer, and those
// that are now faster than a link on their route allows. All others keep their rates. A link whose transfers
// all fit at their caps takes no part, and a transfer that crosses only such links costs nothing but its
// entry.
//
// Rates are doubles, but link loads are summed in integers (2^-42 of the capacity). A sum then has one value
// whatever the order of its terms, and the allocation does not depend on the order of arrival.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

// A small number that a transfer has while it is there, given by the caller and used again afterwards.
using TransferId = Id<struct TransferTag>;

class MaxMin {
 public:
  // unlimited: links let everything through.
  explicit MaxMin(const IdVector<LinkId, SharedLink>& links, bool unlimited = false);

  // Rates are per unit flow, in bytes per second. `uses` must outlive the transfer. What is inserted, removed
  // or given another cap counts from the next solve(); a transfer stays for at least one solve().
  //   insert returns  whether all that cross its links fit at their caps, as far as known yet: then its rate
  //                   is its cap at once, and changed() names it only when somebody comes who makes it
  //                   otherwise
  bool insert(TransferId id, std::span<const LinkUse> uses, double cap);
  void remove(TransferId id);
  void set_cap(TransferId id, double cap);
  // Takes effect at the next solve(). At most the initial capacity.
  void set_capacity(LinkId id, Bandwidth capacity);

  void solve();

  [[nodiscard]] double rate(TransferId id) const { return transfers_[id].rate; }
  // The link that keeps it below its cap; nullopt at its cap.
  [[nodiscard]] std::optional<LinkId> bottleneck(TransferId id) const { return transfers_[id].bottleneck; }
  [[nodiscard]] bool is_full(LinkId link) const {
    const LinkState& l = links_[link];
    return !unlimited_ && l.load >= l.capacity - slack(l);
  }
  // Transfers that insert() left open, and whose rate or bottleneck the last solve() changed; each once.
  [[nodiscard]] std::span<const TransferId> changed() const { return changed_; }
  // Links whose load may have changed between the last two calls of solve(), each once.
  [[nodiscard]] std::span<const LinkId> touched() const { return touched_; }

 private:
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();

  // A transfer on a link: the fields that filling reads, packed together.
  struct Member {
    double rate;          // kUnbounded while it is free to grow
    std::int64_t load;    // share of the link that it takes now, in the link's units
    std::int64_t weight;  // unit flows, in 2^-36
    TransferId transfer;
    std::uint32_t hop;  // position in the transfer's route
  };
  struct LinkState {
    double units_per_byte = 0;
    std::int64_t capacity = 0;  // in units, at first 2^42 to 2^43
    std::int64_t most = 0;      // initial capacity
    std::int64_t demand = 0;    // demand of all members at their caps
    std::int64_t load = 0;      // load of all members at their current rates
    bool stops = false;         // may it be somebody's bottleneck?
    double key = 0;             // key of its valid entry in the heap
    std::uint32_t queued = 0;   // the solve in which it has one
    bool is_touched = false;
    bool lost = false;  // a transfer left, and its share is still unused
    std::vector<Member> members;
  };
  struct Transfer {
    std::span<const LinkUse> uses;
    double rate = 0;
    double cap = 0;
    std::optional<LinkId> bottleneck;
    std::uint32_t places = 0;    // first of its uses.size() entries in places_
    std::uint32_t freed = 0;     // the solve in which it was last set free
    std::uint32_t settled = 0;   // the solve in which its rate was last found
    std::uint32_t reported = 0;  // the solve in which it entered changed_
    bool pending = false;        // new, or with another cap
    bool open = false;           // its rate was withdrawn: the next one is reported, even if it is none
  };
  enum class Stop : std::uint32_t { kCap, kLink };  // caps first: they do not depend on others
  struct Entry {
    double key;
    Stop stop;
    std::uint32_t id;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  struct Split {
    std::int64_t load = 0;    // load of the members at or below a rate
    std::int64_t weight = 0;  // weight of the members above it
  };

  [[nodiscard]] static std::int64_t slack(const LinkState& link) {
    return (link.capacity >> 30) + static_cast<std::int64_t>(link.members.size());
  }
  [[nodiscard]] static std::int64_t load_of(const LinkState& link, std::int64_t weight, double rate);
  [[nodiscard]] bool is_tight(const LinkState& link) const {
    return !unlimited_ && link.demand > link.capacity + slack(link);
  }
  [[nodiscard]] bool crosses_tight(const Transfer& transfer) const;
  [[nodiscard]] static Split split(const LinkState& link, double rate);
  [[nodiscard]] static double fill(const LinkState& link, double from);

  [[nodiscard]] std::uint32_t take_places(std::size_t hops);
  void make_room(LinkState& link, LinkId id);
  void open(Transfer& transfer);
  void mark(LinkState& link, LinkId id);
  void push(Entry entry);
  void queue(LinkId link, double key);
  void set_free(TransferId id);
  void loosen(LinkId id);
  void settle(TransferId id, double rate, std::optional<LinkId> bottleneck);
  void stop_at_link(LinkId id, double key);
  void start_solve();

  bool unlimited_;
  IdVector<LinkId, LinkState> links_;
  IdVector<TransferId, Transfer> transfers_;
  std::vector<std::uint32_t> places_;  // position of each hop's member in its link, by transfer
  std::vector<std::vector<std::uint32_t>> spare_places_;  // blocks to be used again, by number of hops

  std::vector<TransferId> pending_;
  std::vector<LinkId> lost_;
  std::vector<LinkId> marked_;  // touched since the last solve()
  std::vector<LinkId> touched_;
  std::vector<TransferId> changed_;

  std::vector<Entry> heap_;
  std::uint32_t solve_ = 0;  // number of this solve: stamps need no clearing
  double sweep_ = 0;         // the level that filling has reached
  std::size_t free_ = 0;     // transfers that still grow
  std::size_t queued_ = 0;   // links in the heap
};

}  // namespace stagecraft
