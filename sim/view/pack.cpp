#include "sim/view/pack.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/report/measure.hpp"
#include "sim/view/idle.hpp"
#include "sim/view/lanes.hpp"
#include "sim/view/wire.hpp"

namespace stagecraft {
namespace {

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

struct Slice {
  Duration start{}, end{};
  std::size_t label = 0;  // packed
  std::int32_t micro_batch = -1;
  std::optional<TaskId> task{};
};

class Packer {
 public:
  Packer(const Program& program, const Timeline& timeline)
      : program_(program), timeline_(timeline), compute_(compute_resources(program)) {
    merge_labels();
    for (std::uint32_t t = 0; t < program.task_count(); ++t) {
      PackedLabel& label = packed_.labels[packed_of_[program.label[TaskId(t)].index()]];
      if (program.micro_batch[TaskId(t)] >= 0) label.micro_batches = true;
      if (label.time == Duration::zero()) label.time = timeline.end[TaskId(t)] - timeline.start[TaskId(t)];
    }
    bubble_ = packed_.labels.size();
    packed_.labels.push_back({.kind = SliceKind::kBubble, .label = {}, .time = {}, .micro_batches = false});
  }

  PackedTimeline pack(std::size_t room) && {
    packed_.ranks = program_.rank_count();
    if (!timeline_.stall) note_path();
    const Waits waits(program_, timeline_);
    for (const Lane& lane : lanes_of(program_, timeline_)) {
      if (lane.rank >= packed_.shown_ranks && lane.rank > 0 && packed_.slices.size() > room) break;
      packed_.shown_ranks = lane.rank + 1;
      pack_lane(lane, waits);
    }
    pack_path();
    return std::move(packed_);
  }

 private:
  // Merges labels with the same content.
  void merge_labels() {
    using Parts = std::vector<std::pair<std::int32_t, Duration>>;
    std::map<std::tuple<std::string, std::int32_t, Parts>, std::size_t> known;
    for (std::size_t i = 0; i < program_.labels.size(); ++i) {
      const LabelId id(static_cast<std::uint32_t>(i));
      const Label& label = program_.labels[id];
      Parts parts;
      for (const TaskPart& part : label.parts) parts.emplace_back(part.category, part.time);
      const auto [entry, added] =
          known.try_emplace({label.name, label.stage, std::move(parts)}, packed_.labels.size());
      if (added)
        packed_.labels.push_back({.kind = SliceKind::kTask, .label = id, .time = {}, .micro_batches = false});
      packed_of_.push_back(entry->second);
    }
  }

  void note_path() {
    path_ = critical_path(program_, timeline_);
    std::erase_if(path_, [&](TaskId task) { return timeline_.end[task] == timeline_.start[task]; });
    for (std::size_t i = 0; i < path_.size(); ++i) place_.emplace(path_[i].value(), Place{});
  }

  std::size_t exposed_label(TaskId task) {
    const LabelId label = program_.label[task];
    const auto [known, added] = exposed_.try_emplace(program_.labels[label].name, packed_.labels.size());
    if (added)
      packed_.labels.push_back(
          {.kind = SliceKind::kExposed, .label = label, .time = {}, .micro_batches = false});
    return known->second;
  }

  std::vector<Slice> slices_of(const Lane& lane, const Waits& waits) {
    std::vector<Slice> slices;
    for (const TaskId task : lane.tasks)
      if (timeline_.end[task] > timeline_.start[task])
        slices.push_back({.start = timeline_.start[task],
                          .end = timeline_.end[task],
                          .label = packed_of_[program_.label[task].index()],
                          .micro_batch = program_.micro_batch[task],
                          .task = task});
    if (!compute_[lane.resource.index()] || slices.empty()) return slices;
    for (const Gap& gap : waits.gaps_of(lane)) {
      if (gap.exposed_from > gap.begin)
        slices.push_back({.start = gap.begin, .end = gap.exposed_from, .label = bubble_});
      if (gap.exposed_from < gap.end)
        slices.push_back({.start = gap.exposed_from, .end = gap.end, .label = exposed_label(*gap.waits_for)});
    }
    std::ranges::sort(slices, {}, &Slice::start);
    return slices;
  }

  void pack_lane(const Lane& lane, const Waits& waits) {
    const std::vector<Slice> slices = slices_of(lane, waits);
    if (slices.empty()) return;
    const std::size_t index = packed_.lanes.size();
    packed_.lanes.push_back({.rank = lane.rank,
                             .name = lane.name,
                             .compute = compute_[lane.resource.index()],
                             .slices = slices.size(),
                             .offset = packed_.slices.size()});
    std::unordered_map<std::size_t, std::int32_t> last;  // micro-batch by label
    Duration at{};
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const Slice& slice = slices[i];
      pack_slice(slice, at, last);
      at = slice.end;
      if (!slice.task) continue;
      const auto on_path = place_.find(slice.task->value());
      if (on_path != place_.end()) on_path->second = {index, i, true};
    }
  }

  void pack_slice(const Slice& slice, Duration at, std::unordered_map<std::size_t, std::int32_t>& last) {
    const PackedLabel& label = packed_.labels[slice.label];
    const bool gap = slice.start != at, odd = slice.end - slice.start != label.time;
    bool jump = false;
    std::int64_t difference = 0;
    if (label.micro_batches) {
      std::int32_t& before = last.try_emplace(slice.label, -1).first->second;
      difference = std::int64_t{slice.micro_batch} - before;
      jump = difference != 1;
      before = slice.micro_batch;
    }
    append_varint(packed_.slices, slice.label * 8 + (gap ? 4u : 0u) + (odd ? 2u : 0u) + (jump ? 1u : 0u));
    if (gap) append_varint(packed_.slices, static_cast<std::uint64_t>((slice.start - at).count()));
    if (odd) append_varint(packed_.slices, static_cast<std::uint64_t>((slice.end - slice.start).count()));
    if (jump) append_varint(packed_.slices, zigzag(difference));
  }

  void pack_path() {
    Place before{};
    for (const TaskId task : path_) {
      const Place& place = place_.at(task.value());
      if (!place.shown) continue;
      append_varint(packed_.path,
                    zigzag(static_cast<std::int64_t>(place.lane) - static_cast<std::int64_t>(before.lane)));
      append_varint(packed_.path,
                    zigzag(static_cast<std::int64_t>(place.slice) - static_cast<std::int64_t>(before.slice)));
      before = place;
      ++packed_.path_tasks;
    }
  }

  struct Place {
    std::size_t lane = 0, slice = 0;
    bool shown = false;
  };

  const Program& program_;
  const Timeline& timeline_;
  std::vector<bool> compute_;
  PackedTimeline packed_;
  std::vector<std::size_t> packed_of_;  // by label of the program
  std::size_t bubble_ = 0;
  std::map<std::string, std::size_t> exposed_;  // exposed labels by the awaited communication
  std::vector<TaskId> path_;
  std::unordered_map<std::uint32_t, Place> place_;  // place by task of the path
};

}  // namespace

PackedTimeline pack_timeline(const Program& program, const Timeline& timeline, std::size_t room) {
  return Packer(program, timeline).pack(room);
}

}  // namespace stagecraft
