#include "sim/goodput/checkpoint_store.hpp"

#include <algorithm>
#include <iterator>

#include "base/check.hpp"
#include "base/ids.hpp"

namespace stagecraft {
namespace {

bool in_memory(const std::optional<Checkpointing>& how) {
  return how && how->mode == CheckpointMode::kInMemory;
}

// The progress that was reached `steps` equal steps before `now`.
Progress before(const Progress& now, std::int64_t steps, std::int64_t samples_per_step, Duration step) {
  return {.at = now.at - steps * step,
          .steps = now.steps - steps,
          .samples = now.samples - steps * samples_per_step,
          .trained = now.trained - steps * step};
}

// Has every place of the ring kept at least one of its `copies` consecutive holders?
bool ring_survives(const std::vector<bool>& lost, std::size_t first, std::size_t size, std::size_t copies) {
  for (std::size_t place = 0; place < size; ++place) {
    std::size_t copy = 0;
    while (copy < copies && lost[first + (place + copy) % size]) ++copy;
    if (copy == copies) return false;
  }
  return true;
}

}  // namespace

bool recoverable_from_memory(const std::vector<bool>& lost, int copies) {
  SC_CHECK(copies >= 1, "a shard has at least its own host");
  const std::size_t m = std::min(as_index(copies), lost.size());
  if (m == 0) return true;
  const std::size_t groups = lost.size() / m;
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t first = group * m;
    const std::size_t size = group + 1 == groups ? lost.size() - first : m;
    if (!ring_survives(lost, first, size, m)) return false;
  }
  return true;
}

void CheckpointStore::written(const Progress& progress) {
  if (!keep_all_) stored_.clear();
  stored_.push_back(progress);
}

void CheckpointStore::begin(const Progress& progress, const std::vector<int>& nodes,
                            const Machines& machines) {
  if (!in_memory(how_)) return;
  nodes_ = nodes;
  lives_.clear();
  for (const int node : nodes) lives_.push_back(machines.life(node));
  copied_steps_ = 0;
  usable_ = travelling_ = progress;
}

void CheckpointStore::trained(const Progress& now, std::int64_t steps, std::int64_t samples_per_step,
                              Duration step) {
  if (!in_memory(how_)) return;
  const std::int64_t every = how_->copy_every;
  const std::int64_t earlier = copied_steps_;
  copied_steps_ += steps;
  const std::int64_t boundary = copied_steps_ / every * every;  // the last snapshot
  if (boundary <= earlier) return;
  const Progress last = before(now, copied_steps_ - boundary, samples_per_step, step);
  // The snapshot before the last one lies within these steps; otherwise it is the one in transit.
  usable_ = boundary - every > earlier ? before(last, every, samples_per_step, step) : travelling_;
  travelling_ = last;
}

bool CheckpointStore::memory_survives(const Machines& machines) const {
  if (nodes_.empty()) return false;
  std::vector<bool> lost(nodes_.size());
  for (std::size_t place = 0; place < nodes_.size(); ++place)
    lost[place] = !machines.up(nodes_[place]) || machines.life(nodes_[place]) != lives_[place];
  return recoverable_from_memory(lost, how_->copies);
}

CheckpointStore::Source CheckpointStore::source(const Machines& machines,
                                                std::optional<Duration> not_after) const {
  const Duration latest = not_after.value_or(Duration::max());
  const auto after = std::ranges::upper_bound(stored_, latest, {}, &Progress::at);
  Source best;
  if (after != stored_.begin()) best = {.progress = *std::prev(after), .load = how_->load};
  if (!in_memory(how_) || usable_.at > latest || !memory_survives(machines)) return best;
  best.only_storage = false;
  const Source memory = {.progress = usable_, .load = how_->copy_load, .only_storage = false};
  const auto behind = [](const Source& from) { return from.load - from.progress.trained; };
  return behind(memory) <= behind(best) ? memory : best;
}

void CheckpointStore::went_back(const Progress& to, std::optional<Duration> not_after) {
  while (not_after && !stored_.empty() && stored_.back().at > *not_after) stored_.pop_back();
  // Of several that count as the same progress the earliest serves whenever a later one would.
  std::optional<Duration> at;
  while (!stored_.empty() && stored_.back().steps >= to.steps) {
    at = stored_.back().at;
    stored_.pop_back();
  }
  if (!at) return;
  stored_.push_back(to);
  stored_.back().at = *at;
}

}  // namespace stagecraft
