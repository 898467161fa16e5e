// Traces are read back by readers of their own and compared with the timeline.
#include "sim/view/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/workload_a.hpp"
#include "sim/view/lanes.hpp"
#include "tests/sim/view/wire_reader.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using test::first_of;
using test::read_message;
using test::WireField;

// Start and end in nanoseconds, name, micro-batch (-1: none), stage (-1: none).
using Slice = std::tuple<std::int64_t, std::int64_t, std::string, std::int64_t, std::int64_t>;
using Row = std::pair<std::string, std::string>;  // rank, stream
struct ReadTrace {
  std::map<Row, std::vector<Slice>> rows;
  std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> memory;  // by rank: time, bytes
};

std::map<Row, std::vector<Slice>> rows_of(const TraceInput& input) {
  std::map<Row, std::vector<Slice>> rows;
  for (const Lane& lane : lanes_of(input.program, input.timeline)) {
    std::vector<Slice>& row = rows[{input.ranks[static_cast<std::size_t>(lane.rank)], lane.name}];
    for (const TaskId task : lane.tasks) {
      const Label& label = input.program.labels[input.program.label[task]];
      row.emplace_back(input.timeline.start[task].count(), input.timeline.end[task].count(), label.name,
                       input.program.micro_batch[task], label.stage);
    }
  }
  return rows;
}

class PerfettoReader {
 public:
  ReadTrace read(const std::string& bytes) {
    for (const WireField& packet : read_message(bytes)) {
      EXPECT_EQ(packet.number, 1u);
      read_packet(read_message(packet.bytes));
    }
    for (const auto& [uuid, begun] : open_)
      EXPECT_EQ(begun, 0) << "a slice of track " << uuid << " has no end";
    return std::move(trace_);
  }

 private:
  struct Track {
    std::string name;
    std::uint64_t parent = 0;
  };

  void read_packet(const std::vector<WireField>& packet) {
    EXPECT_EQ(first_of(packet, 10).value, 1u) << "one sequence";
    if (const WireField data = first_of(packet, 12); data.number != 0) read_names(read_message(data.bytes));
    if (const WireField track = first_of(packet, 60); track.number != 0) {
      const auto fields = read_message(track.bytes);
      tracks_[first_of(fields, 1).value] = {std::string(first_of(fields, 2).bytes),
                                            first_of(fields, 5).value};
    }
    if (const WireField event = first_of(packet, 11); event.number != 0)
      read_event(static_cast<std::int64_t>(first_of(packet, 8).value), first_of(packet, 13).value,
                 read_message(event.bytes));
  }

  void read_names(const std::vector<WireField>& data) {
    for (const WireField& entry : data) {
      const auto fields = read_message(entry.bytes);
      (entry.number == 2 ? names_ : arguments_)[first_of(fields, 1).value] = first_of(fields, 2).bytes;
    }
  }

  void read_event(std::int64_t time, std::uint64_t flags, const std::vector<WireField>& event) {
    const std::uint64_t uuid = first_of(event, 11).value, type = first_of(event, 9).value;
    const Track& track = tracks_.at(uuid);
    const std::string parent = track.parent == 0 ? "" : tracks_.at(track.parent).name;
    if (type == 4) {
      trace_.memory[parent].emplace_back(time, static_cast<std::int64_t>(first_of(event, 30).value));
      return;
    }
    std::vector<Slice>& row = trace_.rows[{parent, track.name}];
    if (type == 2) {
      EXPECT_EQ(open_[uuid]--, 1);
      std::get<1>(row.back()) = time;
      return;
    }
    EXPECT_EQ(flags, 2u) << "names are of the sequence's state";
    EXPECT_EQ(open_[uuid], 0) << "slices of a row do not overlap";
    if (type == 1) ++open_[uuid];
    std::map<std::string, std::int64_t, std::less<>> arguments;
    for (const WireField& field : event) {
      if (field.number != 4) continue;
      const auto annotation = read_message(field.bytes);
      arguments[arguments_.at(first_of(annotation, 1).value)] =
          static_cast<std::int64_t>(first_of(annotation, 4).value);
    }
    const auto argument = [&](const char* name) { return arguments.contains(name) ? arguments[name] : -1; };
    row.emplace_back(time, time, names_.at(first_of(event, 10).value), argument("micro-batch"),
                     argument("stage"));
  }

  std::map<std::uint64_t, std::string> names_, arguments_;
  std::map<std::uint64_t, Track> tracks_;
  std::map<std::uint64_t, int> open_;
  ReadTrace trace_;
};

ReadTrace read_chrome(const std::string& text) {
  const auto in_nanoseconds = [](const nlohmann::json& microseconds) {
    return static_cast<std::int64_t>(std::llround(microseconds.get<double>() * 1000));
  };
  ReadTrace trace;
  std::map<int, std::string> ranks;
  std::map<std::pair<int, int>, std::string> threads;
  const nlohmann::json document = nlohmann::json::parse(text);
  for (const nlohmann::json& event : document.at("traceEvents")) {
    const int pid = event["pid"], tid = event.value("tid", 0);
    if (event["name"] == "process_name") ranks[pid] = event["args"]["name"];
    if (event["name"] == "thread_name") threads[{pid, tid}] = event["args"]["name"];
    const nlohmann::json& arguments = event["args"];
    if (event["ph"] == "C")
      trace.memory[ranks[pid]].emplace_back(in_nanoseconds(event["ts"]), arguments["bytes"]);
    if (event["ph"] != "X" && event["ph"] != "i") continue;
    const std::int64_t start = in_nanoseconds(event["ts"]);
    const bool path = ranks[pid] == "critical path";
    trace.rows[path ? Row{"", "critical path"} : Row{ranks[pid], threads[{pid, tid}]}].emplace_back(
        start, start + (event["ph"] == "X" ? in_nanoseconds(event["dur"]) : 0), event["name"],
        arguments.value("micro-batch", -1), arguments.value("stage", -1));
  }
  return trace;
}

struct Written {
  std::string bytes;
  std::size_t largest = 0;  // piece
};

Written written(void (*write)(const TraceInput&, const ByteSink&), const TraceInput& input) {
  Written all;
  write(input, [&all](std::string_view piece) {
    all.bytes += piece;
    all.largest = std::max(all.largest, piece.size());
  });
  return all;
}

Duration path_length(const std::vector<Slice>& path) {
  Duration sum{};
  for (const auto& [start, end, name, micro_batch, stage] : path) sum += Duration(end - start);
  return sum;
}

class Traces : public testing::Test {
 protected:
  void expect_same(const TraceInput& input) {
    for (ReadTrace trace : {PerfettoReader().read(written(write_perfetto, input).bytes),
                            read_chrome(written(write_chrome_trace, input).bytes)}) {
      const std::vector<Slice> path = std::exchange(trace.rows[{"", "critical path"}], {});
      EXPECT_EQ(path_length(path), input.timeline.makespan);
      trace.rows.erase({"", "critical path"});
      EXPECT_EQ(trace.rows, rows_of(input));
    }
  }
};

// Slices are the tasks of the timeline: every start, end, name and argument, and nothing else.
TEST_F(Traces, AddUpToTheTimelineExactly) {
  for (const WorkloadA& workload : {WorkloadA{.stages = 4, .micro_batches = 8, .replicas = 1},
                                    WorkloadA{.stages = 3, .micro_batches = 5, .replicas = 2}}) {
    const Program program = build(workload);
    const Timeline timeline = run(program);
    expect_same({.program = program, .timeline = timeline, .ranks = rank_names(program, workload.stages)});
  }
}

// System: a pass of 3 ns that begins 2^53 + 1 ns (104 days) after 0: a double of microseconds cannot tell it.
TEST_F(Traces, KeepNanosecondsBeyondWhatADoubleHolds) {
  const Duration late((std::int64_t{1} << 53) + 1);
  ProgramBuilder builder;
  const ResourceId compute = builder.add_resource({ResourceKind::kStream, 0, "compute"});
  const LabelId label = builder.add_label({.name = "F", .stage = 7, .parts = {}});
  (void)builder.add_task(compute, late, label);
  (void)builder.add_task(compute, 3ns, label, 5);
  const Program program = std::move(builder).build();
  const Timeline timeline = run(program);
  const TraceInput input{.program = program, .timeline = timeline, .ranks = {"rank 0"}};
  const ReadTrace trace = PerfettoReader().read(written(write_perfetto, input).bytes);
  EXPECT_THAT(trace.rows.at({"rank 0", "compute"}),
              testing::ElementsAre(Slice{0, late.count(), "F", -1, 7},
                                   Slice{late.count(), late.count() + 3, "F", 5, 7}));
  EXPECT_THAT(written(write_chrome_trace, input).bytes,
              testing::HasSubstr("\"ts\":9007199254740.993,\"dur\":0.003"));
}

TEST_F(Traces, CountTheActivationsOfEachRank) {
  ProgramBuilder builder;
  const ResourceId compute = builder.add_resource({ResourceKind::kStream, 0, "compute"});
  const LabelId label = builder.add_label({.name = "F", .stage = 0, .parts = {}});
  builder.add_memory(builder.add_task(compute, 5ns, label), Bytes(std::int64_t{80} << 30), Bytes(-1));
  const Program program = std::move(builder).build();
  const Timeline timeline = run(program);
  const TraceInput input{.program = program, .timeline = timeline, .ranks = {"rank 0"}};
  const std::pair<std::int64_t, std::int64_t> taken{0, std::int64_t{80} << 30},
      freed{5, (std::int64_t{80} << 30) - 1};
  for (const ReadTrace& trace : {PerfettoReader().read(written(write_perfetto, input).bytes),
                                 read_chrome(written(write_chrome_trace, input).bytes)})
    EXPECT_THAT(trace.memory.at("rank 0"), testing::ElementsAre(taken, freed));
}

TEST_F(Traces, ShowNamesAsTheyAre) {
  ProgramBuilder builder;
  const ResourceId compute = builder.add_resource({ResourceKind::kStream, 0, "a \"stream\""});
  (void)builder.add_task(compute, 1ns, builder.add_label({.name = "<b>\\\n", .stage = -1, .parts = {}}));
  const Program program = std::move(builder).build();
  const Timeline timeline = run(program);
  expect_same({.program = program, .timeline = timeline, .ranks = {"</script>"}});
}

// A trace is given away in pieces of about a MiB, however long it is.
TEST_F(Traces, AreNeverInMemoryAsAWhole) {
  const Program program = build({.stages = 16, .micro_batches = 256, .replicas = 2});
  const Timeline timeline = run(program);
  const TraceInput input{.program = program, .timeline = timeline, .ranks = rank_names(program, 16)};
  for (const auto& write : {write_perfetto, write_chrome_trace}) {
    const Written all = written(write, input);
    EXPECT_GT(all.bytes.size(), std::size_t{3} << 19);
    EXPECT_LT(all.largest, (std::size_t{1} << 20) + 512);
  }
}

}  // namespace
}  // namespace stagecraft
