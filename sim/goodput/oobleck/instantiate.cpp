#include "sim/goodput/oobleck/instantiate.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "base/ceil_div.hpp"
#include "base/check.hpp"

namespace stagecraft {
namespace {

constexpr std::int32_t kImpossible = -(1 << 30);
constexpr std::int32_t kPlenty = 1 << 29;  // capacities above this count as equal

// The sizes [least, most] of one group's pipelines, and the nodes they are to use up.
struct Pool {
  int group = 0;
  int nodes = 0;
  int least = 1;
  int most = 1;
  bool may_idle = false;  // some nodes may stay unused
  [[nodiscard]] int most_pipelines() const { return nodes / least; }
};

// Capacity within one time of a pipeline of a pool by its size, from the least size on; 0: not even one
// micro-batch.
using SizeCapacities = std::vector<std::int32_t>;

// A line through (at, height) that no size's capacity exceeds.
struct CapacityLine {
  int at = 0;
  std::int64_t height = 0;
  std::int64_t rise = 0, run = 1;

  // Run times the sum of the line over k pipelines of so many nodes in all.
  [[nodiscard]] std::int64_t of(std::int64_t k, int nodes) const {
    return k * height * run + rise * (nodes - k * at);
  }
};

// The line that touches the capacities beside the mean size of k pipelines: what they have in all is no more
// than their sum on it. nullopt where they cannot use the pool's nodes up.
std::optional<CapacityLine> touching_line(const Pool& pool, const SizeCapacities& capacity, std::int64_t k) {
  std::vector<std::pair<int, std::int64_t>> hull;  // corners of the least concave function above them
  for (std::size_t i = 0; i < capacity.size(); ++i) {
    if (capacity[i] == 0) continue;
    const std::pair<int, std::int64_t> next{pool.least + static_cast<int>(i), capacity[i]};
    const auto is_below = [&](const auto& first, const auto& middle) {
      return (middle.second - first.second) * (next.first - first.first) <=
             (next.second - first.second) * (middle.first - first.first);
    };
    while (hull.size() >= 2 && is_below(hull[hull.size() - 2], hull.back())) hull.pop_back();
    hull.push_back(next);
  }
  if (hull.empty() || k * hull.front().first > pool.nodes) return std::nullopt;
  CapacityLine line{.at = hull.front().first, .height = hull.front().second};
  for (std::size_t i = 1; i < hull.size() && k * line.at < pool.nodes; ++i) {
    const std::int64_t rise = hull[i].second - hull[i - 1].second;
    if (pool.may_idle && rise <= 0) return CapacityLine{.at = line.at, .height = line.height};
    if (k * hull[i].first >= pool.nodes)
      return CapacityLine{.at = hull[i - 1].first,
                          .height = hull[i - 1].second,
                          .rise = rise,
                          .run = hull[i].first - hull[i - 1].first};
    line = {.at = hull[i].first, .height = hull[i].second};
  }
  if (pool.may_idle || k * line.at == pool.nodes) return line;
  return std::nullopt;
}

// Without the sizes that no k pipelines have whose capacity is `needed`: each size below the line takes from
// what these have to spare. nullopt where no k pipelines have as much.
std::optional<SizeCapacities> without_useless(const Pool& pool, SizeCapacities capacity, int k,
                                              std::int64_t needed) {
  const std::optional<CapacityLine> line = touching_line(pool, capacity, k);
  if (!line) return std::nullopt;
  const std::int64_t spare = line->of(k, pool.nodes) - needed * line->run;
  if (spare < 0) return std::nullopt;
  for (std::size_t i = 0; i < capacity.size(); ++i)
    if (line->of(1, pool.least + static_cast<int>(i)) - capacity[i] * line->run > spare) capacity[i] = 0;
  return capacity;
}

// The greatest capacity of k pipelines of j nodes in all, within one time, up to the most pipelines asked
// for. Rows are k, columns j.
class CapacityTable {
 public:
  CapacityTable(const Pool& pool, SizeCapacities capacity, int most_pipelines)
      : pool_(pool),
        most_pipelines_(std::min(most_pipelines, pool.most_pipelines())),
        capacity_(std::move(capacity)) {
    while (largest_ > pool.least && of(largest_) == 0) --largest_;
    while (smallest_ < largest_ && of(smallest_) == 0) ++smallest_;
    const auto columns = static_cast<std::size_t>(pool.nodes) + 1;
    rows_.emplace_back(columns, kImpossible);
    rows_[0][0] = 0;
    for (int k = 1; k <= most_pipelines_; ++k) {
      auto& row = rows_.emplace_back(columns, kImpossible);
      for (int size = smallest_; size <= largest_; ++size)
        if (of(size) > 0) add_member(rows_[static_cast<std::size_t>(k) - 1], row, k, size);
    }
  }

  // The capacity of k pipelines that use the pool's nodes up, or, where they may idle, some of them.
  [[nodiscard]] std::int32_t whole(int k) const { return at(k, used(k)); }
  [[nodiscard]] int most_pipelines() const { return most_pipelines_; }

  // The lexicographically least ascending list of k sizes that use up the nodes and have at least `needed`.
  [[nodiscard]] std::vector<int> sizes(int k, std::int32_t needed) const {
    SC_CHECK(whole(k) >= needed, "the sizes that are asked for exist");
    std::vector<int> out;
    int nodes = used(k);
    for (int size = pool_.least; k > 0; --k) {
      while (at(k - 1, nodes - size) + of(size) < needed || of(size) == 0) ++size;
      out.push_back(size);
      needed -= of(size);
      nodes -= size;
    }
    return out;
  }

 private:
  // The fewest nodes with the greatest capacity.
  [[nodiscard]] int used(int k) const {
    if (!pool_.may_idle) return pool_.nodes;
    const auto& row = rows_.at(static_cast<std::size_t>(k));
    return static_cast<int>(std::ranges::max_element(row) - row.begin());
  }
  [[nodiscard]] std::int32_t of(int size) const {
    return capacity_.at(static_cast<std::size_t>(size - pool_.least));
  }
  [[nodiscard]] std::int32_t at(int k, int nodes) const {
    return nodes < 0 ? kImpossible : rows_.at(static_cast<std::size_t>(k))[static_cast<std::size_t>(nodes)];
  }
  void add_member(const std::vector<std::int32_t>& fewer, std::vector<std::int32_t>& row, int k,
                  int size) const {
    const std::int32_t gain = of(size);
    const int first = (k - 1) * smallest_;
    const int end = std::min(pool_.nodes - size, (k - 1) * largest_) + 1;
    const std::int32_t* from = fewer.data();
    std::int32_t* to = row.data() + size;
    for (int nodes = first; nodes < end; ++nodes) {
      const std::int32_t both = from[nodes] < 0 ? kImpossible : std::min(kPlenty, from[nodes] + gain);
      to[nodes] = std::max(to[nodes], both);
    }
  }

  Pool pool_;
  int most_pipelines_;
  SizeCapacities capacity_;
  int smallest_ = pool_.least, largest_ = pool_.least + static_cast<int>(capacity_.size()) - 1;  // usable
  std::vector<std::vector<std::int32_t>> rows_;
};

// Tables of all pools at one time, and their sums over the pools from each on.
class Capacities {
 public:
  explicit Capacities(std::vector<CapacityTable> tables) : tables_(std::move(tables)) {
    from_.resize(tables_.size() + 1, {0});
    for (std::size_t pool = tables_.size(); pool-- > 0;) from_[pool] = joined(tables_[pool], from_[pool + 1]);
  }
  [[nodiscard]] std::int32_t of(int k) const { return sum(0, k); }

  // The sizes per pool of k pipelines with at least `needed`: the most pipelines in the first pool, and so
  // on.
  [[nodiscard]] std::vector<std::vector<int>> sizes(int k, std::int32_t needed) const {
    std::vector<std::vector<int>> out;
    for (std::size_t pool = 0; pool < tables_.size(); ++pool) {
      int here = std::min(k, tables_[pool].most_pipelines());
      while (tables_[pool].whole(here) + sum(pool + 1, k - here) < needed) --here;
      const std::int32_t later = sum(pool + 1, k - here);
      out.push_back(tables_[pool].sizes(here, needed - later));
      needed = later;
      k -= here;
    }
    return out;
  }

 private:
  [[nodiscard]] std::int32_t sum(std::size_t pool, int k) const {
    return k < static_cast<int>(from_[pool].size()) ? from_[pool][static_cast<std::size_t>(k)] : kImpossible;
  }
  static std::vector<std::int32_t> joined(const CapacityTable& table, const std::vector<std::int32_t>& rest) {
    std::vector<std::int32_t> out(rest.size() + static_cast<std::size_t>(table.most_pipelines()),
                                  kImpossible);
    for (int k = 0; k <= table.most_pipelines(); ++k)
      for (std::size_t more = 0; more < rest.size(); ++more) {
        auto& best = out[static_cast<std::size_t>(k) + more];
        const std::int64_t both = std::int64_t{table.whole(k)} + rest[more];
        best =
            std::max(best, static_cast<std::int32_t>(std::clamp<std::int64_t>(both, kImpossible, kPlenty)));
      }
    return out;
  }

  std::vector<CapacityTable> tables_;
  std::vector<std::vector<std::int32_t>> from_;  // [pool][k]: of the pools from there on
};

// The search for pools that no pipeline leaves.
class PoolSearch {
 public:
  PoolSearch(Templates& templates, const InstantiateRequest& request, std::vector<Pool> pools, int fewest)
      : templates_(templates), request_(request), pools_(std::move(pools)) {
    int most = 0;
    for (const Pool& pool : pools_) most += pool.most_pipelines();
    for (int k = fewest; k <= std::min(most, request_.micro_batches); ++k) open_.push_back({.pipelines = k});
  }

  // Sizes per pool.
  [[nodiscard]] std::vector<std::vector<int>> best() {
    start();
    while (Count* widest = widest_open()) try_for(*widest);
    return tie_break();
  }

 private:
  struct Count {
    int pipelines = 0;
    std::optional<Duration> closed_at = {};  // lower bound of a step with this number of pipelines
  };

  [[nodiscard]] Duration tail(int pipelines) const {
    return request_.tail ? request_.tail(pipelines) : Duration{};
  }
  [[nodiscard]] Duration budget(int pipelines) const { return step_ - tail(pipelines); }

  [[nodiscard]] SizeCapacities within(const Pool& pool, Duration time) {
    SizeCapacities capacity;
    for (int size = pool.least; size <= std::min(pool.most, pool.nodes); ++size)
      capacity.push_back(templates_.within(number(pool, size), time, request_.micro_batches));
    return capacity;
  }

  // Of several pools for every number of pipelines up to k. Of one pool for k alone, and nothing where a
  // glance shows that they cannot have enough.
  [[nodiscard]] std::optional<Capacities> capacities(Duration time, int k) {
    std::vector<CapacityTable> tables;
    if (one_pool()) {
      auto useful = without_useless(pools_.front(), within(pools_.front(), time), k, request_.micro_batches);
      if (!useful) return std::nullopt;
      tables.emplace_back(pools_.front(), *std::move(useful), k);
    } else {
      for (const Pool& pool : pools_) tables.emplace_back(pool, within(pool, time), k);
    }
    return Capacities(std::move(tables));
  }

  [[nodiscard]] bool one_pool() const { return pools_.size() == 1; }

  [[nodiscard]] int number(const Pool& pool, int size) {
    Composition composition(static_cast<std::size_t>(templates_.groups()));
    composition[static_cast<std::size_t>(pool.group)] = size;
    const auto found = templates_.find(composition);
    SC_CHECK(found.has_value(), "every size has a template");
    return *found;
  }

  [[nodiscard]] Duration step_of(const std::vector<std::vector<int>>& sizes) {
    std::vector<int> numbers;
    for (std::size_t pool = 0; pool < sizes.size(); ++pool)
      for (const int size : sizes[pool]) numbers.push_back(number(pools_[pool], size));
    return share_micro_batches(templates_, numbers, request_.micro_batches).makespan +
           tail(static_cast<int>(numbers.size()));
  }

  // Time enough for any multiset: the slowest template with all micro-batches. Of one pool, time enough for
  // pipelines of equal sizes, which are seldom far from the best.
  void start() {
    SC_CHECK(!open_.empty(), "some number of pipelines uses the nodes up");
    Duration longest{};
    for (const Pool& pool : pools_)
      for (int size = pool.least; size <= std::min(pool.most, pool.nodes); ++size)
        longest = std::max(longest, templates_.time(number(pool, size), request_.micro_batches));
    Duration most_tail{};
    for (const Count& count : open_) most_tail = std::max(most_tail, tail(count.pipelines));
    step_ = longest + most_tail + Duration{1};
    if (!one_pool()) return;
    for (const Count& count : open_)
      if (const std::optional<Duration> even = even_time(count.pipelines, longest))
        step_ = std::min(step_, *even + tail(count.pipelines) + Duration{1});
  }

  // Least time in which k pipelines of equal sizes, or one node apart, do the work, if `enough` is one.
  [[nodiscard]] std::optional<Duration> even_time(int k, Duration enough) {
    const Pool& pool = pools_.front();
    const int size = pool.nodes / k, larger = pool.nodes % k;
    if (size < pool.least || size + (larger > 0 ? 1 : 0) > pool.most) return std::nullopt;
    const int small = number(pool, size), large = larger > 0 ? number(pool, size + 1) : small;
    Duration too_short{-1};
    while (enough - too_short > Duration{1}) {
      const Duration middle = too_short + (enough - too_short) / 2;
      const std::int64_t one = templates_.within(small, middle, request_.micro_batches);
      const std::int64_t other = templates_.within(large, middle, request_.micro_batches);
      const bool all_work = one > 0 && other > 0;
      const bool done = (k - larger) * one + larger * other >= request_.micro_batches;
      (all_work && done ? enough : too_short) = middle;
    }
    return enough;
  }

  // nullptr: all are closed.
  [[nodiscard]] Count* widest_open() {
    Count* widest = nullptr;
    for (Count& count : open_)
      if (!count.closed_at && (widest == nullptr || budget(count.pipelines) > budget(widest->pipelines)))
        widest = &count;
    return widest;
  }

  // Looks for a step that is shorter by at least one, as the widest budget allows. Closes the counts that
  // have none: of one pool the widest, of several pools all that the table answers for. Of those that have
  // the same budget the one of the greatest capacity is tried: it lowers the step most.
  void try_for(Count& widest) {
    const Duration time = budget(widest.pipelines) - Duration{1};
    const std::optional<Capacities> table = capacities(time, one_pool() ? widest.pipelines : most_open());
    std::optional<int> roomiest;
    for (Count& count : open_) {
      if (count.closed_at || (one_pool() && &count != &widest)) continue;
      if (!table || table->of(count.pipelines) < request_.micro_batches)
        count.closed_at = step_;
      else if (budget(count.pipelines) - Duration{1} == time &&
               (!roomiest || table->of(count.pipelines) >= table->of(*roomiest)))
        roomiest = count.pipelines;
    }
    if (!roomiest) return;
    const Duration better = step_of(table->sizes(*roomiest, table->of(*roomiest)));
    SC_CHECK(better < step_, "what fits a budget is within it");
    step_ = better;
  }

  [[nodiscard]] int most_open() const {
    int most = 0;
    for (const Count& count : open_)
      if (!count.closed_at) most = std::max(most, count.pipelines);
    return most;
  }

  // The most pipelines that reach the least step, and of those the lexicographically least.
  [[nodiscard]] std::vector<std::vector<int>> tie_break() {
    std::erase_if(open_, [&](const Count& count) { return *count.closed_at > step_; });
    while (!open_.empty()) {
      const int pipelines = open_.back().pipelines;
      const Duration time = budget(pipelines);
      const std::optional<Capacities> table = capacities(time, pipelines);
      if (table && table->of(pipelines) >= request_.micro_batches)
        return table->sizes(pipelines, request_.micro_batches);
      std::erase_if(open_, [&](const Count& count) {
        const bool answered = !one_pool() && budget(count.pipelines) <= time;
        return count.pipelines == pipelines ||
               (answered && table->of(count.pipelines) < request_.micro_batches);
      });
    }
    SC_CHECK(false, "the least step was reached by someone");
    return {};
  }

  Templates& templates_;
  const InstantiateRequest& request_;
  std::vector<Pool> pools_;
  std::vector<Count> open_;
  Duration step_{};  // the least so far
};

// The most nodes up to `nodes` that at least `fewest` and at most `limit` pipelines use up; 0 where none.
int usable(int nodes, const InstantiateRequest& request, int fewest, int limit) {
  for (; nodes >= request.min_nodes; --nodes) {
    const int k = std::max(fewest, ceil_div(nodes, request.most_nodes));
    if (k <= limit && k * request.min_nodes <= nodes) return nodes;
  }
  return 0;
}

// Pool of each group's nodes: its own, or that of another group.
std::vector<int> hosts_of(Templates& templates, const InstantiateRequest& request, int fewest) {
  const auto groups = static_cast<int>(request.available.size());
  const auto of = [&](int group) { return request.available[static_cast<std::size_t>(group)]; };
  const auto speed = [&](int group) {
    Composition one(request.available.size());
    one[static_cast<std::size_t>(group)] = request.min_nodes;
    return templates.time(*templates.find(one), request.micro_batches);
  };
  std::vector<int> hosts(static_cast<std::size_t>(groups));
  std::iota(hosts.begin(), hosts.end(), 0);
  int pipelines = 0;
  for (int group = 0; group < groups; ++group) pipelines += of(group) / request.min_nodes;
  if (pipelines < fewest || pipelines > request.micro_batches) {  // one pool, that of the largest group
    const auto largest = std::ranges::max_element(request.available) - request.available.begin();
    return std::vector<int>(hosts.size(), static_cast<int>(largest));
  }
  for (int group = 0; group < groups; ++group) {
    if (of(group) == 0 || of(group) >= request.min_nodes) continue;
    std::optional<std::pair<Duration, int>> nearest;
    for (int host = 0; host < groups; ++host) {
      if (of(host) < request.min_nodes) continue;
      const std::pair<Duration, int> distance{std::chrono::abs(speed(host) - speed(group)), host};
      if (!nearest || distance < *nearest) nearest = distance;
    }
    hosts[static_cast<std::size_t>(group)] = nearest->second;
  }
  return hosts;
}

// A pool for each host, of the nodes that its pipelines can use up.
std::vector<Pool> pools_of(const InstantiateRequest& request, const std::vector<int>& hosts, int fewest) {
  std::vector<Pool> pools;
  for (int host = 0; host < static_cast<int>(hosts.size()); ++host) {
    int nodes = 0;
    for (std::size_t group = 0; group < hosts.size(); ++group)
      if (hosts[group] == host) nodes += request.available[group];
    const bool alone = nodes == nodes_of(request.available);
    if (!request.may_idle) nodes = usable(nodes, request, alone ? fewest : 1, request.micro_batches);
    if (nodes > 0)
      pools.push_back({.group = host,
                       .nodes = nodes,
                       .least = request.min_nodes,
                       .most = request.most_nodes,
                       .may_idle = request.may_idle});
  }
  return pools;
}

// Takes `size` nodes of a pool: the host's own first, then the lent ones.
Composition take(Composition& left, const std::vector<int>& hosts, int host, int size) {
  Composition out(left.size());
  const auto take_from = [&](std::size_t group) {
    const int taken = std::min(left[group], size - nodes_of(out));
    out[group] += taken;
    left[group] -= taken;
  };
  take_from(static_cast<std::size_t>(host));
  for (std::size_t group = 0; group < left.size(); ++group)
    if (hosts[group] == host) take_from(group);
  return out;
}

}  // namespace

std::optional<Instantiation> instantiate(Templates& templates, const InstantiateRequest& request) {
  SC_CHECK(request.micro_batches >= 1 && request.min_nodes >= 1 && request.most_nodes >= request.min_nodes,
           "sizes and micro-batches are positive");
  const int nodes = nodes_of(request.available);
  if (nodes < request.min_nodes) return std::nullopt;
  const int fewest = std::min({request.max_failures + 1, nodes / request.min_nodes, request.micro_batches});
  const std::vector<int> hosts = hosts_of(templates, request, fewest);
  const std::vector<Pool> pools = pools_of(request, hosts, fewest);
  const auto sizes = PoolSearch(templates, request, pools, fewest).best();
  Instantiation out{.idle = request.available};
  std::vector<int> numbers;
  for (std::size_t pool = 0; pool < pools.size(); ++pool)
    for (const int size : sizes[pool]) {
      out.pipelines.push_back(take(out.idle, hosts, pools[pool].group, size));
      numbers.push_back(templates.find(out.pipelines.back()).value());
    }
  out.shares = share_micro_batches(templates, numbers, request.micro_batches);
  out.step =
      out.shares.makespan + (request.tail ? request.tail(static_cast<int>(numbers.size())) : Duration{});
  return out;
}

}  // namespace stagecraft
