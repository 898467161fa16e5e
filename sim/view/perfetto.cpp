#include <unordered_map>

#include "base/check.hpp"
#include "sim/report/measure.hpp"
#include "sim/view/lanes.hpp"
#include "sim/view/memory_steps.hpp"
#include "sim/view/trace.hpp"
#include "sim/view/wire.hpp"

namespace stagecraft {
namespace {

// Field numbers of google/perfetto @ec5d16b, protos/perfetto/trace/**.proto.
namespace trace {
enum : std::uint32_t { kPacket = 1 };
}
namespace packet {
enum : std::uint32_t {
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kTrackDescriptor = 60
};
enum : std::uint64_t { kStateCleared = 1, kNeedsState = 2 };
}  // namespace packet
namespace track {
enum : std::uint32_t {
  kUuid = 1,
  kName = 2,
  kParentUuid = 5,
  kCounter = 8,
  kChildOrdering = 11,
  kSiblingOrderRank = 12
};
constexpr std::uint64_t kExplicitOrder = 3;
constexpr std::uint32_t kCounterUnit = 3;
constexpr std::uint64_t kUnitBytes = 3;
}  // namespace track
namespace event {
enum : std::uint32_t { kAnnotation = 4, kType = 9, kNameIid = 10, kTrackUuid = 11, kCounterValue = 30 };
enum : std::uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };
}  // namespace event
namespace interned {
enum : std::uint32_t { kEventNames = 2, kAnnotationNames = 3, kIid = 1, kName = 2 };
}
namespace annotation {
enum : std::uint32_t { kNameIid = 1, kInt = 4 };
enum : std::uint64_t { kMicroBatchName = 1, kStageName = 2 };
}  // namespace annotation

constexpr std::uint64_t kSequenceId = 1;
std::uint64_t nanoseconds(Duration time) {
  return static_cast<std::uint64_t>(time.count());
}

class PerfettoTrace {
 public:
  PerfettoTrace(const TraceInput& input, const ByteSink& sink) : input_(input), sink_(sink) {}

  void write() {
    write_names();
    const std::vector<Lane> lanes = lanes_of(input_.program, input_.timeline);
    write_ranks();
    for (const Lane& lane : lanes) write_lane(lane);
    write_memory();
    if (!input_.timeline.stall) write_critical_path();
    flush();
  }

 private:
  void end_packet() {
    out_.message(trace::kPacket, packet_);
    packet_.clear();
    if (out_.bytes().size() >= kTracePiece) flush();
  }

  void flush() {
    sink_(out_.bytes());
    out_.clear();
  }

  static void intern(WireMessage& data, std::uint32_t field, std::uint64_t iid, std::string_view name) {
    WireMessage entry;
    entry.number(interned::kIid, iid).text(interned::kName, name);
    data.message(field, entry);
  }

  // Labels of one name share an entry.
  void write_names() {
    WireMessage data;
    std::unordered_map<std::string, std::uint64_t> known;
    for (const Label& label : input_.program.labels) {
      const auto [entry, added] = known.try_emplace(label.name, known.size() + 1);
      if (added) intern(data, interned::kEventNames, entry->second, label.name);
      name_of_.push_back(entry->second);
    }
    intern(data, interned::kAnnotationNames, annotation::kMicroBatchName, "micro-batch");
    intern(data, interned::kAnnotationNames, annotation::kStageName, "stage");
    packet_.number(packet::kSequence, kSequenceId)
        .message(packet::kInternedData, data)
        .number(packet::kSequenceFlags, packet::kStateCleared);
    end_packet();
  }

  void write_track(const WireMessage& descriptor) {
    packet_.number(packet::kSequence, kSequenceId).message(packet::kTrackDescriptor, descriptor);
    end_packet();
  }

  // Ranks have uuids 1 to n, their rows those that follow.
  void write_ranks() {
    for (std::size_t rank = 0; rank < input_.ranks.size(); ++rank) {
      WireMessage descriptor;
      descriptor.number(track::kUuid, rank + 1)
          .text(track::kName, input_.ranks[rank])
          .number(track::kChildOrdering, track::kExplicitOrder)
          .number(track::kSiblingOrderRank, rank);
      write_track(descriptor);
    }
    next_uuid_ = input_.ranks.size() + 1;
  }

  std::uint64_t write_row(std::size_t rank, std::string_view name, bool counter) {
    SC_CHECK(rank < input_.ranks.size(), "every rank has a name");
    WireMessage descriptor;
    descriptor.number(track::kUuid, next_uuid_).text(track::kName, name).number(track::kParentUuid, rank + 1);
    if (counter) {
      WireMessage unit;
      descriptor.message(track::kCounter, unit.number(track::kCounterUnit, track::kUnitBytes));
    }
    descriptor.number(track::kSiblingOrderRank, next_uuid_);
    write_track(descriptor);
    return next_uuid_++;
  }

  void write_lane(const Lane& lane) {
    const std::uint64_t uuid = write_row(static_cast<std::size_t>(lane.rank), lane.name, false);
    for (const TaskId task : lane.tasks) write_task(uuid, task);
  }

  void write_event(Duration time, bool named) {
    packet_.number(packet::kTimestamp, nanoseconds(time)).number(packet::kSequence, kSequenceId);
    if (named) packet_.number(packet::kSequenceFlags, packet::kNeedsState);
    packet_.message(packet::kTrackEvent, event_);
    event_.clear();
    end_packet();
  }

  void annotate(std::uint64_t name, std::int32_t value) {
    annotation_.clear();
    annotation_.number(annotation::kNameIid, name)
        .number(annotation::kInt, static_cast<std::uint64_t>(std::int64_t{value}));
    event_.message(event::kAnnotation, annotation_);
  }

  void write_task(std::uint64_t uuid, TaskId task) {
    const Program& program = input_.program;
    const Duration start = input_.timeline.start[task], end = input_.timeline.end[task];
    const LabelId label = program.label[task];
    event_.number(event::kType, start == end ? event::kInstant : event::kBegin)
        .number(event::kNameIid, name_of_[label.index()])
        .number(event::kTrackUuid, uuid);
    if (program.micro_batch[task] >= 0) annotate(annotation::kMicroBatchName, program.micro_batch[task]);
    if (program.labels[label].stage >= 0) annotate(annotation::kStageName, program.labels[label].stage);
    write_event(start, true);
    if (start == end) return;
    event_.number(event::kType, event::kEnd).number(event::kTrackUuid, uuid);
    write_event(end, false);
  }

  void write_memory() {
    const std::vector<std::vector<MemoryStep>> steps = memory_steps(input_.program, input_.timeline);
    for (std::size_t rank = 0; rank < steps.size(); ++rank) {
      if (steps[rank].empty()) continue;
      const std::uint64_t uuid = write_row(rank, "activations", true);
      for (const MemoryStep& step : steps[rank]) {
        event_.number(event::kType, event::kCounter)
            .number(event::kTrackUuid, uuid)
            .number(event::kCounterValue, static_cast<std::uint64_t>(step.held.count()));
        write_event(step.time, false);
      }
    }
  }

  void write_critical_path() {
    const std::vector<TaskId> path = critical_path(input_.program, input_.timeline);
    if (path.empty()) return;
    WireMessage descriptor;
    descriptor.number(track::kUuid, next_uuid_)
        .text(track::kName, "critical path")
        .number(track::kSiblingOrderRank, input_.ranks.size());
    write_track(descriptor);
    for (const TaskId task : path)
      if (input_.timeline.end[task] > input_.timeline.start[task]) write_task(next_uuid_, task);
  }

  const TraceInput& input_;
  const ByteSink& sink_;
  WireMessage out_, packet_, event_, annotation_;
  std::vector<std::uint64_t> name_of_;  // by label: iid
  std::uint64_t next_uuid_ = 1;
};

}  // namespace

void write_perfetto(const TraceInput& input, const ByteSink& sink) {
  PerfettoTrace(input, sink).write();
}

}  // namespace stagecraft
