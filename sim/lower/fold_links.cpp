#include "sim/lower/fold_links.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace stagecraft {
namespace {

struct Use {
  std::uint32_t route = 0;
  double flows = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

// How the routes use one link.
struct Column {
  EdgeId link;
  std::vector<Bandwidth> capacity;  // by epoch
  std::vector<Use> uses;            // ascending by route
  int alike = 1;
};

// `value` rounded to 40 bits.
double rounded(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::round(std::ldexp(mantissa, 40)), exponent - 40);
}

std::vector<Column> columns_of(const LinkEpochs& capacity, std::span<const std::vector<LinkLoad>> routes) {
  SC_CHECK(!capacity.empty(), "links have capacities at the beginning");
  std::vector<Column> columns(capacity.front().size());
  for (std::uint32_t route = 0; route < routes.size(); ++route)
    for (const LinkLoad& load : routes[route]) {
      SC_CHECK(load.link.index() < columns.size() && load.bytes > 0, "routes use links of the cluster");
      columns[load.link.index()].uses.push_back({route, rounded(load.bytes)});
    }
  for (std::uint32_t link = 0; link < columns.size(); ++link) {
    columns[link].link = EdgeId(link);
    for (const std::vector<Bandwidth>& epoch : capacity) columns[link].capacity.push_back(epoch.at(link));
  }
  std::erase_if(columns, [](const Column& column) { return column.uses.empty(); });
  return columns;
}

std::uint64_t hash_of(const Column& column) {
  StableHash hash;
  for (const Bandwidth capacity : column.capacity) hash.add(std::bit_cast<std::uint64_t>(capacity.count()));
  for (const Use& use : column.uses) hash.add(use.route).add(std::bit_cast<std::uint64_t>(use.flows));
  return hash.value();
}

// Keeps the first of each set of identical links, in their order.
std::vector<Column> merged(std::vector<Column> columns) {
  std::vector<Column> kept;
  std::unordered_multimap<std::uint64_t, std::size_t> known;  // kept columns by hash
  for (Column& column : columns) {
    const std::uint64_t hash = hash_of(column);
    const auto [first, last] = known.equal_range(hash);
    const auto alike = std::find_if(first, last, [&](const auto& entry) {
      const Column& other = kept[entry.second];
      return other.capacity == column.capacity && other.uses == column.uses;
    });
    if (alike != last) {
      ++kept[alike->second].alike;
      continue;
    }
    known.emplace(hash, kept.size());
    kept.push_back(std::move(column));
  }
  return kept;
}

// Does every route use `a` no more than `b`, as a share of the capacity?
bool within(const Column& a, const Column& b) {
  if (a.uses.size() > b.uses.size()) return false;
  auto at = b.uses.begin();
  for (const Use& use : a.uses) {
    while (at != b.uses.end() && at->route < use.route) ++at;
    if (at == b.uses.end() || at->route != use.route) return false;
    for (std::size_t epoch = 0; epoch < a.capacity.size(); ++epoch)
      if (use.flows * b.capacity[epoch].count() > at->flows * a.capacity[epoch].count()) return false;
  }
  return true;
}

// Of two links that dominate each other the first stays.
std::vector<Column> undominated(const std::vector<Column>& columns, std::size_t routes) {
  std::vector<std::vector<std::size_t>> users(routes);  // columns by route
  for (std::size_t i = 0; i < columns.size(); ++i)
    for (const Use& use : columns[i].uses) users[use.route].push_back(i);
  std::vector<Column> kept;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::vector<std::size_t>& others = users[columns[i].uses.front().route];
    const bool dominated = std::any_of(others.begin(), others.end(), [&](std::size_t j) {
      return j != i && within(columns[i], columns[j]) && (j < i || !within(columns[j], columns[i]));
    });
    if (!dominated) kept.push_back(columns[i]);
  }
  return kept;
}

}  // namespace

FoldedLinks fold_links(const LinkEpochs& capacity, std::span<const std::vector<LinkLoad>> routes) {
  const std::vector<Column> columns = undominated(merged(columns_of(capacity, routes)), routes.size());
  FoldedLinks folded;
  folded.routes.resize(routes.size());
  for (std::uint32_t i = 0; i < columns.size(); ++i) {
    folded.links.push_back({.first = columns[i].link, .alike = columns[i].alike});
    for (const Use& use : columns[i].uses) folded.routes[use.route].push_back({LinkId(i), use.flows});
  }
  return folded;
}

namespace {

LinkEpochs epochs_of(const Program& program) {
  LinkEpochs epochs(1);
  for (const SharedLink& link : program.links) epochs.front().push_back(link.capacity);
  for (std::size_t i = 0; i < program.link_changes.size(); ++i) {
    const LinkChange& change = program.link_changes[i];
    if (i == 0 || program.link_changes[i - 1].time != change.time) epochs.push_back(epochs.back());
    epochs.back()[change.link.index()] = change.capacity;
  }
  return epochs;
}

std::vector<std::vector<LinkLoad>> loads_of_routes(const Program& program) {
  std::vector<std::vector<LinkLoad>> routes(program.route_begin.empty() ? 0 : program.route_begin.size() - 1);
  for (std::uint32_t i = 0; i < routes.size(); ++i)
    for (const LinkUse& use : program.uses_of(RouteId(i)))
      routes[i].push_back({EdgeId(use.link.value()), use.flows});
  return routes;
}

}  // namespace

std::vector<FoldedLink> fold_links(Program& program) {
  const FoldedLinks folded = fold_links(epochs_of(program), loads_of_routes(program));
  IdVector<LinkId, SharedLink> links;
  std::vector<std::optional<LinkId>> now(program.links.size());
  for (const FoldedLink& link : folded.links) {
    const LinkId before(link.first.value());
    now[before.index()] = links.push_back(program.links[before]);
  }
  std::vector<LinkChange> changes;
  for (LinkChange change : program.link_changes) {
    if (!now[change.link.index()]) continue;  // another link dominates this one
    change.link = *now[change.link.index()];
    changes.push_back(change);
  }
  program.links = std::move(links);
  program.link_changes = std::move(changes);
  program.route_begin = {0};
  program.route_uses.clear();
  for (const std::vector<LinkUse>& route : folded.routes) {
    program.route_uses.insert(program.route_uses.end(), route.begin(), route.end());
    program.route_begin.push_back(static_cast<std::uint32_t>(program.route_uses.size()));
  }
  return folded.links;
}

}  // namespace stagecraft
