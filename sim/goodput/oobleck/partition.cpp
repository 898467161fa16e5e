#include "sim/goodput/oobleck/partition.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace stagecraft {

Partition partition_at(std::span<const Duration> layer_work, std::vector<int> first_layers) {
  Partition out{.first_layers = std::move(first_layers)};
  for (std::size_t stage = 0; stage < out.first_layers.size(); ++stage) {
    const auto begin = layer_work.begin() + out.first_layers[stage];
    const auto end = stage + 1 < out.first_layers.size() ? layer_work.begin() + out.first_layers[stage + 1]
                                                         : layer_work.end();
    out.work.push_back(std::accumulate(begin, end, Duration{}));
  }
  return out;
}

std::vector<int> layers_per_stage(const Partition& partition, int model_layers) {
  std::vector<int> out;
  for (std::size_t stage = 0; stage < partition.first_layers.size(); ++stage) {
    const bool last = stage + 1 == partition.first_layers.size();
    out.push_back((last ? model_layers : partition.first_layers[stage + 1]) - partition.first_layers[stage]);
  }
  return out;
}

int slowest_stage(std::span<const Duration> work) {
  SC_CHECK(!work.empty(), "a pipeline has a stage");
  std::size_t slowest = 0;
  for (std::size_t i = 1; i < work.size(); ++i)
    if (work[i] >= work[slowest]) slowest = i;
  return static_cast<int>(slowest);
}

Duration PipelineLine::time(int micro_batches) const {
  const Duration published = base + slope * micro_batches;
  if (rule == PipelineRule::kPublished) return published;
  return std::max({published, slope * micro_batches, floor});
}

int PipelineLine::within(Duration limit_time, int limit) const {
  SC_CHECK(slope > Duration{}, "the slowest stage takes time");
  if (rule == PipelineRule::kCorrected && limit_time < floor) return 0;
  const Duration offset = rule == PipelineRule::kCorrected ? std::max(base, Duration{}) : base;
  if (limit_time < offset + slope) return 0;
  return static_cast<int>(std::min<std::int64_t>((limit_time - offset) / slope, limit));
}

PipelineLine pipeline_line(std::span<const Duration> work, PipelineRule rule) {
  const int stages = static_cast<int>(work.size());
  const int k = slowest_stage(work);
  const Duration slowest = work[static_cast<std::size_t>(k)];
  const Duration whole = std::accumulate(work.begin(), work.end(), Duration{});
  const Duration behind = std::accumulate(work.begin() + k, work.end(), Duration{});
  return {
      .base = whole + behind - slowest * (stages - k + 1), .slope = slowest, .floor = whole, .rule = rule};
}

PartitionSearch::PartitionSearch(std::vector<Duration> layer_work) : layer_work_(std::move(layer_work)) {
  up_to_.push_back({});
  for (const Duration layer : layer_work_) {
    SC_CHECK(layer >= Duration{}, "a layer takes no negative time");
    up_to_.push_back(up_to_.back() + layer);
  }
  SC_CHECK(up_to_.back() > Duration{}, "a model of no work needs no plan");
  for (int begin = 0; begin < layers(); ++begin) {
    for (int end = begin + 1; end <= layers(); ++end) {
      const Duration longest = work(begin, end);
      const auto before = fewest(0, begin, longest);
      const auto behind = fewest(end, layers(), longest - Duration{1});
      if (before && behind)
        ranges_.push_back({.begin = begin,
                           .end = end,
                           .work = longest,
                           .fewest_before = *before,
                           .fewest_behind = *behind});
    }
  }
}

Duration PartitionSearch::work(int begin, int end) const {
  return up_to_[static_cast<std::size_t>(end)] - up_to_[static_cast<std::size_t>(begin)];
}

// Fewest stages that cover [begin, end) with no stage longer than `longest`: each stage is filled as far as
// possible. nullopt when one layer alone is too long.
std::optional<int> PartitionSearch::fewest(int begin, int end, Duration longest) const {
  int stages = 0;
  while (begin < end) {
    const auto stop = std::upper_bound(up_to_.begin() + begin + 1, up_to_.begin() + end + 1,
                                       up_to_[static_cast<std::size_t>(begin)] + longest);
    const int next = static_cast<int>(stop - up_to_.begin()) - 1;
    if (next == begin) return std::nullopt;
    begin = next;
    ++stages;
  }
  return stages;
}

// The time grows with the index of the slowest stage, so that as few stages stand before it as can.
std::optional<int> PartitionSearch::stages_before(const Range& range, int stages) const {
  const int before = std::max(range.fewest_before, stages - 1 - (layers() - range.end));
  if (before > std::min(range.begin, stages - 1 - range.fewest_behind)) return std::nullopt;
  return before;
}

PartitionSearch::Candidate PartitionSearch::price(const Range& range, int before, int stages,
                                                  int micro_batches, PipelineRule rule) const {
  const Duration whole = up_to_.back();
  const PipelineLine line{.base = whole + work(range.begin, layers()) - range.work * (stages - before + 1),
                          .slope = range.work,
                          .floor = whole,
                          .rule = rule};
  return {.time = line.time(micro_batches), .published = line.base + line.slope * micro_batches};
}

// Appends the starts of `count` stages that cover [begin, end), none longer, each start as early as can be.
void PartitionSearch::earliest_starts(int begin, int end, Duration longest, std::vector<int>& out,
                                      int count) const {
  std::vector<int> latest_cover;  // [j]: the earliest layer from which j stages reach `end`
  latest_cover.push_back(end);
  while (latest_cover.back() > begin) {
    const int stop = latest_cover.back();
    const auto first = std::lower_bound(up_to_.begin() + begin, up_to_.begin() + stop,
                                        up_to_[static_cast<std::size_t>(stop)] - longest);
    latest_cover.push_back(static_cast<int>(first - up_to_.begin()));
  }
  for (int i = 0; i < count; ++i) {
    const auto left = std::min(static_cast<std::size_t>(count - i), latest_cover.size() - 1);
    out.push_back(std::max(begin + i, latest_cover[left]));
  }
}

std::vector<int> PartitionSearch::starts(const Range& range, int before, int stages) const {
  std::vector<int> out;
  out.reserve(static_cast<std::size_t>(stages));
  earliest_starts(0, range.begin, range.work, out, before);
  out.push_back(range.begin);
  earliest_starts(range.end, layers(), range.work - Duration{1}, out, stages - 1 - before);
  return out;
}

std::optional<Partition> PartitionSearch::best(int stages, int micro_batches, PipelineRule rule) const {
  SC_CHECK(stages >= 1 && micro_batches >= 1, "a pipeline has stages and micro-batches");
  std::optional<Candidate> least;
  std::vector<int> first_layers;
  for (const Range& range : ranges_) {
    const auto before = stages_before(range, stages);
    if (!before) continue;
    const Candidate candidate = price(range, *before, stages, micro_batches, rule);
    if (least && candidate > *least) continue;
    std::vector<int> its_starts = starts(range, *before, stages);
    if (!least || candidate < *least || its_starts < first_layers) first_layers = std::move(its_starts);
    least = candidate;
  }
  if (!least) return std::nullopt;
  return partition_at(layer_work_, std::move(first_layers));
}

namespace {

// The starts of stages filled from the front, none longer; nullopt when the layers do not fit.
std::optional<std::vector<int>> fill_from_front(const std::vector<std::vector<Duration>>& layer_work,
                                                Duration longest) {
  const auto layers = static_cast<int>(layer_work.front().size());
  const auto stages = static_cast<int>(layer_work.size());
  std::vector<int> starts;
  int layer = 0;
  for (int stage = 0; stage < stages; ++stage) {
    starts.push_back(layer);
    const int last_end = layers - (stages - 1 - stage);  // leaves one layer for each later stage
    const auto& row = layer_work[static_cast<std::size_t>(stage)];
    Duration filled{};
    while (layer < last_end && filled + row[static_cast<std::size_t>(layer)] <= longest)
      filled += row[static_cast<std::size_t>(layer++)];
    if (layer == starts.back()) return std::nullopt;
  }
  if (layer < layers) return std::nullopt;
  return starts;
}

}  // namespace

std::optional<Partition> partition_of_unequal(const std::vector<std::vector<Duration>>& layer_work) {
  SC_CHECK(!layer_work.empty(), "a pipeline has a stage");
  if (layer_work.size() > layer_work.front().size()) return std::nullopt;
  Duration too_short{-1};
  Duration enough{};
  for (const auto& row : layer_work)
    enough = std::max(enough, std::accumulate(row.begin(), row.end(), Duration{}));
  while (enough - too_short > Duration{1}) {
    const Duration middle = too_short + (enough - too_short) / 2;
    (fill_from_front(layer_work, middle) ? enough : too_short) = middle;
  }
  Partition out{.first_layers = *fill_from_front(layer_work, enough)};
  for (std::size_t stage = 0; stage < layer_work.size(); ++stage)
    out.work.push_back(partition_at(layer_work[stage], out.first_layers).work[stage]);
  return out;
}

}  // namespace stagecraft
