#include "sim/goodput/trace_file.hpp"

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "base/check.hpp"
#include "tests/file_content.hpp"

namespace stagecraft {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string shipped(const std::string& name) {
  return content_of(STAGECRAFT_SOURCE_DIR "/scenarios/traces/" + name);
}

Trace trace_of(const std::string& text) {
  Diagnostics diagnostics;
  auto trace = parse_trace(text, "t.csv", diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.items()) ADD_FAILURE() << render(diagnostic);
  return trace.value_or(Trace{});
}

std::string messages_of(const std::string& text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parse_trace(text, "t.csv", diagnostics)) << text;
  std::string messages;
  for (const Diagnostic& diagnostic : diagnostics.sorted()) messages += render(diagnostic) + "\n";
  return messages;
}

TEST(TraceFile, ReadsAdditionsAndRemovals) {
  const Trace trace =
      trace_of("# made by hand\ntime_s,event,node\n0,add,a\n0,add,b\n1.5,remove,a\r\n\n2,add,a\n");
  EXPECT_EQ(trace.form, TraceForm::kEvents);
  EXPECT_THAT(trace.nodes, ElementsAre("a", "b"));
  EXPECT_THAT(trace.rows,
              ElementsAre(TraceRow{.time = seconds(0), .event = TraceEvent::kAdd, .node = 0},
                          TraceRow{.time = seconds(0), .event = TraceEvent::kAdd, .node = 1},
                          TraceRow{.time = milliseconds(1500), .event = TraceEvent::kRemove, .node = 0},
                          TraceRow{.time = seconds(2), .event = TraceEvent::kAdd, .node = 0}));
}

TEST(TraceFile, ReadsCounts) {
  const Trace trace = trace_of("\xef\xbb\xbftime_s,available\n0,16\n60,16\n60,12\n");
  EXPECT_EQ(trace.form, TraceForm::kCounts);
  EXPECT_THAT(trace.counts, ElementsAre(TraceCount{.time = seconds(0), .available = 16},
                                        TraceCount{.time = seconds(60), .available = 16},
                                        TraceCount{.time = seconds(60), .available = 12}));
}

// Two faults of one kind are open at once: the earlier one ends first. A description may hold commas.
TEST(TraceFile, MatchesTheEndOfAFaultWithItsEarliestStart) {
  const Trace trace = trace_of(
      "time_s,event,node,level,class,description\n"
      "0,fault_start,n1,hardware,GPU,lost, twice\n"
      "5,fault_start,n1,hardware,GPU,lost, twice\n"
      "6,fault_start,n2,software,,hang\n"
      "10,fault_end,n1,hardware,GPU,lost, twice\n"
      "20,fault_end,n1,hardware,GPU,lost, twice\n");
  ASSERT_THAT(trace.rows, SizeIs(5));
  EXPECT_EQ(trace.rows[3].fault, 0);
  EXPECT_EQ(trace.rows[4].fault, 1);
  EXPECT_THAT(trace.causes, ElementsAre("GPU", "fault"));
  EXPECT_THAT(fault_durations(trace), ElementsAre(Duration(seconds(10)), Duration(seconds(15))));
}

// Rows and nodes as counted in the files with a spreadsheet.
TEST(TraceFile, ReadsEveryTraceOfOurs) {
  const auto rows = [](const std::string& name) {
    const Trace trace = trace_of(shipped(name));
    return trace.form == TraceForm::kCounts ? trace.counts.size() : trace.rows.size();
  };
  EXPECT_EQ(rows("bamboo_p3_spot.csv"), 344u);
  EXPECT_EQ(rows("bamboo_g4dn_spot.csv"), 153u);
  EXPECT_EQ(rows("bamboo_gcp_a100x1-east1b_counts.csv"), 268u);
  EXPECT_EQ(rows("bamboo_gcp_v100x1-east1c_counts.csv"), 1455u);
  EXPECT_EQ(rows("bamboo_g4dn_xlarge_us-east-1d_2020-11-23_counts.csv"), 67u);
  EXPECT_EQ(rows("bamboo_p2_xlarge_2020-11-20_counts.csv"), 393u);
  EXPECT_EQ(rows("sailor_gcp_a100_counts.csv"), 12u);
  EXPECT_EQ(rows("oobleck_scaled_p3.csv"), 299u);
  EXPECT_EQ(rows("oobleck_scaled_gcp.csv"), 161u);
  for (const char* interval : {"6h", "3h", "1h", "30m", "10m", "5m"})
    EXPECT_EQ(rows(std::string("oobleck_periodic_") + interval + ".csv"), 45u);
}

// Statistics of the durations in stepfun-ai/InfiniteHBD-Trace 7aacdc8, fault_trace.json: 584 faults of 231
// servers; mean 5.54 d, median 0.85 d, 47.6 % over a day, 9.8 % over two weeks.
TEST(TraceFile, GivesTheRepairTimesThatWerePublished) {
  const Trace trace = trace_of(shipped("infinitehbd_faults.csv"));
  EXPECT_THAT(trace.nodes, SizeIs(231));
  const std::vector<Duration> durations = fault_durations(trace);
  ASSERT_THAT(durations, SizeIs(584));
  double sum = 0, over_a_day = 0, over_two_weeks = 0;
  for (const Duration duration : durations) {
    const double days = to_seconds(duration) / 86'400;
    sum += days;
    over_a_day += days > 1 ? 1 : 0;
    over_two_weeks += days > 14 ? 1 : 0;
  }
  EXPECT_NEAR(sum / 584, 5.54, 0.005);
  EXPECT_NEAR(to_seconds(durations[292]) / 86'400, 0.85, 0.005);
  EXPECT_NEAR(over_a_day / 584, 0.476, 0.0005);
  EXPECT_NEAR(over_two_weeks / 584, 0.098, 0.0005);
}

TEST(TraceFile, SaysEveryMistakeWhereItIs) {
  EXPECT_EQ(messages_of("time_s,event,node\n"
                        "0,add,a\n"
                        "0,add,a\n"
                        "-1,add,b\n"
                        "5,remove,c\n"
                        "3,remove,a\n"
                        "6,fault_start,a\n"
                        "7,add\n"
                        "8,add,b,c\n"
                        "9,remove,\n"
                        "nan,remove,a\n"),
            "t.csv:3:7: error: node 'a' is there already\n"
            "  hint: remove it first, or give the newcomer a name of its own\n"
            "t.csv:4:1: error: '-1' is not a time in seconds\n"
            "  hint: write seconds since the start of the trace, as 336571.2\n"
            "t.csv:5:10: error: node 'c' is not there to be removed\n"
            "  hint: a node is added before it is removed\n"
            "t.csv:6:1: error: 3 s is before 5 s, the time of the row above\n"
            "  hint: sort the rows by time\n"
            "t.csv:7:3: error: 'fault_start' is not an event\n"
            "  hint: an event is add or remove\n"
            "t.csv:8:1: error: '7,add' does not have the 3 fields of the header\n"
            "  hint: the header is time_s,event,node\n"
            "t.csv:9:1: error: '8,add,b,c' does not have the 3 fields of the header\n"
            "  hint: the header is time_s,event,node\n"
            "t.csv:10:10: error: the row names no node\n"
            "  hint: name the node\n"
            "t.csv:11:1: error: 'nan' is not a time in seconds\n"
            "  hint: write seconds since the start of the trace, as 336571.2\n");
}

TEST(TraceFile, RefusesWhatIsNoTrace) {
  EXPECT_THAT(messages_of(""), HasSubstr("t.csv: error: there is no header"));
  EXPECT_THAT(messages_of("# only a comment\n"), HasSubstr("there is no header"));
  EXPECT_THAT(messages_of("time_s,event,node\n"), HasSubstr("there are no rows"));
  EXPECT_THAT(messages_of("time,event\n1,add\n"),
              HasSubstr("t.csv:1:1: error: 'time,event' is not the header"));
  EXPECT_THAT(messages_of("time_s,available\n0,1.5\n"),
              HasSubstr("t.csv:2:3: error: '1.5' is not a number of nodes"));
  EXPECT_THAT(messages_of("time_s,available\n0,-1\n"),
              HasSubstr("t.csv:2:3: error: '-1' is not a number of nodes"));
  EXPECT_THAT(messages_of("time_s,event,node,level,class,description\n0,fault_end,a,l,c,d\n"),
              HasSubstr("t.csv:2:13: error: no such fault of node 'a' is open"));
}

TEST(TraceFile, StopsAfterAHundredMistakes) {
  std::string text = "time_s,available\n";
  for (int i = 0; i < 1000; ++i) text += "0,?\n";
  Diagnostics diagnostics;
  EXPECT_FALSE(parse_trace(text, "t.csv", diagnostics));
  EXPECT_EQ(diagnostics.error_count(), 100u);
}

TEST(TraceFile, GivesNoDurationsOfEvents) {
  EXPECT_THROW((void)fault_durations(trace_of("time_s,available\n0,1\n")), InternalError);
}

}  // namespace
}  // namespace stagecraft
