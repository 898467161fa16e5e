#include "sim/engine/max_min.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace stagecraft {
namespace {

constexpr int kCapacityBits = 42;  // leaves 2^19 transfers at twice the capacity each within 63 bits
constexpr double kWeightUnits = 68719476736.0;  // 2^36 per unit flow
// Rates closer than this are one: well above the rounding of a sum, well below a nanosecond per second.
constexpr double kSame = 1.0 / 17179869184.0;  // 2^-34

}  // namespace

MaxMin::MaxMin(const IdVector<LinkId, SharedLink>& links, bool unlimited)
    : unlimited_(unlimited), links_(links.size()) {
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    const double capacity = links[LinkId(i)].capacity.count();
    links_[LinkId(i)].units_per_byte = std::ldexp(1.0, kCapacityBits - std::ilogb(capacity));
    links_[LinkId(i)].capacity = std::llround(capacity * links_[LinkId(i)].units_per_byte);
    links_[LinkId(i)].most = links_[LinkId(i)].capacity;
  }
}

// At most twice the initial capacity: larger loads make no difference.
std::int64_t MaxMin::load_of(const LinkState& link, std::int64_t weight, double rate) {
  const double load = rate * link.units_per_byte * (static_cast<double>(weight) / kWeightUnits);
  return static_cast<std::int64_t>(std::min(load, 2 * static_cast<double>(link.most)) + 0.5);
}

bool MaxMin::crosses_tight(const Transfer& transfer) const {
  return std::any_of(transfer.uses.begin(), transfer.uses.end(),
                     [&](const LinkUse& use) { return is_tight(links_[use.link]); });
}

MaxMin::Split MaxMin::split(const LinkState& link, double rate) {
  Split split;
  for (const Member& member : link.members) {
    if (member.rate <= rate)
      split.load += member.load;
    else
      split.weight += member.weight;
  }
  return split;
}

// The level at which the link caps faster transfers; kUnbounded when it caps none.
//
//   from  at most the answer, best near to it.
//
// The load of the link is a concave function of the level, so Newton's method approaches the answer from
// below. It ends when no further transfer is slower than the level.
double MaxMin::fill(const LinkState& link, double from) {
  bool from_zero = from == 0;
  for (double level = from;;) {
    const Split at = split(link, level);
    double next = -1;
    if (at.weight > 0)
      next = static_cast<double>(link.capacity - at.load) / link.units_per_byte /
             (static_cast<double>(at.weight) / kWeightUnits);
    else if (from_zero || at.load <= link.capacity + slack(link))
      return kUnbounded;
    if (!from_zero && next < level * (1 - kSame)) {  // `from` was too high by rounding
      from_zero = true;
      level = 0;
    } else if (next <= level) {
      return next;
    } else {
      level = next;
    }
  }
}

std::uint32_t MaxMin::take_places(std::size_t hops) {
  if (spare_places_.size() <= hops) spare_places_.resize(hops + 1);
  std::vector<std::uint32_t>& spare = spare_places_[hops];
  if (!spare.empty()) {
    const std::uint32_t places = spare.back();
    spare.pop_back();
    return places;
  }
  const std::size_t places = places_.size();
  SC_CHECK(places + hops < UINT32_MAX, "offsets are 32 bits wide");
  places_.resize(places + hops);
  return static_cast<std::uint32_t>(places);
}

void MaxMin::mark(LinkState& link, LinkId id) {
  if (link.is_touched) return;
  link.is_touched = true;
  marked_.push_back(id);
}

bool MaxMin::insert(TransferId id, std::span<const LinkUse> uses, double cap) {
  if (transfers_.size() <= id.index()) transfers_.resize(id.index() + 1);
  Transfer& transfer = transfers_[id];
  transfer = {.uses = uses, .rate = cap, .cap = cap, .bottleneck = {}, .places = take_places(uses.size())};
  bool fits = true;
  for (std::uint32_t hop = 0; hop < uses.size(); ++hop) {
    LinkState& link = links_[uses[hop].link];
    const auto weight =
        std::max(static_cast<std::int64_t>(uses[hop].flows * kWeightUnits + 0.5), std::int64_t{1});
    const std::int64_t load = load_of(link, weight, cap);
    places_[transfer.places + hop] = static_cast<std::uint32_t>(link.members.size());
    link.members.push_back({.rate = cap, .load = load, .weight = weight, .transfer = id, .hop = hop});
    link.demand += load;
    link.load += load;
    mark(link, uses[hop].link);
    fits = fits && !is_tight(link);
  }
  if (fits) return true;
  open(transfer);
  pending_.push_back(id);
  return false;
}

// Withdraws the rate that insert() gave.
void MaxMin::open(Transfer& transfer) {
  transfer.pending = true;
  transfer.open = true;
  transfer.rate = 0;
  for (std::uint32_t hop = 0; hop < transfer.uses.size(); ++hop) {
    LinkState& link = links_[transfer.uses[hop].link];
    Member& member = link.members[places_[transfer.places + hop]];
    link.load -= member.load;
    member.load = 0;
    member.rate = kUnbounded;
  }
}

void MaxMin::remove(TransferId id) {
  const Transfer& transfer = transfers_[id];
  SC_CHECK(!transfer.pending, "a transfer stays for at least one solve");
  for (std::uint32_t hop = 0; hop < transfer.uses.size(); ++hop) {
    const LinkId link_id = transfer.uses[hop].link;
    LinkState& link = links_[link_id];
    const std::uint32_t place = places_[transfer.places + hop];
    Member& member = link.members[place];
    link.demand -= transfer.rate == transfer.cap ? member.load : load_of(link, member.weight, transfer.cap);
    link.load -= member.load;
    member = link.members.back();
    places_[transfers_[member.transfer].places + member.hop] = place;
    link.members.pop_back();
    make_room(link, link_id);
  }
  spare_places_[transfer.uses.size()].push_back(transfer.places);
}

// Somebody left the link, or gave up his share of it.
void MaxMin::make_room(LinkState& link, LinkId id) {
  mark(link, id);
  if (link.lost || !link.stops) return;
  link.lost = true;
  lost_.push_back(id);
}

// Works as if all transfers that cross the link left, and came back to the link as it is now.
void MaxMin::set_capacity(LinkId id, Bandwidth capacity) {
  LinkState& changed = links_[id];
  changed.capacity =
      std::min<std::int64_t>(changed.most, std::llround(capacity.count() * changed.units_per_byte));
  make_room(changed, id);
  for (std::size_t i = 0; i < changed.members.size(); ++i) {
    const TransferId crossing = changed.members[i].transfer;
    Transfer& transfer = transfers_[crossing];
    if (transfer.pending) continue;  // its rate is recomputed anyway
    open(transfer);
    for (const LinkUse& use : transfer.uses) make_room(links_[use.link], use.link);
    pending_.push_back(crossing);
  }
}

void MaxMin::set_cap(TransferId id, double cap) {
  Transfer& transfer = transfers_[id];
  for (std::uint32_t hop = 0; hop < transfer.uses.size(); ++hop) {
    LinkState& link = links_[transfer.uses[hop].link];
    const std::int64_t weight = link.members[places_[transfer.places + hop]].weight;
    link.demand += load_of(link, weight, cap) - load_of(link, weight, transfer.cap);
    mark(link, transfer.uses[hop].link);
  }
  transfer.cap = cap;
  if (!transfer.pending) pending_.push_back(id);
  transfer.pending = true;
}

void MaxMin::push(Entry entry) {
  heap_.push_back(entry);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

// The link may have to cap a transfer at `key` or above.
void MaxMin::queue(LinkId id, double key) {
  LinkState& link = links_[id];
  if (link.queued == solve_ && link.key <= key) return;
  if (link.queued != solve_) ++queued_;
  link.queued = solve_;
  link.key = key;
  push({.key = key, .stop = Stop::kLink, .id = id.value()});
}

// The transfer grows again. With it free, no link on its way stops anybody below its old rate: the link had
// room for it there.
void MaxMin::set_free(TransferId id) {
  Transfer& transfer = transfers_[id];
  if (transfer.freed == solve_ || transfer.settled == solve_) return;
  transfer.freed = solve_;
  ++free_;
  for (std::uint32_t hop = 0; hop < transfer.uses.size(); ++hop) {
    LinkState& link = links_[transfer.uses[hop].link];
    link.members[places_[transfer.places + hop]].rate = kUnbounded;
    if (is_tight(link)) queue(transfer.uses[hop].link, std::max(transfer.rate, sweep_));
  }
  push({.key = transfer.cap, .stop = Stop::kCap, .id = id.value()});
}

// There is room on the link: those whose bottleneck it is grow.
void MaxMin::loosen(LinkId id) {
  LinkState& link = links_[id];
  if (!link.stops) return;
  link.stops = false;
  for (const Member& member : link.members)
    if (member.rate != kUnbounded && transfers_[member.transfer].bottleneck == id) set_free(member.transfer);
}

void MaxMin::settle(TransferId id, double rate, std::optional<LinkId> bottleneck) {
  Transfer& transfer = transfers_[id];
  if (transfer.freed == solve_ && transfer.settled != solve_) --free_;
  transfer.settled = solve_;
  if (rate >= transfer.cap * (1 - kSame)) {
    rate = transfer.cap;
    bottleneck = std::nullopt;
  }
  const double old = transfer.rate;
  if (std::abs(rate - old) <= old * kSame && old <= transfer.cap) rate = old;
  if ((transfer.open || rate != old || bottleneck != transfer.bottleneck) && transfer.reported != solve_) {
    transfer.reported = solve_;
    changed_.push_back(id);
  }
  transfer.open = false;
  transfer.rate = rate;
  transfer.bottleneck = bottleneck;
  for (std::uint32_t hop = 0; hop < transfer.uses.size(); ++hop) {
    const LinkId link_id = transfer.uses[hop].link;
    LinkState& link = links_[link_id];
    Member& member = link.members[places_[transfer.places + hop]];
    member.rate = rate;
    if (rate == old) continue;
    const std::int64_t load = load_of(link, member.weight, rate);
    link.load += load - member.load;
    member.load = load;
    mark(link, link_id);
    if (rate < old && link_id != bottleneck) loosen(link_id);
  }
}

// The sweep has reached a key of the link: either it stops those that are faster, or its key rises.
void MaxMin::stop_at_link(LinkId id, double key) {
  LinkState& link = links_[id];
  if (link.queued != solve_ || link.key != key) return;
  const double level = fill(link, key);
  if (level > key && level != kUnbounded) {
    link.key = level;
    push({.key = level, .stop = Stop::kLink, .id = id.value()});
    return;
  }
  link.queued = 0;
  --queued_;
  if (level == kUnbounded) return;
  link.stops = true;
  for (const Member& member : link.members)
    if (member.rate > level * (1 + kSame)) settle(member.transfer, level, id);
}

void MaxMin::start_solve() {
  ++solve_;
  SC_CHECK(solve_ != 0, "more solves than stamps");
  sweep_ = 0;
  for (const LinkId id : lost_) {
    links_[id].lost = false;
    loosen(id);
  }
  lost_.clear();
  for (const TransferId id : pending_) {
    transfers_[id].pending = false;
    if (crosses_tight(transfers_[id]))
      set_free(id);
    else
      settle(id, transfers_[id].cap, std::nullopt);
  }
  pending_.clear();
}

void MaxMin::solve() {
  changed_.clear();
  touched_.clear();
  if (pending_.empty() && marked_.empty()) return;
  start_solve();
  while (free_ > 0 || queued_ > 0) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Entry next = heap_.back();
    heap_.pop_back();
    sweep_ = std::max(sweep_, next.key);
    if (next.stop == Stop::kLink) {
      stop_at_link(LinkId(next.id), next.key);
    } else {
      const TransferId id(next.id);
      if (transfers_[id].settled != solve_) settle(id, transfers_[id].cap, std::nullopt);
    }
  }
  heap_.clear();
  std::swap(touched_, marked_);
  for (const LinkId id : touched_) links_[id].is_touched = false;
}

}  // namespace stagecraft
