#include "sim/view/chakra.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/lower/lower.hpp"
#include "sim/lower/prices.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/view/wire.hpp"
#include "tests/file_content.hpp"
#include "tests/sim/view/wire_reader.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using namespace stagecraft::literals;
using testing::ElementsAre;
using testing::Pair;

struct Pipeline {
  Program program;
  Timeline timeline;
};

// A forward of `forward`, a backward of twice that, messages of `message` between ranks.
Pipeline pipeline(const char* schedule, PipelineShape shape, Duration forward, Duration message,
                  const LowerOptions& options = {}) {
  IterationPrices prices;
  const Schedule order = generate(*find_schedule(schedule), shape);
  const StagePlaces places = order.places();
  for (const HeldStage& held : places.all()) {
    StagePrice price;
    price.forward.add(Category::kForward, forward, Provenance::kAssumed);
    price.input_gradient.add(Category::kBackward, forward, Provenance::kAssumed);
    price.weight_gradient.add(Category::kBackward, forward, Provenance::kAssumed);
    prices.stages.push_back(price);
    EdgePrice edge;
    if (held.stage + 1 < places.stages() &&
        places.rank_of(held.stage, held.copy) != places.rank_of(held.stage + 1, held.copy)) {
      edge.forward.add(Category::kPipelineComm, message, Provenance::kAssumed);
      edge.backward.add(Category::kPipelineComm, message, Provenance::kAssumed);
    }
    prices.edges.push_back(edge);
  }
  prices.ranks.resize(static_cast<std::size_t>(shape.ranks));
  for (RankPrice& rank : prices.ranks) rank.copies.resize(2);
  Program program = lower(order, prices, options);
  Timeline timeline = run(program);
  return {std::move(program), std::move(timeline)};
}

// `messages` by stage; empty: 16 MiB behind all of up to 64 stages.
std::vector<ChakraFile> files_of(const Pipeline& from, std::vector<Bytes> messages = {}) {
  if (messages.empty()) messages.assign(63, 16_MiB);
  std::vector<ChakraFile> files;
  for (std::string& bytes :
       chakra_traces({.program = from.program, .timeline = from.timeline, .messages = std::move(messages)}))
    files.push_back({.name = "rank " + std::to_string(files.size()), .bytes = std::move(bytes)});
  return files;
}

Duration read_back(const std::vector<ChakraFile>& files, const ChakraNetwork& network = {}) {
  Diagnostics diagnostics;
  const std::optional<Program> program = chakra_program(files, network, diagnostics);
  EXPECT_TRUE(program.has_value()) << (diagnostics.has_errors() ? diagnostics.sorted().front().message : "");
  return program ? run(*program).makespan : Duration{};
}

// Whole microseconds lose nothing: (m + p - 1)(F + B) + K c with p = 8, m = 64, K = 2(p + m - 2 - m/p) = 124.
TEST(ChakraTraces, OfOneFOneBReadBackToTheSameMakespan) {
  const Pipeline made = pipeline("1f1b", {.ranks = 8, .micro_batches = 64}, 1ms, 314us);
  EXPECT_EQ(made.timeline.makespan, 71 * 3ms + 124 * 314us);
  EXPECT_EQ(read_back(files_of(made)), made.timeline.makespan);
}

TEST(ChakraTraces, OfEveryKindOfOrderReadBackToTheSameMakespan) {
  for (const char* schedule : {"gpipe", "interleaved-1f1b", "zb-h1"}) {
    const int chunks = std::string(schedule) == "interleaved-1f1b" ? 2 : 1;
    const Pipeline made = pipeline(schedule, {.ranks = 4, .micro_batches = 8, .chunks = chunks}, 1ms, 50us);
    EXPECT_EQ(read_back(files_of(made)), made.timeline.makespan) << schedule;
  }
}

// A message behind another one to the same rank waits for it in the trace, too.
TEST(ChakraTraces, OfQueuedMessagesReadBackToTheSameMakespan) {
  for (const auto& [schedule, chunks] :
       {std::pair{"gpipe", 1}, {"1f1b", 1}, {"interleaved-1f1b", 2}, {"zb-v", 2}}) {
    const PipelineShape shape{.ranks = 3, .micro_batches = 6, .chunks = chunks};
    const Pipeline made = pipeline(schedule, shape, 1ms, 2500us, {.queued_messages = true});
    EXPECT_EQ(read_back(files_of(made)), made.timeline.makespan) << schedule;
  }
}

// Every pass ends within a microsecond of its time on its rank, every message within half a one.
TEST(ChakraTraces, RoundWithCarry) {
  const Pipeline made = pipeline("1f1b", {.ranks = 8, .micro_batches = 64}, 1000333ns, Duration(0));
  const Duration difference = read_back(files_of(made)) - made.timeline.makespan;
  EXPECT_LE(std::chrono::abs(difference), 2 * 8 * 1us);
}

// The sample was run by ASTRA-sim, analytical and congestion-unaware: 9,629,000 ns. 16 MiB at 50 GiB/s, two
// links of 1000 ns.
TEST(ChakraTraces, OfOthersTakeWhatAstraSimMeasures) {
  std::vector<ChakraFile> files;
  for (const char* rank : {"0", "1"}) {
    const std::string name = STAGECRAFT_SOURCE_DIR "/tests/data/chakra/1f1b." + std::string(rank) + ".et";
    files.push_back({.name = name, .bytes = content_of(name)});
  }
  EXPECT_EQ(read_back(files, {.link = Bandwidth(50.0 * 1024 * 1024 * 1024), .latency = 2us}), 9'629'000ns);
}

// Some readers take a node for one of the CPU unless it says no, and want sizes as int64.
TEST(ChakraTraces, SayWhatReadersInsistOn) {
  const std::string file =
      files_of(pipeline("1f1b", {.ranks = 2, .micro_batches = 2}, 1ms, 314us)).front().bytes;
  std::string_view rest = file;
  int messages = 0, sends = 0;
  while (!rest.empty()) {
    const auto length = static_cast<unsigned char>(rest.front());
    ASSERT_LT(length, 128);  // so that the length is one byte
    const auto node = test::read_message(rest.substr(1, length));
    rest.remove_prefix(1u + length);
    if (messages++ == 0) {
      EXPECT_EQ(test::first_of(node, 1).bytes, "0.0.4");
      continue;
    }
    std::vector<std::string> names;
    for (const test::WireField& field : node) {
      if (field.number != 10) continue;
      const auto attribute = test::read_message(field.bytes);
      names.emplace_back(test::first_of(attribute, 1).bytes);
      if (names.back() == "is_cpu_op") {
        EXPECT_EQ(test::first_of(attribute, 27).number, 27u);
      }
      if (names.back() == "comm_size") {
        EXPECT_EQ(test::first_of(attribute, 9).value, 16u << 20);
      }
    }
    EXPECT_THAT(names, testing::Contains("is_cpu_op"));
    sends += test::first_of(node, 3).value == 5 ? 1 : 0;
  }
  EXPECT_EQ(messages, 1 + 2 * 2 + 2 + 2);  // passes, sends of activations, receives of gradients
  EXPECT_EQ(sends, 2);
}

// System: two ranks; the second steps when it has heard the norm of the first, one number.
TEST(ChakraTraces, SendANormAsOneNumber) {
  ProgramBuilder builder;
  const ResourceId send = builder.add_resource({ResourceKind::kConcurrent, 0, "send"});
  const ResourceId compute = builder.add_resource({ResourceKind::kStream, 1, "compute"});
  const auto norm =
      builder.add_task(send, 1ms, builder.add_label({.name = "send norm", .stage = -1, .parts = {}}));
  const auto step =
      builder.add_task(compute, 1ms, builder.add_label({.name = "optimizer", .stage = -1, .parts = {}}));
  builder.add_dependency(norm, step);
  Program program = std::move(builder).build();
  Timeline timeline = run(program);
  const std::string file = files_of({std::move(program), std::move(timeline)}).front().bytes;
  std::string_view rest = file;
  rest.remove_prefix(1u + static_cast<unsigned char>(rest.front()));  // the metadata
  const auto node = test::read_message(rest.substr(1, static_cast<unsigned char>(rest.front())));
  std::vector<std::uint64_t> sizes;
  for (const test::WireField& field : node) {
    if (field.number != 10) continue;
    const auto attribute = test::read_message(field.bytes);
    if (test::first_of(attribute, 1).bytes == "comm_size")
      sizes.push_back(test::first_of(attribute, 9).value);
  }
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{4}));
}

// How many of its sends carry so many bytes.
std::map<std::uint64_t, int> sends_of(const std::string& file) {
  std::map<std::uint64_t, int> sends;
  for (std::string_view rest = file; !rest.empty();) {
    std::size_t length = 0;
    for (unsigned shift = 0, byte = 0x80; (byte & 0x80) != 0; shift += 7) {
      byte = static_cast<unsigned char>(rest.front());
      length |= static_cast<std::size_t>(byte & 0x7f) << shift;
      rest.remove_prefix(1);
    }
    const auto node = test::read_message(rest.substr(0, length));
    rest.remove_prefix(length);
    if (test::first_of(node, 3).value != 5) continue;
    for (const test::WireField& field : node) {
      if (field.number != 10) continue;
      const auto attribute = test::read_message(field.bytes);
      if (test::first_of(attribute, 1).bytes == "comm_size") ++sends[test::first_of(attribute, 9).value];
    }
  }
  return sends;
}

// Two micro-batches forward and back over three boundaries of 10, 20 and 30 bytes, whether the messages take
// time or not.
TEST(ChakraTraces, SendWhatCrossesEachBoundary) {
  for (const Duration message : {Duration(0), Duration(50us)}) {
    const auto files = files_of(pipeline("1f1b", {.ranks = 4, .micro_batches = 2}, 1ms, message),
                                {Bytes(10), Bytes(20), Bytes(30)});
    ASSERT_EQ(files.size(), 4u);
    EXPECT_THAT(sends_of(files[0].bytes), ElementsAre(Pair(10, 2)));
    EXPECT_THAT(sends_of(files[1].bytes), ElementsAre(Pair(10, 2), Pair(20, 2)));
    EXPECT_THAT(sends_of(files[2].bytes), ElementsAre(Pair(20, 2), Pair(30, 2)));
    EXPECT_THAT(sends_of(files[3].bytes), ElementsAre(Pair(30, 2)));
  }
}

// Of a pair of passes each sends its own: 8 micro-batches cross every boundary forward and back, but the one
// in the middle of a V, which lies within a rank.
TEST(ChakraTraces, SendWhatThePassesOfFusedPairsSend) {
  const auto sums = [](const char* schedule, int chunks, Duration message) {
    std::vector<Bytes> messages;
    for (int stage = 0; stage + 1 < 4 * chunks; ++stage) messages.emplace_back(10 * (stage + 1));
    std::map<std::uint64_t, int> by_size;
    for (const ChakraFile& file : files_of(
             pipeline(schedule, {.ranks = 4, .micro_batches = 8, .chunks = chunks}, 1ms, message), messages))
      for (const auto& [size, count] : sends_of(file.bytes)) by_size[size] += count;
    return by_size;
  };
  for (const Duration message : {Duration(0), Duration(50us)}) {
    EXPECT_THAT(sums("dualpipe", 1, message), ElementsAre(Pair(10, 16), Pair(20, 16), Pair(30, 16)));
    EXPECT_THAT(sums("dualpipe-v", 2, message), ElementsAre(Pair(10, 16), Pair(20, 16), Pair(30, 16),
                                                            Pair(50, 16), Pair(60, 16), Pair(70, 16)));
  }
}

// Passes without a length stand behind those that they wait for.
TEST(ChakraTraces, OfPassesThatTakeNoTimeAreWritten) {
  const Pipeline made = pipeline("1f1b", {.ranks = 4, .micro_batches = 8}, Duration(0), Duration(0));
  EXPECT_EQ(read_back(files_of(made)), Duration(0));
}

std::string refusal(std::vector<ChakraFile> files) {
  Diagnostics diagnostics;
  EXPECT_FALSE(chakra_program(files, {}, diagnostics).has_value());
  return diagnostics.has_errors() ? diagnostics.sorted().front().message : "";
}

TEST(ChakraTraces, AreRefusedWhenDamagedOrIncomplete) {
  const std::vector<ChakraFile> files =
      files_of(pipeline("1f1b", {.ranks = 2, .micro_batches = 2}, 1ms, 314us));
  EXPECT_THAT(refusal({files[0]}), testing::HasSubstr("nobody"));
  EXPECT_THAT(refusal({{.name = "empty", .bytes = ""}}), testing::HasSubstr("is no Chakra trace"));
  // The last node, a backward that nobody waits for, is the only whole one that is not missed.
  for (std::size_t length = 1; length + 60 < files[0].bytes.size(); length += 7) {
    Diagnostics diagnostics;
    (void)chakra_program(std::vector<ChakraFile>{{"cut", files[0].bytes.substr(0, length)}, files[1]}, {},
                         diagnostics);
    EXPECT_TRUE(diagnostics.has_errors()) << length;
  }
}

// System: two passes that wait for each other.
TEST(ChakraTraces, AreRefusedWhenTheyWaitForThemselves) {
  WireMessage first, second, file;
  first.number(1, 1).text(2, "F0").number(3, 4).number(5, 2).number(7, 10);
  second.number(1, 2).text(2, "B0").number(3, 4).number(5, 1).number(7, 10);
  file.delimited(WireMessage().text(1, "0.0.4")).delimited(first).delimited(second);
  EXPECT_EQ(refusal({{.name = "cycle", .bytes = file.bytes()}}),
            "2 nodes wait for each other, the first of them 'rank 0 compute F0'");
}

WireMessage trace_of(std::initializer_list<WireMessage> nodes) {
  WireMessage file;
  file.delimited(WireMessage().text(1, "0.0.4"));
  for (const WireMessage& node : nodes) file.delimited(node);
  return file;
}

WireMessage node_of(std::uint64_t id, const char* name, std::uint64_t type, std::uint64_t micros) {
  return WireMessage().number(1, id).text(2, name).number(3, type).number(7, micros);
}

// System: a pass of 5 us that waits for one of 7 behind it in the file; a third of 3 waits for nothing.
// Expectations: all three run, 15 us, and the others keep the order of the file.
TEST(ChakraTraces, MayStandInAnyOrder) {
  const std::vector<ChakraFile> files{{.name = "order",
                                       .bytes = trace_of({node_of(2, "B0", 4, 5).number(5, 3),
                                                          node_of(3, "F0", 4, 7), node_of(4, "F1", 4, 3)})
                                                    .bytes()}};
  EXPECT_EQ(read_back(files), 15us);
  Diagnostics diagnostics;
  const Program program = chakra_program(files, {}, diagnostics).value();
  EXPECT_EQ(program.describe(TaskId(0)), "rank 0 compute F0");
  EXPECT_EQ(program.describe(TaskId(1)), "rank 0 compute B0");
}

// Operations without a time would be free.
TEST(ChakraTraces, OfComputeWithoutATimeAreRefused) {
  const auto work = [](WireMessage node) {
    return node.message(10, WireMessage().text(1, "num_ops").number(9, 1'000'000));
  };
  const WireMessage untimed = WireMessage().number(1, 1).text(2, "GEMM").number(3, 4);
  EXPECT_EQ(refusal({{.name = "ops", .bytes = trace_of({work(untimed)}).bytes()}}),
            "'GEMM' does not say how long its 1000000 operations take");
  EXPECT_EQ(read_back({{.name = "marker", .bytes = trace_of({untimed}).bytes()}}), 0us);
  EXPECT_EQ(read_back({{.name = "timed", .bytes = trace_of({work(node_of(1, "GEMM", 4, 9))}).bytes()}}), 9us);
}

// System: two passes; the second has the length that it says, and ends inside of an attribute, of a list of
// dependencies, of its duration.
TEST(ChakraTraces, AreRefusedWhenDamagedInsideOfANode) {
  for (const char* damage : {"\x52\x01\x96", "\x2a\x01\x96", "\x38"}) {
    const std::string node = node_of(2, "B0", 4, 10).bytes() + damage;
    const std::string bytes =
        trace_of({node_of(1, "F0", 4, 10)}).bytes() + static_cast<char>(node.size()) + node;
    EXPECT_EQ(refusal({{.name = "inside", .bytes = bytes}}),
              "is no Chakra trace: it ends, or is damaged, behind node 1");
  }
}

TEST(ChakraTraces, OfEndlessTimesAreRefused) {
  const std::uint64_t years = std::uint64_t{1} << 50;  // 35 of them in microseconds
  EXPECT_THAT(refusal({{.name = "one", .bytes = trace_of({node_of(1, "F0", 4, years + 1)}).bytes()}}),
              testing::StartsWith("'F0' takes longer than 35 years"));
  // Ten thirds of the limit; the report is of the first node that passes it.
  std::vector<ChakraFile> ranks;
  for (const char* name : {"a", "b", "c", "d", "e"})
    ranks.push_back({.name = name, .bytes = trace_of({node_of(1, "F0", 4, years / 3 * 2)}).bytes()});
  Diagnostics diagnostics;
  EXPECT_FALSE(chakra_program(ranks, {}, diagnostics).has_value());
  ASSERT_EQ(diagnostics.items().size(), 1u);
  EXPECT_EQ(diagnostics.items()[0].where.file, "b");
  EXPECT_EQ(diagnostics.items()[0].message, "'F0' and the nodes before it take longer than 35 years");
}

// System: rank 0 sends to itself, so that all but the size is right.
TEST(ChakraTraces, OfMessagesWithoutASizeOrOfAbsurdOnesAreRefused) {
  const auto message = [](std::uint64_t type, std::optional<std::uint64_t> size) {
    WireMessage node = WireMessage().number(1, type).text(2, "S0").number(3, type);
    for (const char* name : {"comm_src", "comm_dst", "comm_tag"})
      node.message(10, WireMessage().text(1, name).number(9, 0));
    if (size) node.message(10, WireMessage().text(1, "comm_size").number(9, *size));
    return node;
  };
  const auto said = [&](std::optional<std::uint64_t> size) {
    Diagnostics diagnostics;
    const std::vector<ChakraFile> files{
        {.name = "self", .bytes = trace_of({message(5, size), message(6, size)}).bytes()}};
    const bool read = chakra_program(files, {.link = Bandwidth(1)}, diagnostics).has_value();
    EXPECT_EQ(read, !diagnostics.has_errors());
    return diagnostics.has_errors() ? diagnostics.items()[0].message : "";
  };
  EXPECT_EQ(said(1), "");
  EXPECT_EQ(said({}), "'S0' is a message, and its comm_size is missing");
  EXPECT_EQ(said(~std::uint64_t{0}), "'S0' is a message, and its comm_size is negative");
  EXPECT_EQ(said(~std::uint64_t{0} >> 1), "'S0' takes longer than 35 years");
}

TEST(ChakraTraces, OfCollectivesAreRefusedByTheirType) {
  WireMessage node, file;
  node.number(1, 1).text(2, "all-reduce").number(3, 7);
  file.delimited(WireMessage().text(1, "0.0.4")).delimited(node);
  EXPECT_THAT(refusal({{.name = "collective", .bytes = file.bytes()}}),
              testing::HasSubstr("'all-reduce' is a node of type 7"));
}

TEST(ChakraTraces, AreNotMadeOfCollectivesThatAreNotSimulated) {
  ProgramBuilder builder;
  const ResourceId data = builder.add_resource({ResourceKind::kStream, 0, "data"});
  (void)builder.add_task(data, 1ms,
                         builder.add_label({.name = "gradient reduction", .stage = -1, .parts = {}}));
  const Program program = std::move(builder).build();
  const std::optional<ChakraRefusal> refusal = no_chakra_because(program, run(program));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->why, "its 'gradient reduction' is a collective of replicas that are not simulated");
  EXPECT_THAT(refusal->hint, testing::HasSubstr("--set parallelism.data=1"));
}

}  // namespace
}  // namespace stagecraft
