#include "sim/engine/network_usage.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {
namespace {

constexpr std::int64_t kParts = 1024;

}  // namespace

void NetworkUsage::Tally::add(double amount) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const double floor = std::floor(amount);
  parts += std::llround((amount - floor) * kParts);
  const double more = floor + static_cast<double>(parts / kParts);
  parts %= kParts;
  whole = more < static_cast<double>(kMost - whole) ? whole + static_cast<std::int64_t>(more) : kMost;
}

double NetworkUsage::Tally::value() const {
  return static_cast<double>(whole) + static_cast<double>(parts) / kParts;
}

std::int64_t NetworkUsage::Tally::rounded() const {
  const bool up = 2 * parts >= kParts && whole < std::numeric_limits<std::int64_t>::max();
  return up ? whole + 1 : whole;
}

NetworkUsage::NetworkUsage(const Program& program) : links_(program.links.size()) {
  if (program.flows.empty()) return;
  std::map<std::string_view, LabelId> known;
  for (std::uint32_t i = 0; i < program.labels.size(); ++i)
    first_of_name_.push_back(known.try_emplace(program.labels[LabelId(i)].name, LabelId(i)).first->second);
}

NetworkUsage::Crossing NetworkUsage::crossing_of(const Program& program, TaskId task,
                                                 ResourceId resource) const {
  Crossing by{.label = first_of_name_[program.label[task]]};
  if (const auto copy_of = program.resources[resource].copy_of)
    by.together = std::uint64_t{static_cast<std::uint32_t>(*copy_of)} << 32 |
                  static_cast<std::uint32_t>(program.micro_batch[task]);
  return by;
}

void NetworkUsage::enter(LinkId id, const Crossing& by, Duration now) {
  LinkTally& link = links_[id];
  if (by.together) {
    const auto copies = std::find_if(link.copies.begin(), link.copies.end(),
                                     [&](const Copies& some) { return some.by == by; });
    if (copies != link.copies.end()) {
      ++copies->count;
      return;
    }
    link.copies.push_back({.by = by, .count = 1});
  }
  if (link.present.empty()) link.busy_since = now;
  const Duration clock = full_clock(link, now);
  for (Present& present : link.present) {
    if (present.label != by.label) continue;
    if (++present.count == 2) present.second_since = clock;
    return;
  }
  link.present.push_back({.label = by.label, .count = 1, .since = clock});
}

void NetworkUsage::leave(LinkId id, const Crossing& by, Duration now) {
  LinkTally& link = links_[id];
  if (by.together) {
    const auto copies = std::find_if(link.copies.begin(), link.copies.end(),
                                     [&](const Copies& some) { return some.by == by; });
    SC_CHECK(copies != link.copies.end(), "who leaves a link has entered it");
    if (--copies->count > 0) return;
    *copies = link.copies.back();
    link.copies.pop_back();
  }
  const Duration clock = full_clock(link, now);
  const auto leaving = std::find_if(link.present.begin(), link.present.end(),
                                    [&](const Present& present) { return present.label == by.label; });
  SC_CHECK(leaving != link.present.end(), "who leaves a link has entered it");
  if (--leaving->count == 1) meet(id, by.label, by.label, clock - leaving->second_since);
  if (leaving->count > 0) return;
  const Duration since = leaving->since;
  *leaving = link.present.back();
  link.present.pop_back();
  for (const Present& other : link.present)
    meet(id, by.label, other.label, clock - std::max(since, other.since));
  if (link.present.empty()) link.busy += now - link.busy_since;
}

void NetworkUsage::carry(LinkId link, double bytes) {
  links_[link].bytes.add(bytes);
}

void NetworkUsage::lose(LinkId link, double nanoseconds) {
  links_[link].lost.add(nanoseconds);
}

void NetworkUsage::set_full(LinkId id, bool full, Duration now) {
  LinkTally& link = links_[id];
  if (full == link.is_full) return;
  link.full = full_clock(link, now);
  link.full_since = now;
  link.is_full = full;
}

void NetworkUsage::meet(LinkId link, LabelId a, LabelId b, Duration time) {
  if (time == Duration::zero()) return;
  meetings_.push_back({.link = link, .first = std::min(a, b), .second = std::max(a, b), .time = time});
  if (meetings_.size() < merge_at_) return;
  merge_meetings();
  merge_at_ = std::max(merge_at_, 2 * meetings_.size());
}

void NetworkUsage::merge_meetings() {
  const auto who = [](const Meeting& m) { return std::tuple(m.link, m.first, m.second); };
  std::sort(meetings_.begin(), meetings_.end(),
            [&](const Meeting& a, const Meeting& b) { return who(a) < who(b); });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < meetings_.size(); ++i) {
    if (kept > 0 && who(meetings_[kept - 1]) == who(meetings_[i]))
      meetings_[kept - 1].time += meetings_[i].time;
    else
      meetings_[kept++] = meetings_[i];
  }
  meetings_.resize(kept);
}

IdVector<LinkId, LinkUsage> NetworkUsage::links() const {
  IdVector<LinkId, LinkUsage> usage;
  usage.reserve(links_.size());
  for (const LinkTally& link : links_)
    usage.push_back({.bytes = link.bytes.value(),
                     .busy = link.busy,
                     .saturated = link.full,
                     .delay = Duration(link.lost.rounded())});
  return usage;
}

std::vector<Meeting> NetworkUsage::meetings() && {
  merge_meetings();
  return std::move(meetings_);
}

}  // namespace stagecraft
