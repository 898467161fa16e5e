#include "sim/lower/fold_links.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/check.hpp"

namespace stagecraft {
namespace {

struct Use {
  std::uint32_t route = 0;
  double flows = 0;
  friend auto operator<=>(const Use&, const Use&) = default;
};

// How the routes use one link.
struct Column {
  EdgeId link;
  Bandwidth capacity{};
  std::vector<Use> uses;  // ascending by route
  int alike = 1;
};

// To 40 bits.
double rounded(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::round(std::ldexp(mantissa, 40)), exponent - 40);
}

std::vector<Column> columns_of(std::span<const Bandwidth> capacity,
                               std::span<const std::vector<LinkLoad>> routes) {
  std::vector<Column> columns(capacity.size());
  for (std::uint32_t route = 0; route < routes.size(); ++route)
    for (const LinkLoad& load : routes[route]) {
      SC_CHECK(load.link.index() < columns.size() && load.bytes > 0, "routes use links of the cluster");
      columns[load.link.index()].uses.push_back({route, rounded(load.bytes)});
    }
  for (std::uint32_t link = 0; link < columns.size(); ++link) {
    columns[link].link = EdgeId(link);
    columns[link].capacity = capacity[link];
  }
  std::erase_if(columns, [](const Column& column) { return column.uses.empty(); });
  return columns;
}

// Leaves the first of links that are alike; ascending by link.
std::vector<Column> merged(std::vector<Column> columns) {
  std::sort(columns.begin(), columns.end(), [](const Column& a, const Column& b) {
    if (a.capacity != b.capacity) return a.capacity < b.capacity;
    if (a.uses != b.uses) return a.uses < b.uses;
    return a.link < b.link;
  });
  std::vector<Column> kept;
  for (Column& column : columns) {
    if (!kept.empty() && kept.back().capacity == column.capacity && kept.back().uses == column.uses)
      ++kept.back().alike;
    else
      kept.push_back(std::move(column));
  }
  std::sort(kept.begin(), kept.end(), [](const Column& a, const Column& b) { return a.link < b.link; });
  return kept;
}

// Does every route use `a` no more than `b`, as a share of the capacity?
bool within(const Column& a, const Column& b) {
  if (a.uses.size() > b.uses.size()) return false;
  auto at = b.uses.begin();
  for (const Use& use : a.uses) {
    while (at != b.uses.end() && at->route < use.route) ++at;
    if (at == b.uses.end() || at->route != use.route) return false;
    if (use.flows * b.capacity.count() > at->flows * a.capacity.count()) return false;
  }
  return true;
}

// Among links that are within each other the first stays.
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

FoldedLinks fold_links(std::span<const Bandwidth> capacity, std::span<const std::vector<LinkLoad>> routes) {
  const std::vector<Column> columns = undominated(merged(columns_of(capacity, routes)), routes.size());
  FoldedLinks folded;
  folded.routes.resize(routes.size());
  for (std::uint32_t i = 0; i < columns.size(); ++i) {
    folded.links.push_back({.first = columns[i].link, .alike = columns[i].alike});
    for (const Use& use : columns[i].uses) folded.routes[use.route].push_back({LinkId(i), use.flows});
  }
  return folded;
}

}  // namespace stagecraft
